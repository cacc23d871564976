// What producers and workers use: definitions, handlers, errors, and the types of what the API answers.

export type { Memory } from './definition/bytes.ts'
export { type Catalogue, type DefinitionsOf, defineCatalogue, type NamesOf } from './definition/catalogue.ts'
export { type Duration, formatDuration, type Limit, milliseconds } from './definition/duration.ts'
export {
  type ChildOptions,
  defineHandler,
  type Handler,
  type Handlers,
  type Log,
  type LogLevel,
  type Resources,
  type StepResult,
  type TaskContext,
} from './definition/handler.ts'
export { defineQueue, type OnShutdown, type QueueDefinition, type QueueOptions } from './definition/queue.ts'
export {
  type Backoff,
  type BackoffOptions,
  DEFAULT_RETRY,
  type RetryOptions,
  type RetryPolicy,
} from './definition/retry-policy.ts'
export {
  defineTask,
  type InputOf,
  type OnInterrupt,
  type OutputOf,
  type ParsedInputOf,
  type ReturnOf,
  type TaskDefinition,
  type TaskName,
  type TaskOptions,
} from './definition/task-definition.ts'
export { BullpenError, type ErrorCode, type FieldError } from './errors/errors.ts'
export type { Classifier, Failure } from './errors/failure.ts'
export { rateLimited } from './errors/rate-limited.ts'
export { TaskError } from './errors/task-error.ts'
export type { CommandOutcome, CommandPage, CommandRequest, CommandView, DrainMode, StopMode } from './fleet/commands.ts'
export type { FleetView, PoolPage, PoolView, QueueView, SlotPage, SlotView, WorkerView } from './fleet/fleet.ts'
export type { Cancellation, Cancelled, CancelOutcome, CancelPreview, CancelRequest } from './http/cancel.ts'
export type { Accepted, CallOptions, EnqueueRequest } from './http/enqueue.ts'
export type { Problem } from './http/problem.ts'
export type { AttemptView, TaskPage, TaskView } from './http/task-view.ts'
export type { AttemptRecord } from './task/attempt-record.ts'
export type { TaskEvent, VerdictKind } from './task/events.ts'
export {
  ATTEMPT_STATE_LABELS,
  type AttemptEndState,
  type AttemptState,
  type CancelReason,
  type EndReason,
  type FinalStatus,
  type Isolation,
  isFinal,
  POOL_STATE_LABELS,
  type PoolState,
  SLOT_STATE_LABELS,
  type SlotState,
  type TaskKind,
  type TaskStatus,
} from './task/states.ts'
export type { TaskId } from './task/task-id.ts'
export type { Progress, TaskRecord } from './task/task-record.ts'
export { VERSION } from './version.ts'

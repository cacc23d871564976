// The public surface: what producers, workers and callers of the API import.

// Define tasks, queues and the catalogue
export type { Memory } from './definition/bytes.ts'
export { type Catalogue, type DefinitionsOf, defineCatalogue, type NamesOf } from './definition/catalogue.ts'
export { type Duration, formatDuration, type Limit, milliseconds } from './definition/duration.ts'
// Write handlers
export type { ChildOptions, Handler, Handlers, Resources, StepResult, TaskContext } from './definition/handler.ts'
export { defineHandler } from './definition/handler.ts'
export type { HandlerLog, Log, LogLevel } from './definition/log.ts'
export { defineQueue, type OnShutdown, type QueueDefinition, type QueueOptions } from './definition/queue.ts'
export type { Backoff, BackoffOptions, RetryOptions, RetryPolicy } from './definition/retry-policy.ts'
export { DEFAULT_RETRY } from './definition/retry-policy.ts'
export type { InputOf, OnInterrupt, OutputOf, ParsedInputOf, ReturnOf } from './definition/task-definition.ts'
export { defineTask, type TaskDefinition, type TaskName, type TaskOptions } from './definition/task-definition.ts'

// Declare failures and handle errors
export { BullpenError, type ErrorCode, type FieldError } from './errors/errors.ts'
export type { Classifier, Failure } from './errors/failure.ts'
export { rateLimited } from './errors/rate-limited.ts'
export { TaskError } from './errors/task-error.ts'
// Requests and answers of the HTTP API: the fleet
// Requests and answers of the HTTP API: the fleet
export type {
  CommandOutcome,
  CommandOutcome,
  CommandPage,
  CommandPage,
  CommandRequest,
  CommandRequest,
  CommandView,
  CommandView,
  DrainMode,
  DrainMode,
  StopMode,
  StopMode,
} from './fleet/commands.ts'
export type {
  FleetView,
  FleetView,
  PoolPage,
  PoolPage,
  PoolView,
  PoolView,
  QueueView,
  QueueView,
  SlotPage,
  SlotPage,
  SlotView,
  SlotView,
  WorkerView,
  WorkerView,
} from './fleet/fleet.ts'
// Requests and answers of the HTTP API: tasks
export type { Cancellation, Cancelled, CancelOutcome, CancelPreview, CancelRequest } from './http/cancel.ts'
export type { Accepted, CallOptions, EnqueueRequest } from './http/enqueue.ts'
// Requests and answers of the HTTP API: tasks
export type {
  Accepted,
  CallOptions,
  Cancellation,
  Cancelled,
  CancelOutcome,
  CancelRequest,
  EnqueueRequest,
  TaskPage,
  TaskView,
} from './http/http.ts'
export type { Problem, Problem } from './http/problem.ts'
export type { AttemptView, TaskPage, TaskView } from './http/task-view.ts'
// Tasks and their attempts: states, records and events
export type { AttemptRecord } from './task/attempt-record.ts'
export type { TaskEvent, VerdictKind } from './task/events.ts'
export type { AttemptEndState, AttemptState, CancelReason, EndReason, FinalStatus, Isolation } from './task/states.ts'
export {
  ATTEMPT_STATE_LABELS,
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

// The contract's public surface: what a producer and a worker must both know.

// Defining tasks
export type { Memory } from './definition/bytes.ts'
export { type Catalogue, type DefinitionsOf, defineCatalogue, type NamesOf } from './definition/catalogue.ts'
export { type Duration, formatDuration, type Limit, limitMs, milliseconds } from './definition/duration.ts'
// Handling tasks
export {
  type ChildOptions,
  defineHandler,
  type Handler,
  type Handlers,
  handlerIn,
  LOG_LEVELS,
  type Log,
  type LogLevel,
  type Resources,
  type StepResult,
  type TaskContext,
} from './definition/handler.ts'
export { nearest } from './definition/nearest.ts'
export {
  defineQueue,
  ON_SHUTDOWN,
  type OnShutdown,
  type QueueDefinition,
  type QueueOptions,
} from './definition/queue.ts'
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
export { contradictionIn, type TimeoutsMs } from './definition/timeouts.ts'
export { BullpenError, ERROR_CODES, type ErrorCode, type FieldError } from './errors/errors.ts'
export type { Classifier, Failure } from './errors/failure.ts'
export { RateLimited, rateLimited } from './errors/rate-limited.ts'
export { TaskError } from './errors/task-error.ts'
// The fleet
export {
  ANSWER_OUTCOMES,
  type AnswerOutcome,
  COMMAND_ID,
  COMMAND_OUTCOMES,
  COMMAND_WAIT_S,
  type CommandAction,
  type CommandOutcome,
  type CommandPage,
  type CommandRequest,
  type CommandSpec,
  type CommandView,
  commandPageSchema,
  commandQuerySchema,
  commandRequestSchema,
  commandsQuerySchema,
  commandViewSchema,
  commandWaitSchema,
  DRAIN_MODES,
  type DrainMode,
  STOP_MODES,
  type StopMode,
} from './fleet/commands.ts'
export {
  ENDED_POOL_STATES,
  type FleetView,
  fleetQuerySchema,
  fleetViewSchema,
  type PoolPage,
  type PoolView,
  poolPageSchema,
  poolQuerySchema,
  type QueueView,
  type SlotPage,
  type SlotView,
  slotPageSchema,
  slotQuerySchema,
  type WorkerView,
} from './fleet/fleet.ts'
// Over HTTP
export {
  type Accepted,
  acceptedSchema,
  CANCEL_OUTCOMES,
  type CallOptions,
  type CancelAnswer,
  type Cancellation,
  type Cancelled,
  type CancelOutcome,
  type CancelRequest,
  callOptionsSchema,
  cancelFilterSchema,
  cancellationSchema,
  cancelledSchema,
  type EnqueueRequest,
  enqueueBodySchema,
  listQuerySchema,
  MAX_WAIT_S,
  PAGE,
  type TaskPage,
  type TaskView,
  taskPageSchema,
  taskViewSchema,
  waitSchema,
} from './http/http.ts'
export { HTTP_STATUS, PROBLEM_CONTENT_TYPE, type Problem, problemSchema } from './http/problem.ts'
// Stored with a task
export { type AttemptRecord, attemptRecordSchema } from './task/attempt-record.ts'
export { ENVELOPE_VERSION, type Envelope, envelopeSchema, type StoredSuccess, successSchema } from './task/envelope.ts'
export type { TaskEvent, VerdictKind } from './task/events.ts'
export * from './task/states.ts'
export { createTaskId, ID_RANDOM_BYTES, QUEUE_NAME, readTaskId, type TaskId, taskId } from './task/task-id.ts'
export type { Progress, TaskRecord } from './task/task-record.ts'
// Words
export { VERSION } from './version.ts'

// The contract's public surface: what a producer and a worker must both know.

// Stored with a task
export { type AttemptEnd, attemptEndSchema } from './attempt-end.ts'
// Defining tasks
export type { Memory } from './bytes.ts'
export { type Catalogue, type DefinitionsOf, defineCatalogue, type NamesOf } from './catalogue.ts'
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
  type CommandView,
  commandPageSchema,
  commandQuerySchema,
  commandRequestSchema,
  commandsQuerySchema,
  commandViewSchema,
  commandWaitSchema,
  DRAIN_MODES,
  type DrainMode,
  type Order,
  STOP_WAYS,
  type StopWay,
} from './commands.ts'
export { type Duration, formatDuration, type Limit, limitMs, milliseconds } from './duration.ts'
export { ENVELOPE_VERSION, type Envelope, envelopeSchema, type StoredSuccess, successSchema } from './envelope.ts'
export { BullpenError, ERROR_CODES, type ErrorCode, type Fault } from './errors.ts'
export type { Consequence, TaskEvent } from './events.ts'
export type { Classifier, Failure } from './failure.ts'
export {
  ENDED_POOL_STATES,
  type FleetView,
  fleetQuerySchema,
  fleetViewSchema,
  type PoolPage,
  type PoolView,
  type ProcessView,
  poolPageSchema,
  poolQuerySchema,
  type QueueView,
  type WorkerPage,
  type WorkerView,
  workerPageSchema,
  workerQuerySchema,
} from './fleet.ts'
// Handling tasks
export {
  type ChildOptions,
  defineHandler,
  type Handler,
  type Handlers,
  handlerIn,
  type Log,
  type Resources,
  type StepResult,
  type TaskContext,
} from './handler.ts'
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
  type CancelWanted,
  callOptionsSchema,
  cancelFilterSchema,
  cancellationSchema,
  cancelledSchema,
  type EnqueueRequest,
  enqueueBodySchema,
  LONGEST_WAIT_S,
  listQuerySchema,
  PAGE,
  type TaskPage,
  type TaskView,
  taskPageSchema,
  taskViewSchema,
  waitSchema,
} from './http.ts'
export { contradictionIn, type LimitsMs } from './limits.ts'
export { nearest } from './nearest.ts'
export { HTTP_STATUS, PROBLEM_CONTENT_TYPE, type Problem, problemSchema } from './problem.ts'
export { defineQueue, ON_SHUTDOWN, type OnShutdown, type QueueDefinition, type QueueOptions } from './queue.ts'
export { RateLimited, rateLimited } from './rate-limited.ts'
export { DEFAULT_RETRY, type RetryOptions, type RetryPolicy } from './retry-policy.ts'
export * from './states.ts'
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
} from './task-definition.ts'
export { TaskError } from './task-error.ts'
export { ID_RANDOM_BYTES, makeTaskId, QUEUE_NAME, readTaskId, type TaskId, taskId } from './task-id.ts'
export type { Progress, TaskRecord } from './task-record.ts'
// Words
export { VERSION } from './version.ts'

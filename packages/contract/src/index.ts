// The public surface: what producers, workers and callers of the API import.

// Define tasks, queues and the catalogue:

export { type Catalogue, type DefinitionsOf, defineCatalogue, type NamesOf } from './definition/catalogue.ts'
export type { Durability } from './definition/durability.ts'
export type { Fairness, FairnessOptions } from './definition/fairness.ts'
export { type FollowUp, type FollowUpOptions, type FollowUps, followUp } from './definition/follow-ups/follow-up.ts'
export type {
  CompletedTask,
  EnqueuedInput,
  FollowUpMaker,
  FollowUpRule,
  FollowUpRuleOptions,
  FollowUpRules,
  FollowUpSettings,
} from './definition/follow-ups/rules.ts'
export type { EventOptions, KeptEvents } from './definition/kept-events.ts'
export type { ApiKeyLimitOptions, ApiKeyLimits } from './definition/limits/api-key-limits.ts'
export type { BreakerOptions, BreakerSettings, BreakersOf } from './definition/limits/breakers.ts'
export type {
  ConcurrencyKeyLimitOptions,
  ConcurrencyKeyLimits,
  PerConcurrencyKey,
  PerConcurrencyKeyOptions,
  StartRate,
} from './definition/limits/concurrency-key-limits.ts'
export type { EnqueueRate, EnqueueRateText } from './definition/limits/enqueue-rate.ts'
export type { Permits, SharedPermits } from './definition/limits/permits.ts'
export type { QueueLimitName, QueueLimitOptions, QueueLimits } from './definition/limits/queue-limits.ts'
export type { WhenFull } from './definition/limits/when-full.ts'
export { defineQueue, type OnShutdown, type QueueDefinition, type QueueOptions } from './definition/queue.ts'
export type { KeptOptions, QueueRetention, RetentionOptions } from './definition/retention.ts'
export type { RetryBounds, RetryBoundsOptions } from './definition/retry/retry-bounds.ts'
export type { RetryBudget, RetryBudgetOptions } from './definition/retry/retry-budget.ts'
export {
  type Backoff,
  type BackoffOptions,
  DEFAULT_RETRY,
  type RetryOptions,
  type RetryPolicy,
} from './definition/retry/retry-policy.ts'
export type { Slo, SloOptions } from './definition/slo.ts'
export type { InputOf, OnInterrupt, OutputOf, ParsedInputOf, ReturnOf } from './definition/task-definition.ts'
export { defineTask, type TaskDefinition, type TaskOptions } from './definition/task-definition.ts'
export type { TaskName } from './definition/task-name.ts'
export type { Memory } from './definition/units/bytes.ts'
export { type Duration, formatDuration, type Limit, milliseconds } from './definition/units/duration.ts'

export type { Cadence, CadenceOptions } from './schedule/cadence.ts'
export {
  defineSchedule,
  type ScheduleDefinition,
  type ScheduledTaskOptions,
  type ScheduleOptions,
  type SchedulePolicies,
} from './schedule/schedule-definition.ts'
export type { CatchUp, Overlap } from './schedule/schedule-policies.ts'

// Define pipelines:

export { definePipeline, type Pipeline, type PipelineStart } from './pipeline/define-pipeline.ts'
export type {
  AnyIterable,
  Collected,
  FoldFunction,
  MapFunction,
  MapOptions,
  PipelineDefinition,
  PipelineOnError,
  PipelineOptions,
  ReduceFunction,
  Source,
  StageContext,
} from './pipeline/pipeline-definition.ts'
export { PipelineError, type PipelineErrorCode } from './pipeline/pipeline-error.ts'

// Write handlers:

export type {
  ChildOptions,
  Handler,
  Handlers,
  RegisteredOptions,
  Resources,
  StepResult,
  TaskContext,
} from './definition/handler.ts'
export { defineHandler } from './definition/handler.ts'
export type { HandlerLog, Log, LogLevel } from './definition/log.ts'

// Declare failures, and handle errors:

export { EnqueueRateError, type ReachedRate } from './errors/enqueue-rate-error.ts'
export { BullpenError, type ErrorCode } from './errors/errors.ts'
export type { Classifier, Failure } from './errors/failure.ts'
export type { FieldError } from './errors/field-error.ts'
export { QueueFullError, type ReachedLimit } from './errors/queue-full.ts'
export { type RateLimitedOptions, rateLimited, type Throttled } from './errors/rate-limited.ts'
export { TaskError } from './errors/task-error.ts'

// Tasks and attempts: states, records and events:

export type { LimiterKind } from './fleet/limiters-view.ts'
export type {
  RunErrors,
  RunErrorView,
  RunList,
  RunSettingsOptions,
  RunView,
  StartRunRequest,
} from './http/pipelines.ts'
export { type At, at } from './pipeline/cursor.ts'
export type {
  FleetMapOptions,
  FleetPipeline,
  FleetPipelineDefinition,
  FleetPipelineOptions,
} from './pipeline/fleet-pipeline.ts'
export type {
  ReductionState,
  RunOnError,
  RunPhase,
  RunResult,
  RunStopReason,
  SourceState,
} from './pipeline/run-states.ts'
export {
  defineReduceHandler,
  defineReducer,
  defineSource,
  defineSourceHandler,
  type ReducerDefinition,
  type ReducerFunction,
  type SourceDefinition,
  type SourceFunction,
} from './pipeline/stage-definitions.ts'
export type { AttemptRecord } from './task/attempt-record.ts'
export type { BreakerMode, BreakerState } from './task/breaker-states.ts'
export type { EnqueueAction, Enqueued } from './task/enqueued.ts'
export type { CommitRefusal, RefusedBy, TaskEvent, VerdictKind } from './task/events.ts'
export { createGroupId, type GroupId } from './task/group-id.ts'
export type { GroupCancelReason, GroupOnError, GroupPhase, GroupResult, MemberEnd } from './task/group-states.ts'
export type { RunId } from './task/run-id.ts'
export type { AttemptEndState, AttemptState, CancelReason, EndReason, FinalStatus, Isolation } from './task/states.ts'
export { ATTEMPT_STATE_LABELS, isFinal, type TaskKind, type TaskStatus } from './task/states.ts'
export type { TaskId } from './task/task-id.ts'
export type { ExplainedTask, Progress, TaskGroup, TaskRecord, TaskRetry } from './task/task-record.ts'
export type { TraceContext } from './task/trace-context.ts'
export type { LaneWait, QueueWait, TimeWait, WaitsFor } from './task/waits-for.ts'

// Tasks over HTTP:

export type {
  ChangeDeadRequest,
  DeadTaskAction,
  DeadTaskFilter,
  DeadTaskPreview,
  DeadTaskRequest,
  DeadTaskRequestPage,
  Deleted,
  FingerprintCounts,
  Retried,
  RetryOneRequest,
} from './http/dead-tasks.ts'
// A diagnosis over HTTP:
export type { Diagnosis, DiagnosisCheck, Finding } from './http/diagnosis.ts'
export type { Problem } from './http/problem.ts'
export type { Cancellation, Cancelled, CancelOutcome, CancelPreview, CancelRequest } from './http/tasks/cancel.ts'
export type {
  Accepted,
  CallBackoff,
  CallOptions,
  CallRetry,
  Dropped,
  EnqueueRequest,
  ProducerOptions,
} from './http/tasks/enqueue.ts'
export type { BulkAccepted, BulkResponse, BulkResult, EnqueueBulkRequest } from './http/tasks/enqueue-bulk.ts'
export type {
  DisconnectReason,
  EventGap,
  GroupEnded,
  GroupSnapshot,
  QueueSnapshot,
  StreamedEvent,
  TaskSnapshot,
} from './http/tasks/streamed-events.ts'
export type { AttemptView, TaskPage, TaskView } from './http/tasks/task-view.ts'
export type { OnConflict, UniqueOptions } from './http/tasks/unique.ts'
// Orphaned keys over HTTP:

export type {
  DeleteOrphansRequest,
  Orphan,
  OrphanPage,
  OrphanReason,
  OrphanRef,
  OrphansDeleted,
} from './http/orphans.ts'

// Schedules over HTTP:

export type {
  ScheduleAction,
  ScheduleDeleted,
  ScheduleRequest,
  ScheduleSource,
  ScheduleStored,
  ScheduleSync,
  ScheduleTrouble,
  ScheduleView,
} from './http/schedules.ts'

// Groups over HTTP:

export type {
  AddToGroupRequest,
  CreateGroupRequest,
  GroupList,
  GroupResults,
  GroupSettings,
  GroupView,
  MemberOptions,
  MemberRequest,
  MemberResult,
  MembersAdded,
} from './http/groups.ts'

// The fleet over HTTP:

export type { BreakerView } from './fleet/breakers-view.ts'
export type { CommandOutcome, CommandPage, CommandRequest, CommandView, DrainMode, StopMode } from './fleet/commands.ts'
export type {
  FleetView,
  PoolPage,
  PoolView,
  QueueView,
  SlotPage,
  SlotView,
  WorkerView,
} from './fleet/fleet.ts'
export type { KeyBlock, KeyOrder, LimitSource, LimitsView } from './fleet/limits.ts'
export type { QueuePage, QueueStats } from './fleet/queues.ts'
export { POOL_STATE_LABELS, type PoolState, SLOT_STATE_LABELS, type SlotState } from './task/states.ts'

// The version of Bullpen:

export { VERSION } from './version.ts'

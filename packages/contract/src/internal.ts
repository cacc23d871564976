// For Bullpen's own packages only. These exports may change in any version.

export { type CallOutcome, type ClientErrorCode, ProblemError } from './client/problem-error.ts'
export type {
  BulkEnqueued,
  EnqueuedTask,
  EventTry,
  GroupTransport,
  RunTransport,
  TaskTransport,
  TransportEnqueue,
  TransportEvent,
  Try,
} from './client/task-transport.ts'
export { DURABILITIES } from './definition/durability.ts'
export { handlersByName, toHandlers } from './definition/erased-handlers.ts'
export { weightOf } from './definition/fairness.ts'
export { DEFAULT_KEPT_EVENTS, MIN_KEPT_EVENTS } from './definition/kept-events.ts'
export { DEFAULT_BREAKER } from './definition/limits/breakers.ts'
export {
  ENQUEUE_RATE_FORM,
  formatEnqueueRate,
  MAX_ENQUEUE_RATE,
  readEnqueueRate,
} from './definition/limits/enqueue-rate.ts'
export { whenFullSchema } from './definition/limits/when-full.ts'
export { handlerLog, LOG_LEVELS } from './definition/log.ts'
export { nearest, suggestion } from './definition/nearest.ts'
export { MAX_PRIORITY } from './definition/priority.ts'
export {
  BACKOFF_SETTINGS,
  BACKOFF_TYPES,
  DEFAULT_BACKOFF,
  MAX_ATTEMPTS,
  MAX_FACTOR,
} from './definition/retry/retry-policy.ts'
export { contradictionIn } from './definition/timeouts.ts'
export { bytes, formatBytes } from './definition/units/bytes.ts'
export { type DurationRange, limitMs, millisecondsOrZero, millisecondsWithin } from './definition/units/duration.ts'
export { errorAt } from './errors/error-at.ts'
export { ERRORS } from './errors/errors.ts'
export type { DeclaredFailure } from './errors/failure.ts'
export { bodyErrors, fieldErrorText, MAX_ERRORS, parameterErrors } from './errors/field-error.ts'
export { describeIssue } from './errors/issue-messages.ts'
export { QUEUE_FULL_RETRY_AFTER_MS } from './errors/queue-full.ts'
export { withoutEffect } from './errors/without-effect.ts'
export {
  COMMAND_ID,
  COMMAND_WAIT_S,
  COMMANDED_LEVELS,
  type CommandedLevel,
  type CommandSpec,
  commandPageSchema,
  commandQuerySchema,
  commandRequestSchema,
  commandsQuerySchema,
  commandViewSchema,
  commandWaitSchema,
  DRAIN_MODES,
  MAX_CONCURRENCY,
  MAX_RATE,
  type ResponseOutcome,
} from './fleet/commands.ts'
export {
  ENDED_POOL_STATES,
  fleetQuerySchema,
  fleetViewSchema,
  poolPageSchema,
  poolQuerySchema,
  slotPageSchema,
  slotQuerySchema,
} from './fleet/fleet.ts'
export { KEY_ORDERS, limitsQuerySchema, limitsViewSchema, MAX_SINGLE_KEYS } from './fleet/limits.ts'
export { queuePageSchema, queuesQuerySchema } from './fleet/queues.ts'
export { API_KEY_NAME, API_KEY_NAME_FORM, MIN_API_KEY_LENGTH } from './http/api-key-name.ts'
export {
  changeDeadQuerySchema,
  changeDeadSchema,
  DEAD_TASK_ACTIONS,
  DEAD_TASK_RATE,
  deadPreviewSchema,
  deadQuerySchema,
  deadRequestPageSchema,
  deadRequestSchema,
  deadRequestsQuerySchema,
  deletedSchema,
  deleteOneQuerySchema,
  fingerprintCountsSchema,
  fingerprintsQuerySchema,
  retriedSchema,
  retryOneSchema,
  stopDeadSchema,
} from './http/dead-tasks.ts'
export { DIAGNOSIS_CHECKS, diagnosisSchema } from './http/diagnosis.ts'
export {
  addToGroupBodySchema,
  cancelGroupSchema,
  createGroupBodySchema,
  groupListSchema,
  groupPath,
  groupQuerySchema,
  groupResultsQuerySchema,
  groupResultsSchema,
  groupSettingsSchema,
  groupsQuerySchema,
  groupViewSchema,
  membersAddedSchema,
  sealGroupSchema,
  uncheckedGroupBodySchema,
  uncheckedMembersBodySchema,
} from './http/groups.ts'
export {
  deleteOrphansSchema,
  MAX_DELETED_ORPHANS,
  ORPHAN_REASONS,
  orphanPageSchema,
  orphansDeletedSchema,
  orphansQuerySchema,
} from './http/orphans.ts'
export {
  cancelRunSchema,
  runErrorsQuerySchema,
  runErrorsSchema,
  runListSchema,
  runPath,
  runQuerySchema,
  runViewSchema,
  startRunSchema,
} from './http/pipelines.ts'
export { PROBLEM_CONTENT_TYPE, problemSchema, REFUSALS } from './http/problem.ts'
export { enqueueQuerySchema, listQuerySchema, MAX_WAIT_S, PAGINATION, waitSchema } from './http/queries.ts'
export {
  MAX_NEXT_RUNS,
  SCHEDULE_TROUBLES,
  type ScheduleList,
  scheduleChangeSchema,
  scheduleDeletedSchema,
  scheduleListSchema,
  schedulePath,
  schedulePutSchema,
  scheduleQuerySchema,
  scheduleStoredSchema,
  scheduleSyncSchema,
  schedulesQuerySchema,
  scheduleViewSchema,
  syncQuerySchema,
} from './http/schedules.ts'
export {
  CANCEL_OUTCOMES,
  type CancelAnswer,
  cancelFilterSchema,
  cancellationSchema,
  cancelledSchema,
  cancelManyQuerySchema,
  cancelOneQuerySchema,
  cancelOneSchema,
  cancelPreviewSchema,
} from './http/tasks/cancel.ts'
export {
  acceptedSchema,
  callOptionsSchema,
  childOptionsSchema,
  droppedSchema,
  enqueueBodySchema,
  producerOptionsSchema,
} from './http/tasks/enqueue.ts'
export {
  bulkResponseSchema,
  enqueueBulkBodySchema,
  MAX_ATOMIC_TASKS,
  MAX_BULK_TASKS,
  uncheckedBulkBodySchema,
} from './http/tasks/enqueue-bulk.ts'
export {
  IDEMPOTENCY_KEY_FORM,
  type IdempotencyKeyHeader,
  MAX_IDEMPOTENCY_KEY,
  readIdempotencyKey,
} from './http/tasks/idempotency-key.ts'
export { taskLinks, taskPath } from './http/tasks/links.ts'
export { taskView } from './http/tasks/record-view.ts'
export {
  DISCONNECT_REASONS,
  eventsQuerySchema,
  groupStreamSchema,
  queueStreamSchema,
  streamedEvent,
  taskStreamSchema,
} from './http/tasks/streamed-events.ts'
export { attemptViewSchema, taskPageSchema, taskViewSchema } from './http/tasks/task-view.ts'
export { KEY_RELEASES, ON_CONFLICT } from './http/tasks/unique.ts'
export { waitText } from './http/tasks/wait-text.ts'
export { WAIT_KINDS } from './http/tasks/wait-view.ts'
export { optionalTime, timeText } from './http/times.ts'
export { unmarked } from './pipeline/cursor.ts'
export { tasksOf } from './pipeline/fleet-pipeline.ts'
export { described, EXPECTED_ITERABLE, isIterable } from './pipeline/iterable.ts'
export type { FoldStage, MapStage, ReduceStage, SourceStage, Stage } from './pipeline/pipeline-definition.ts'
export { batchSize, type PipelineSection, sectionsOf, stageRoom } from './pipeline/pipeline-sections.ts'
export type { PipelineHandler } from './pipeline/stage-definitions.ts'
export {
  REDIS_URLS,
  type RedisAddress,
  type RedisClusterAddress,
  type RedisNode,
  type RedisServerAddress,
  type RedisTlsFiles,
  readRedisUrl,
  withTlsFiles,
} from './redis-url.ts'
export { repeatedOption } from './repeated-option.ts'
export { scheduleFrom } from './schedule/schedule-definition.ts'
export { catchUpLimit, MAX_WAITING_RUNS, OVERLAPS } from './schedule/schedule-policies.ts'
export { newestTicks, nextTick, nextTicks } from './schedule/ticks.ts'
export { attemptRecordSchema } from './task/attempt-record.ts'
export { BREAKER_MODES, BREAKER_STATES } from './task/breaker-states.ts'
export { isStored } from './task/enqueued.ts'
export { ENVELOPE_VERSION, type Envelope, envelopeSchema, type StoredSuccess, successSchema } from './task/envelope.ts'
export {
  EVENT_LOG_LEVELS,
  type EventBody,
  MAX_EVENT_TEXT,
  MAX_LOG_EVENT_BYTES,
  MAX_LOG_EVENTS,
} from './task/event-body.ts'
export { COMMIT_REFUSALS } from './task/events.ts'
export {
  countNamed,
  decodeLines,
  decodeNext,
  encodeLines,
  encodeNext,
  FOLLOW_UP_LETTERS,
  type FollowUpKind,
  MAX_FOLLOW_UP_BYTES,
  MAX_FOLLOW_UPS,
  MAX_NESTED_FOLLOW_UPS,
  NEXT_LETTER,
  parseTemplate,
  type StoredFollowUp,
  type StoredTemplate,
  storedTemplateSchema,
} from './task/follow-up.ts'
export { createGroupId, groupId, readGroupId } from './task/group-id.ts'
export {
  GROUP_KEEP,
  GROUP_ON_ERROR,
  GROUP_TOTAL_TIMEOUT,
  MAX_GROUP_MEMBERS,
  MAX_GROUP_QUEUES,
  MAX_MEMBERS_AT_ONCE,
  MEMBER_ENDS,
} from './task/group-states.ts'
export { createIncarnation, createRunId, newRunId, readRunId, runId } from './task/run-id.ts'
export {
  ATTEMPT_END_STATES,
  ATTEMPT_STATES,
  END_REASONS,
  FINAL_STATUSES,
  ISOLATIONS,
  POOL_STATES,
  SLOT_STATES,
  TASK_STATUSES,
} from './task/states.ts'
export { createTaskId, ID_RANDOM_BYTES, QUEUE_NAME, readTaskId, taskId } from './task/task-id.ts'
export { readTraceContext, traceIdOf } from './task/trace-context.ts'
export { MAX_AHEAD } from './task/waits-for.ts'

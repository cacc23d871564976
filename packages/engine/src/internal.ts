// For Bullpen's own packages only. These exports may change in any version.

export {
  countsApiKeys,
  type LimitedTokens,
  limitedTokens,
  rateExceeded,
  rateInQueue,
} from './admission/api-key-limits.ts'
export { refusedTogether } from './admission/atomic-room.ts'
export { type BlockedCallers, createBlockedCallers } from './admission/blocked-callers.ts'
export { type BacklogReading, createStartEstimator, type StartEstimator } from './admission/start-estimator.ts'
export { afterStart, nextStart } from './admission/start-rate.ts'
export { TASK_OVERHEAD_BYTES, taskBytes, tooLargeForQueue } from './admission/task-bytes.ts'
export { msUntilTokens, type TokenBucket, tokensIn } from './admission/token-bucket.ts'
export type { Attempt } from './attempt/attempt.ts'
export { decodeTask } from './attempt/decode.ts'
export { emitSettled } from './attempt/finish.ts'
export { inlined } from './attempt/inlined.ts'
export { InterruptibleRun } from './attempt/interruptible-run.ts'
export { createRegistry, type QuarantineProcesses, type Registry } from './attempt/registry.ts'
export { type RunnerHost, type RunningAttempt, runAttempt, runDecoded } from './attempt/runner.ts'
export { DEFAULT_TIMEOUTS, type Timeouts } from './attempt/timeouts.ts'
export { type AsyncContext, attributeUncaught, type UncaughtFate } from './attempt/uncaught.ts'
export {
  admit,
  type Breaker,
  BUCKETS,
  type Bucket,
  newBreaker,
  OPEN_JITTER,
  record,
  setMode,
  startsAt,
} from './breaker/breaker.ts'
export { type Admission, breakerStatus, QueueBreakers, type StoredBreaker } from './breaker/queue-breakers.ts'
export { lowerAscii, matchesDead } from './dead-tasks/dead-filter.ts'
export { type ErrorKind, errorKind, MAX_FINGERPRINTS, OTHER_FINGERPRINT } from './dead-tasks/fingerprint.ts'
export { retryCopy, retryCopyId } from './dead-tasks/retry-copy.ts'
export { catalogueDigests } from './diagnosis/catalogue-digest.ts'
export { RECENT_ENDS_MS } from './diagnosis/dead-tasks.ts'
export { diagnose, diagnoseWithoutStore } from './diagnosis/diagnose.ts'
export type {
  DiagnosisFacts,
  LeadershipFacts,
  LostTasksFacts,
  QueueFacts,
  ServerFacts,
  UnreachableNode,
} from './diagnosis/facts.ts'
export { aboutStored, endOf, enqueuedEvent, verdictEvent } from './events/event-bodies.ts'
export { createEventFeeds, type EventFeeds } from './events/event-feeds.ts'
export { compareEventIds } from './events/event-ids.ts'
export { openQueueStream, type QueueItem, queuesWithEvents } from './events/event-streams.ts'
export { type GroupItem, openGroupStream } from './events/group-stream.ts'
export { openTaskStream, type TaskItem } from './events/task-stream.ts'
export { FORGOTTEN_AFTER_MS, HEARTBEAT_INTERVAL_MS, isAlive, outcomeOf, SILENT_AFTER_MS } from './fleet/fleet.ts'
export { followUpQueues, planFollowUps } from './follow-ups/plan.ts'
export { parseIdentity } from './follow-ups/registered-task.ts'
export { COMPENSATION_SLOTS, HANDLER_SLOT, releasedBy, releasedCompensation } from './follow-ups/released.ts'
export {
  type ForwardedTask,
  followUpLines,
  forwardedTask,
  groupFollowUpLines,
  type ReleasedFollowUp,
  releaseDigest,
} from './follow-ups/template.ts'
export { addRefused, groupExists, groupNotFound } from './groups/group-errors.ts'
export { groupReleases } from './groups/group-follow-ups.ts'
export { checkMember, NOT_FOR_MEMBERS, newGroup } from './groups/group-settings.ts'
export {
  addMembers,
  cancelGroup,
  createGroup,
  endMember,
  FORCED_END_MS,
  type GroupModel,
  type GroupStep,
  sealGroup,
  visitGroup,
} from './groups/group-state.ts'
export { groupResults, groupView } from './groups/group-view.ts'
export { groupRuleId, memberDigest, memberId, memberTask, memberTemplate } from './groups/member-task.ts'
export { membersPage } from './groups/members-page.ts'
export { ATTEMPT_TRANSITIONS } from './machines/attempt-machine.ts'
export { POOL_TRANSITIONS } from './machines/pool-machine.ts'
export { SLOT_TRANSITIONS } from './machines/slot-machine.ts'
export { assertTransition, type Transitions } from './machines/state-machine.ts'
export { keeperOf, MAX_PASSED_BYTES, REFERENCE_MARK } from './pipelines/kept-input.ts'
export { planRun } from './pipelines/plan-run.ts'
export { runNotEnded, runNotFound } from './pipelines/run-errors.ts'
export { type EndedRunTask, type RunEffect, type RunModel, type RunStep, runTaskName } from './pipelines/run-model.ts'
export {
  emitItems,
  endRunTasks,
  FORCED_RUN_END_MS,
  freeOf,
  startRun,
  stopRun,
  visitRun,
} from './pipelines/run-state.ts'
export {
  type RunTemplates,
  runOfToken,
  runRuleId,
  runTask,
  runTaskId,
  runTemplates,
  runToken,
  storedRunDefinition,
  withKeptInput,
} from './pipelines/run-task.ts'
export { detailedRunView, runErrors, runView } from './pipelines/run-view.ts'
export { startedRun } from './pipelines/started-run.ts'
export { type DrainLimits, drainLimits } from './pool/drain.ts'
export { createOnlineGroup, type OnlineGroup } from './pool/online-group.ts'
export { createPool } from './pool/pool.ts'
export type { OnlineReport, Pool, PoolOptions } from './pool/pool-types.ts'
export type * from './ports/attempt-result.ts'
export type * from './ports/broker/breakers.ts'
export type * from './ports/broker/cancelling.ts'
export type * from './ports/broker/concurrency-keys.ts'
export type * from './ports/broker/dead-tasks.ts'
export type * from './ports/broker/groups.ts'
export { REPEATS_WITHIN_MS } from './ports/broker/new-task.ts'
export type * from './ports/broker/orphans.ts'
export type * from './ports/broker/queue-head.ts'
export type * from './ports/broker/retention.ts'
export type * from './ports/broker/runs.ts'
export type * from './ports/broker/schedules.ts'
export type * from './ports/clock.ts'
export type * from './ports/consumer.ts'
export type * from './ports/enqueue-rates.ts'
export * from './ports/events.ts'
export type * from './ports/fleet.ts'
export type * from './ports/isolator.ts'
export type * from './ports/steps.ts'
export type { Survival } from './quarantine/decision.ts'
export { createQuarantine, type Quarantine, type QuarantineProcessPool } from './quarantine/quarantine.ts'
export { redactedInput } from './redaction/redacted-input.ts'
export { openResources, type ResourceOpener, type ResourceOpeners } from './resources.ts'
export { openDeclareLoop } from './schedule/declare-loop.ts'
export { type DueSchedulesOptions, runDueSchedules } from './schedule/due-schedules.ts'
export { declared, type Editions, FORGET_EDITION_MS, KEEP_EDITIONS_MS } from './schedule/editions.ts'
export type { ScheduleChange } from './schedule/schedule-diff.ts'
export { SCHEDULE_LABELS, type ScheduleRecord, settingsOf } from './schedule/schedule-record.ts'
export { createSchedules } from './schedule/schedules.ts'
export { type Trouble, troublesOf } from './schedule/trouble.ts'
export { countTroubles, type ReportedTrouble, type TroubleCounts, troubleChanges } from './schedule/trouble-changes.ts'
export { checkAtomic, errorOfAll, mapTasks, queueOfAll } from './task/atomic-tasks.ts'
export {
  type CancelCandidate,
  covers,
  groupIn,
  matches,
  retriedAtOf,
  stopsRunning,
  tagsOf,
} from './task/cancel-filter.ts'
export { outcomeNow, stoppable } from './task/cancel-outcome.ts'
export { checkInput, checkProduced } from './task/check-call.ts'
export { editedEnvelope, envelopeText, retriedEnvelope } from './task/envelope.ts'
export { invalidRequest } from './task/invalid-request.ts'
export { capacitiesOf, definitionLimiter, limiterOf, needsOf, parseLimiter, permitsLimiter } from './task/needs.ts'
export { newTask } from './task/new-task.ts'
export { inputJson } from './task/payload/input-json.ts'
export { decodePayload, decodeStep, encodePayload, encodeStep } from './task/payload/payloads.ts'
export {
  BATCH_MARK,
  batchText,
  decodeInput,
  decodeValue,
  encodeValue,
  textOfResult,
} from './task/payload/value-text.ts'
export { keyReused, taskNotFound } from './task/task-errors.ts'
export {
  endWithoutStart,
  MAX_ATTEMPT_RECORDS,
  MAX_LOSSES,
  MAX_RETRY_RECORDS,
  statusOfDelayed,
  statusOfEnded,
} from './task/task-status.ts'
export {
  extendedSpan,
  hasKey,
  type KeyConflict,
  type KeyOwner,
  type KeySpan,
  keySpan,
  nameOfKey,
  resolveConflict,
  uniqueKeyTaken,
} from './task/unique-key.ts'
export { clockFrom } from './time/clock.ts'
export { createRestartBackoff } from './time/restart-backoff.ts'
export { ReusableTimer } from './time/reusable-timer.ts'
export { tracedBroker } from './traces/traced-broker.ts'
export { backoffMs } from './verdict/backoff.ts'
export {
  admitRetry,
  BUDGET_WINDOW_S,
  type BudgetDecision,
  type BudgetUse,
  countAttempt,
  endRetry,
  GAP,
  intervalMs,
  MAX_RELEASED,
  MOVED_UP,
  unusedBudget,
} from './verdict/retry-budget.ts'
export { RetryBudgets } from './verdict/retry-budgets.ts'
export { readable } from './verdict/thrown.ts'
export { countsAsAttempt } from './verdict/verdict.ts'
export { explained, isRunning, livePools, type WaitFacts, type WaitPool, whyWaiting } from './waits/wait-reason.ts'

// For Bullpen's own packages: may change with any version.

export type { Attempt } from './attempt/attempt.ts'
export { ATTEMPT_TRANSITIONS } from './attempt/attempt-machine.ts'
export { backoffMs } from './attempt/backoff.ts'
export { type DecodedTask, decodeTask } from './attempt/decode.ts'
export { type AsyncContext, attributeUncaught, type UncaughtFate } from './attempt/escapes.ts'
export { declaredFailure, type Outcome, outcomeOfThrow } from './attempt/outcome.ts'
export { createRegistry, type Registry, type RegistryOptions } from './attempt/registry.ts'
export { type AttemptResult, type RunnerHost, runAttempt, runDecoded } from './attempt/runner.ts'
export { Snooze } from './attempt/snooze.ts'
export { type StepLookup, type StepStore, Steps } from './attempt/steps.ts'
export { DEFAULT_TIMEOUTS, type Timeouts } from './attempt/timeouts.ts'
export type { Verdict } from './attempt/verdict.ts'
export {
  type Command,
  type CommandAnswer,
  type CommandRecord,
  type Fleet,
  FORGOTTEN_AFTER_MS,
  HEARTBEAT_INTERVAL_MS,
  type HeartbeatReply,
  isAlive,
  outcomeOf,
  type QueueSettings,
  type RegisteredWorker,
  recipients,
  SILENT_AFTER_MS,
  type WorkerStatus,
} from './fleet/fleet.ts'
export { type DrainLimits, drainLimits } from './pool/drain-deadline.ts'
export type { NamedTask } from './pool/drain-report.ts'
export { createPool } from './pool/pool.ts'
export { POOL_TRANSITIONS } from './pool/pool-machine.ts'
export type { ConsumerHost, OnlineReport, Pool, PoolOptions } from './pool/pool-types.ts'
export { type CloseReason, Slot } from './pool/slot.ts'
export { SLOT_TRANSITIONS } from './pool/slot-machine.ts'
export type { LocalCancel } from './pool/slots.ts'
export { assertTransition, type Transitions } from './pool/state-machine.ts'
export type { Consumer, RunTask } from './ports/consumer.ts'
export type { IsolateCalls, IsolatedRun, IsolatedTask, Isolator } from './ports/isolator.ts'
export type { Clock, FetchedTask, KeptSteps, Random, Timer } from './ports/ports.ts'
export {
  type OpenResources,
  openResources,
  type ResourceOpener,
  type ResourceOpeners,
} from './resources.ts'
export {
  type CancelCandidate,
  type CancelFilter,
  type CancelProgress,
  type CancelRule,
  matches,
  stopsRunning,
  tagsOf,
} from './task/cancel-filter.ts'
export { storedEnvelope } from './task/envelope.ts'
export { newTask, type Origin } from './task/new-task.ts'
export { endWithoutStart, MAX_ATTEMPT_RECORDS, MAX_DEATHS, statusOfDelayed, statusOfEnded } from './task/task-status.ts'
export { clockFrom } from './time/clock.ts'
export { createRestartBackoff, type RestartBackoff, type RestartLimits, restartDelay } from './time/restart-backoff.ts'
export { settlesWithin } from './time/with-timeout.ts'

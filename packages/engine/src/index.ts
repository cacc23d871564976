// The engine's public surface.

export type { Attempt } from './attempt.ts'
export { ATTEMPT_TRANSITIONS } from './attempt-machine.ts'
// Cancelling
export {
  type CancelFilter,
  type CancelProgress,
  type CancelRule,
  type Coverable,
  covers,
  stopsRunning,
  tagsOf,
} from './cancel-rule.ts'
// Time
export { clockFrom } from './clock.ts'
// Pools
export type { LocalCancel } from './crew.ts'
export type { DrainReport, NamedTask } from './drain-report.ts'
// Running attempts
export { type AsyncContext, chargeEscape, type EscapeFate } from './escapes.ts'
export type { Feed, Work } from './feed.ts'
// The fleet
export {
  BEAT_EVERY_MS,
  type Command,
  type CommandAnswer,
  type CommandRecord,
  type Fleet,
  FORGOTTEN_AFTER_MS,
  isAlive,
  outcomeOf,
  type PoolStatus,
  type ProcessStatus,
  type QueueSwitches,
  type RegisteredProcess,
  recipients,
  SILENT_AFTER_MS,
  type Told,
} from './fleet.ts'
// Isolation
export type { IsolateCalls, IsolatedRun, IsolatedTask, Isolator } from './isolator.ts'
export { DEFAULT_LIMITS, type Limits } from './limits.ts'
export type { Middleware } from './middleware.ts'
export { newTask, type Origin } from './new-task.ts'
export { declared, type Outcome, outcomeOfThrow } from './outcome.ts'
export { makePool } from './pool.ts'
export { POOL_TRANSITIONS } from './pool-machine.ts'
export type { FedPool, OnlineReport, Pool, PoolOptions } from './pool-types.ts'
// Ports
export type {
  Broker,
  Clock,
  EventSink,
  KeptSteps,
  ListQuery,
  NewTask,
  Page,
  Random,
  TakenTask,
  Timer,
} from './ports.ts'
export { type Reading, readTask } from './reading.ts'
export { makeRegistry, type Registry, type RegistryOptions } from './registry.ts'
export { type Conclusion, type RunnerHost, runAttempt, runReading } from './runner.ts'
// Settings
export {
  checkSettings,
  flagOf,
  type PartialSettings,
  readSettings,
  type Setting,
  type SettingsOf,
  type SettingsRule,
  type SettingsSources,
  type SettingsTable,
  wholeNumber,
} from './settings.ts'
export { Snooze } from './snooze.ts'
// How tasks stand
export { DEATHS_AT_MOST, endWithoutStart, HISTORY_LENGTH, statusOfDelayed, statusOfEnded } from './standing.ts'
// State machines
export { assertTransition, type Transitions } from './state-machine.ts'
export { type FoundStep, type StepKeeper, Steps } from './steps.ts'
export { storedEnvelope } from './stored-envelope.ts'
// Drains
export { type DrainLimits, drainLimits } from './urgency.ts'
export type { Verdict } from './verdict.ts'
export { type CloseReason, Worker, type WorkerStatus } from './worker.ts'
export { WORKER_TRANSITIONS } from './worker-machine.ts'

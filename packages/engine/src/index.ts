// The engine's public surface.

export type { Attempt } from './attempt/attempt.ts'
export { ATTEMPT_TRANSITIONS } from './attempt/attempt-machine.ts'
export { type Reading, readTask } from './attempt/decode.ts'
// Running attempts
export { type AsyncContext, chargeEscape, type EscapeFate } from './attempt/escapes.ts'
export type { Middleware } from './attempt/middleware.ts'
export { declared, type Outcome, outcomeOfThrow } from './attempt/outcome.ts'
export { makeRegistry, type Registry, type RegistryOptions } from './attempt/registry.ts'
export { type Conclusion, type RunnerHost, runAttempt, runReading } from './attempt/runner.ts'
export { Snooze } from './attempt/snooze.ts'
export { type FoundStep, type StepKeeper, Steps } from './attempt/steps.ts'
export { DEFAULT_LIMITS, type Limits } from './attempt/timeouts.ts'
export type { Verdict } from './attempt/verdict.ts'
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
} from './fleet/fleet.ts'
// Time
export { clockFrom } from './pool/clock.ts'
// Drains
export { type DrainLimits, drainLimits } from './pool/drain-deadline.ts'
export type { DrainReport, NamedTask } from './pool/drain-report.ts'
export { makePool } from './pool/pool.ts'
export { POOL_TRANSITIONS } from './pool/pool-machine.ts'
export type { FedPool, OnlineReport, Pool, PoolOptions } from './pool/pool-types.ts'
export { type CloseReason, Worker, type WorkerStatus } from './pool/slot.ts'
export { WORKER_TRANSITIONS } from './pool/slot-machine.ts'
// Pools
export type { LocalCancel } from './pool/slots.ts'
// State machines
export { assertTransition, type Transitions } from './pool/state-machine.ts'
export type { Feed, Work } from './ports/consumer.ts'
// Isolation
export type { IsolateCalls, IsolatedRun, IsolatedTask, Isolator } from './ports/isolator.ts'
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
} from './ports/ports.ts'
// Cancelling
export {
  type CancelFilter,
  type CancelProgress,
  type CancelRule,
  type Coverable,
  covers,
  stopsRunning,
  tagsOf,
} from './task/cancel-filter.ts'
export { storedEnvelope } from './task/envelope.ts'
export { newTask, type Origin } from './task/new-task.ts'
// How tasks stand
export { DEATHS_AT_MOST, endWithoutStart, HISTORY_LENGTH, statusOfDelayed, statusOfEnded } from './task/task-status.ts'

// The engine's public surface.

export type { Attempt } from './attempt.ts'
// Running attempts
export { type AsyncContext, chargeEscape, type EscapeFate } from './escapes.ts'
export type { Interruption } from './interruption.ts'
// Isolation
export type { IsolateCalls, IsolatedRun, IsolatedTask, Isolator } from './isolator.ts'
export type { Limits } from './limits.ts'
export type { Middleware } from './middleware.ts'
export { declared, type Outcome, outcomeOfThrow } from './outcome.ts'
export { POOL_TRANSITIONS } from './pool-machine.ts'
// Ports
export type { Broker, Clock, EventSink, ListQuery, NewTask, Page, Random, TakenTask } from './ports.ts'
export { makeRegistry, type Registry } from './registry.ts'
export { type Conclusion, type RunnerHost, runAttempt } from './runner.ts'
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
// State machines
export { assertTransition, type Transitions } from './state-machine.ts'
export type { Verdict } from './verdict.ts'

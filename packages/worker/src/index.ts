// Exports the worker's public API.

export {
  type Setting,
  type SettingsTable,
  WORKER_RULES,
  WORKER_SETTINGS,
  type WorkerConfig,
  type WorkerSettings,
  workerConfig,
} from '@bullpen/config'
export type { Middleware, PayloadCodec } from '@bullpen/engine'
export type { ResourceOpener, ResourceOpeners } from '@bullpen/engine/internal'
export {
  type BullpenWorker,
  createWorker,
  type DrainOptions,
  type OnlineGroupSummary,
  type OnlineSummary,
} from './create-worker.ts'
export type { DrainSummary } from './drain-summary.ts'
export type { WorkerState } from './lifecycle.ts'
export type { WorkerOptions } from './open-worker.ts'
export { runUntilSignalled } from './run-until-signalled.ts'

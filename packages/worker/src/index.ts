// The worker's public surface.

export { WORKER_RULES, WORKER_SETTINGS, type WorkerConfig, type WorkerSettings } from '@bullpen/config'
export { type BullpenWorker, createWorker, type WorkerOptions } from './create-worker.ts'
export type { ResourceOpener, ResourceOpeners } from './resources.ts'
export { runUntilSignalled } from './run-until-signalled.ts'

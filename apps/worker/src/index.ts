// The worker's public surface.
export { type BullpenWorker, createWorker, type WorkerOptions } from './create-worker.ts'
export type { ResourceOpener, ResourceOpeners } from './resource-stack.ts'
export { runUntilSignalled } from './run-until-signalled.ts'
export { WORKER_RULES, WORKER_SETTINGS, type WorkerConfig, type WorkerSettings } from './settings.ts'

// Exports the client's public API.
export {
  type Client,
  type ClientOptions,
  createClient,
  type EnqueueOptions,
  type TaskOf,
} from './client.ts'
export type { FleetOrder } from './fleet-calls.ts'
export { type ClientErrorCode, ProblemError } from './problem-error.ts'
export { TaskEndedError } from './task-ended-error.ts'

// Gives a BullMQ Worker that a team keeps itself the scripts that Bullpen's own Workers have.
import { RedisQueueBackend, type Worker } from 'bullmq'
import { composeBackend } from './internals/backend.ts'

/**
 * Makes the Worker's scripts store what Bullpen stores with each move of a task: its status, the record of an attempt that was
 * requeued, snoozed or lost, and the totals. Call it once for each Worker, before the Worker fetches its first job. Idempotent.
 * A Worker on a backend other than Redis is returned unchanged.
 */
export function attach<W extends Worker>(worker: W): W {
  const backend: unknown = worker.getBackend()
  if (backend instanceof RedisQueueBackend) composeBackend(backend, { now: Date.now })
  return worker
}

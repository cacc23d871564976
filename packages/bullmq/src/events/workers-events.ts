// Collects the events of the attempts that a plain processor runs, for each Worker that it serves.
import type { Job, Worker } from 'bullmq'
import { clientOf, workerOf } from '../internals/worker/job-scripts.ts'
import { createEventBuffer, type EventBuffer } from './event-buffer.ts'
import { eventSenderOnClient } from './event-sender.ts'

/** Returns a buffer that sends each Worker's events over that Worker's connection. */
export function workersEvents(): EventBuffer {
  const buffers = new WeakMap<Worker | typeof NO_WORKER, EventBuffer>()
  const bufferOf = (job: Job): EventBuffer => {
    const worker = workerOf(job) ?? NO_WORKER
    const known = buffers.get(worker)
    if (known !== undefined) return known
    const base = job.queueQualifiedName
    const keys = { base: `${base}:`, eventBatch: (process: string) => `${base}:event-batch:${process}` }
    const created = createEventBuffer({ send: eventSenderOnClient(() => clientOf(job), keys), now: Date.now })
    buffers.set(worker, created)
    return created
  }
  return {
    open: (job, token) => bufferOf(job).open(job, token),
    close: (job, result) => bufferOf(job).close(job, result),
    death: (job, reason) => bufferOf(job).death(job, reason),
  }
}

/** In place of the Worker of jobs whose backend is not Redis. Their events are not sent. */
const NO_WORKER = {}

// Refuses to run jobs for a Worker that lacks Bullpen's scripts, because those tasks would end up with the wrong status, or that was
// attached without the catalogue whose limits its queue has, because nothing would be limited.
//
// A processor cannot inspect its Worker until the first job arrives, so that job has already been fetched. It is put back at the
// head of its queue, without an attempt or a start being counted. The Worker is then paused, so that it does not fetch the job
// again.
import { BullpenError } from '@bullpen/contract'
import { type Job, type RedisQueueBackend, WaitingError } from 'bullmq'
import { composeBackend, expectEnd, isComposed, isRedisBackend, preparesFetches } from '../composition/backend.ts'
import { backendOf, workerOf } from './job-scripts.ts'

/** Returns whether the job's Worker should have been passed to `attach` but was not. Only Workers on Redis need `attach`. */
export function isUnattached(job: Job): boolean {
  const backend = backendOf(job)
  return !isComposed(backend) && isRedisBackend(backend)
}

/** Returns whether the job's Worker was attached without a catalogue, so that it has not stored what the catalogue limits. */
export function isAttachedWithoutCatalogue(job: Job): boolean {
  const backend = backendOf(job)
  return isRedisBackend(backend) && !preparesFetches(backend)
}

/**
 * Pauses the Worker, which reports one error however many jobs it has fetched, and returns the job to its queue. If Redis does
 * not respond, the job stays active until its lock expires, and is then recovered like the job of a process that died.
 */
export async function refuse(job: Job, token: string, reason: (queue: string) => BullpenError): Promise<never> {
  const worker = workerOf(job)
  if (!worker.isPaused()) {
    void worker.pause(true)
    worker.emit('error', reason(worker.name))
  }
  await release(job, token).catch((error: Error) => worker.emit('error', error))
  throw new WaitingError()
}

/**
 * Returns the job to its queue through a second backend that shares the Worker's connection. Bullpen's scripts are not installed
 * on the Worker's own backend, because the Worker would then be treated as attached.
 */
async function release(job: Job, token: string): Promise<void> {
  const { id = '' } = job
  const backend = backendOf(job)
  if (!isRedisBackend(backend)) return
  // Its type is that of any backend, but its class is that of the Worker's backend.
  const sibling = backend.forQueue(job.queueName) as RedisQueueBackend
  composeBackend(sibling, { now: Date.now })
  expectEnd(sibling, { id, verdict: 'released' })
  await sibling.moveJobFromActiveToWait(id, token)
}

export function limitsNotStored(queue: string): BullpenError {
  return new BullpenError(
    'invalid_configuration',
    `the catalogue of Bullpen's processor limits tasks of queue '${queue}', but the Worker was attached without the catalogue, so nothing would ` +
      'be limited; the Worker has been paused, and its jobs are back in the queue; call attach(worker, { catalogue }) directly after new ' +
      'Worker(…), and start the Worker again',
  )
}

export function notAttached(queue: string): BullpenError {
  return new BullpenError(
    'invalid_configuration',
    `the Worker for queue '${queue}' runs Bullpen's processor without Bullpen's scripts; the Worker has been paused, and its jobs are back in ` +
      "the queue; call attach(worker), which '@bullpen/bullmq' exports, directly after new Worker(…), and start the Worker again",
  )
}

// Refuses the jobs of a Worker that lacks the composed scripts, so that nobody runs tasks whose status would then be wrong.
//
// A Worker does not show itself to its processor before its first job. That job is therefore fetched, and is returned to the head
// of its queue as if it had not been: with no attempt and no start counted. The Worker is paused, so that it does not fetch the
// job again.
import { BullpenError } from '@bullpen/contract'
import { type Job, type RedisQueueBackend, WaitingError } from 'bullmq'
import { composeBackend, isComposed, isRedisBackend, setExtras } from './backend.ts'
import { backendOf, workerOf } from './job-scripts.ts'

/** Whether the job's Worker needs `attach` and has not been given to it. Backends other than Redis have nothing to attach. */
export function isUnattached(job: Job): boolean {
  const backend = backendOf(job)
  return !isComposed(backend) && isRedisBackend(backend)
}

/**
 * Pauses the Worker, which reports one error however many jobs it has fetched, and returns the job to its queue. If Redis does not
 * answer, the job stays active until its lock expires, and is then recovered like the job of a process that died.
 */
export async function refuse(job: Job, token: string): Promise<never> {
  const worker = workerOf(job)
  if (!worker.isPaused()) {
    void worker.pause(true)
    worker.emit('error', notAttached(worker.name))
  }
  await release(job, token).catch((error: Error) => worker.emit('error', error))
  throw new WaitingError()
}

/** The Worker's own backend must stay as it is, or the Worker would count as attached. A sibling shares its connection. */
async function release(job: Job, token: string): Promise<void> {
  const { id = '' } = job
  const backend = backendOf(job)
  if (!isRedisBackend(backend)) return
  // Its type is that of any backend, but it is one of the same class.
  const sibling = backend.forQueue(job.queueName) as RedisQueueBackend
  composeBackend(sibling, { now: Date.now })
  setExtras(sibling, 'moveJobFromActiveToWait', id, { uncount: '1' })
  await sibling.moveJobFromActiveToWait(id, token)
}

function notAttached(queue: string): BullpenError {
  return new BullpenError(
    'invalid_configuration',
    `the Worker for queue '${queue}' runs Bullpen's processor without Bullpen's scripts; the Worker has been paused, and its jobs are back in ` +
      "the queue; call attach(worker), which '@bullpen/bullmq' exports, directly after new Worker(…), and start the Worker again",
  )
}

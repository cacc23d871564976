// Refuses to run jobs with Bullpen's processor for a Worker that lacks Bullpen's backend, because those tasks would end up with the wrong
// status, or whose backend lacks the catalogue that limits the queue, because nothing would be limited.
//
// A processor cannot inspect its Worker until the first job arrives, so that job has already been fetched. It is put back at the
// head of its queue, without an attempt or a start being counted. The Worker is then paused, so that it does not fetch the job
// again.
import { BullpenError } from '@bullpen/contract'
import { type Job, type RedisQueueBackend, WaitingError } from 'bullmq'
import { isBullpenBackend, isRedisBackend, withScripts } from '../../store/backend.ts'
import { backendOf, workerOf } from './job-scripts.ts'

/**
 * Returns what the job's Worker lacks, or undefined if it may run the job. On a backend other than Redis, it lacks nothing. `isLimited` is
 * whether the processor's catalogue limits anything in the job's queue.
 */
export function lackOf(job: Job, isLimited: boolean): string | undefined {
  const backend = backendOf(job)
  if (!isBullpenBackend(backend)) return isRedisBackend(backend) ? "Bullpen's backend" : undefined
  return isLimited && !backend.storesLimits ? 'the catalogue, whose limits would not apply to its tasks' : undefined
}

/**
 * Pauses the Worker, which reports one error however many jobs it has fetched, and returns the job to its queue. If Redis does
 * not respond, the job stays active until its lock expires, and is then recovered like the job of a process that died.
 */
export async function refuse(job: Job, token: string, lack: string): Promise<never> {
  const worker = workerOf(job)
  if (!worker.isPaused()) {
    void worker.pause(true)
    worker.emit('error', refusal(worker.name, lack))
  }
  await release(job, token).catch((error: Error) => worker.emit('error', error))
  throw new WaitingError()
}

/** Returns the job to its queue through another backend, Bullpen's, which shares the Worker's connection. */
async function release(job: Job, token: string): Promise<void> {
  const { id = '', queueName } = job
  // Its type is that of any backend, but its class is that of the Worker's backend.
  const sibling = backendOf(job).forQueue(queueName) as RedisQueueBackend
  const backend = isBullpenBackend(sibling) ? sibling : withScripts(sibling, {})
  backend.expectEnd({ id, token, verdict: 'released' })
  await backend.moveJobFromActiveToWait(id, token)
}

function refusal(queue: string, lack: string): BullpenError {
  return new BullpenError(
    'invalid_configuration',
    `the Worker of queue '${queue}' runs Bullpen's processor without ${lack}; it has been paused, and its jobs are back in the queue; pass ` +
      "bullpenBackend({ catalogue }), which '@bullpen/bullmq' exports, as the last argument of new Worker(…), and start the program again",
  )
}

// Adds a task as a BullMQ job, in one composed script, without BullMQ's Job class, which would serialise the task a second time.
import type { Enqueued } from '@bullpen/contract'
import type { NewTask } from '@bullpen/engine'
import type { JobJson, RedisQueueBackend } from 'bullmq'
import type { Commander } from '../scripts/script.ts'
import { commandsOf, withExtras } from './backend.ts'
import { BACKOFF_TYPE } from './backoff-strategy.ts'

/**
 * `data` is the stored text of the task. `redis` is the connection of the backend. The job, its tags and its queue timeout are
 * stored atomically. If there is a job with this id, nothing changes. Takes one round trip.
 */
export async function addJob(
  redis: Commander,
  backend: RedisQueueBackend,
  task: NewTask,
  data: string,
): Promise<Enqueued> {
  const job: JobJson = {
    id: task.id,
    name: task.task,
    data,
    opts: {
      attempts: task.maxAttempts,
      backoff: { type: BACKOFF_TYPE },
      ...(task.delayMs !== undefined && { delay: task.delayMs }),
    },
    timestamp: task.enqueuedAt,
    // What BullMQ's script does not read.
    progress: 0,
    attemptsMade: 0,
    attemptsStarted: 0,
    stalledCounter: 0,
    stacktrace: '',
    returnvalue: '',
    failedReason: '',
  }
  const extras = {
    expiresAt: task.expiresAt === undefined ? '' : `${task.expiresAt}`,
    tags: task.tags === undefined || task.tags.length === 0 ? '' : JSON.stringify(task.tags),
    id: task.id,
  }
  const answer: unknown = await withExtras(backend, extras, () =>
    backend.addJobToTransaction(commandsOf(redis), job, task.id),
  )
  return { id: task.id, action: answer === 1 ? 'created' : 'existing' }
}

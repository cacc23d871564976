// The processor: turns a BullMQ job into a taken task, and the verdict on it into what BullMQ is to do.
import type { TaskId } from '@bullpen/contract'
import type { StoredSuccess } from '@bullpen/contract/internal'
import { type AttemptResult, type FetchedTask, MAX_ATTEMPT_RECORDS } from '@bullpen/engine/internal'
import { DelayedError, type Job, WaitingError } from 'bullmq'
import { encodeStack } from './codec.ts'
import { AttemptFailed } from './internals/backoff-strategy.ts'
import { holdQueue, keepStacks, stepsOf, takeBackStart } from './internals/job-scripts.ts'

export function taken(job: Job, token: string): FetchedTask {
  return {
    id: job.id as TaskId,
    task: job.name,
    envelope: job.data,
    enqueuedAt: job.timestamp,
    fencingToken: job.attemptsStarted,
    attempt: job.attemptsMade + 1,
    maxAttempts: job.opts.attempts ?? 1,
    readyAt: job.attemptsStarted === 1 ? job.timestamp + (job.opts.delay ?? 0) : undefined,
    progress: (progress) => job.updateProgress(progress),
    steps: stepsOf(job, token),
  }
}

/** Obeys the verdict. Returns what BullMQ stores as success, or throws what makes it retry, bury or leave the job. */
export function obey(
  { verdict, record, error }: AttemptResult,
  job: Job,
  token: string,
): StoredSuccess | Promise<never> {
  switch (verdict.kind) {
    case 'completed':
      return { output: verdict.output, worker: record.worker, ...(record.slot !== undefined && { slot: record.slot }) }
    case 'retrying':
    case 'dead':
    case 'cancelled':
    case 'expired':
      // Said here and not when it was added, so that a waiting job does not pay for it in Redis.
      job.opts.stackTraceLimit = MAX_ATTEMPT_RECORDS
      throw new AttemptFailed(record, verdict, error)
    case 'requeued':
      return (verdict.throttleMs === undefined ? Promise.resolve() : holdQueue(job, verdict.throttleMs))
        .then(() => keepEnd(record, error, job, token))
        .then(() => putBack(job, token))
    case 'snoozed': {
      const until = Date.now() + verdict.delayMs
      return keepEnd(record, error, job, token).then(async () => {
        await job.moveToDelayed(until, token)
        throw new DelayedError()
      })
    }
    case 'lost':
      // BullMQ leaves a job alone that says it has been moved; and so it has, by another owner.
      throw new WaitingError()
  }
}

/** A task that was taken and may not start: back to the head of the queue, as if it had not been taken. */
export async function refuse(job: Job, token: string): Promise<never> {
  await takeBackStart(job, token)
  return putBack(job, token)
}

/** BullMQ records nothing of a job that goes back. A crash between this and the move loses the move, not the task. */
async function keepEnd(end: AttemptResult['record'], error: unknown, job: Job, token: string): Promise<void> {
  const stacks = [...(job.stacktrace ?? []), encodeStack(end, error)].slice(-MAX_ATTEMPT_RECORDS)
  await keepStacks(job, token, stacks)
}

/** To the head of the queue, without using up an attempt. */
async function putBack(job: Job, token: string): Promise<never> {
  await job.moveToWait(token)
  throw new WaitingError()
}

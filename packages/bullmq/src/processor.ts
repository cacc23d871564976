// The processor: turns a BullMQ job into a taken task, and the verdict on it into what BullMQ is to do.
import type { StoredSuccess, TaskId } from '@bullpen/contract'
import type { Conclusion, TakenTask } from '@bullpen/engine'
import { type Job, WaitingError } from 'bullmq'
import { encodeStack } from './codec.ts'
import { AttemptFailed } from './retry-seam.ts'

/** How many ends are kept with a task; older ones are dropped. */
const HISTORY_LENGTH = 10

export function taken(job: Job): TakenTask {
  return {
    id: job.id as TaskId,
    task: job.name,
    envelope: job.data,
    enqueuedAt: job.timestamp,
    start: job.attemptsStarted,
    attempt: job.attemptsMade + 1,
    maxAttempts: job.opts.attempts ?? 1,
    readyAt: job.attemptsStarted === 1 ? job.timestamp + (job.opts.delay ?? 0) : undefined,
    progress: (progress) => job.updateProgress(progress),
  }
}

/** Writes a job's stacks where no transition of BullMQ's does it. */
export type KeepStacks = (job: Job, stacks: readonly string[]) => Promise<void>

/** Obeys the verdict. Returns what BullMQ stores as success, or throws what makes it retry, bury or leave the job. */
export function obey(
  { verdict, end, error }: Conclusion,
  job: Job,
  token: string,
  keepStacks: KeepStacks,
): StoredSuccess | Promise<never> {
  switch (verdict.kind) {
    case 'completed':
      return { output: verdict.output, process: end.process }
    case 'retrying':
    case 'dead':
      // Said here and not when it was added, so that a waiting job does not pay for it in Redis.
      job.opts.stackTraceLimit = HISTORY_LENGTH
      throw new AttemptFailed(end, verdict, error)
    case 'handed_back': {
      // BullMQ records nothing of a job that goes back. A crash between these two loses the hand back, not the task.
      const stacks = [...(job.stacktrace ?? []), encodeStack(end, error)].slice(-HISTORY_LENGTH)
      return keepStacks(job, stacks).then(() => putBack(job, token))
    }
  }
}

/** To the head of the queue, without using up an attempt. */
export async function putBack(job: Job, token: string): Promise<never> {
  await job.moveToWait(token)
  throw new WaitingError()
}

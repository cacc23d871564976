// Tells BullMQ what to do after a failed attempt, through the error that the processor throws, the delay that the backoff
// strategy returns, and the job options that are changed just before.
//
// BullMQ stores the error's stack, whose first line is the attempt record, in the script that moves the job, and asks the strategy
// for the delay, which the error carries. A consumer gives the strategy to its Worker.
import type { AttemptRecord } from '@bullpen/contract'
import type { Verdict } from '@bullpen/engine/internal'
import { type Job, UnrecoverableError } from 'bullmq'
import { describeEnd, encodeStack } from '../../codec.ts'

/** The backoff type of every job that Bullpen adds. Without a backoff, BullMQ retries immediately and calls no strategy. */
export const BACKOFF_TYPE = 'bullpen'

/** BullMQ interprets this delay as "no further attempt". */
const FINAL = -1

/** The delay after an error without a verdict, which only BullMQ itself can throw. */
const FALLBACK_DELAY_MS = 1_000

/**
 * Thrown to BullMQ when an attempt has failed. BullMQ stores the error's message and stack, and asks {@link backoffStrategy} for
 * the delay.
 */
export class AttemptFailed extends Error {
  override readonly name = 'AttemptFailed'
  readonly delayMs: number

  constructor(
    record: AttemptRecord,
    verdict: Verdict & { kind: 'retrying' | 'dead' | 'cancelled' | 'expired' },
    error: unknown,
  ) {
    super(describeEnd(record), { cause: error })
    this.delayMs = verdict.kind === 'retrying' ? verdict.delayMs : FINAL
    this.stack = encodeStack(record, error)
  }
}

/** BullMQ's `settings.backoffStrategy`. */
export function backoffStrategy(_attempts: number, _type: string | undefined, error: Error | undefined): number {
  return error instanceof AttemptFailed ? error.delayMs : FALLBACK_DELAY_MS
}

/**
 * Limits how many stacks BullMQ stores with the job's next failure. If this option were set when a job is added, Redis would
 * store it with every waiting job.
 */
export function limitStacks(job: Job, most: number): void {
  job.opts.stackTraceLimit = most
}

/**
 * Returns an error that has the same effect as `failed` in a Worker without Bullpen's strategy, whatever backoff the job was
 * added with. BullMQ decides from the job's options and the error's class whether to retry, so this function sets the options of
 * the job in memory. The stored options do not change. `attempts` is the job's maximum number of attempts.
 */
export function forAnyWorker(failed: AttemptFailed, job: Job, attempts: number): Error {
  const { message, stack = '', cause, delayMs } = failed
  if (delayMs < 0) return Object.assign(new UnrecoverableError(message), { stack, cause })
  job.opts.attempts = attempts
  job.opts.backoff = { type: 'fixed', delay: delayMs }
  return failed
}

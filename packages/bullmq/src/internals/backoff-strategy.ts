// Carries the engine's verdict on a failed attempt to BullMQ, in the error that the processor throws.
import type { AttemptRecord } from '@bullpen/contract'
import type { Verdict } from '@bullpen/engine/internal'
import { describeEnd, encodeStack } from '../codec.ts'

/** The backoff type of every job that Bullpen adds. Without a backoff BullMQ retries at once and calls no strategy. */
export const BACKOFF_TYPE = 'bullpen'

/** BullMQ reads this delay as "no further attempt". */
const FINAL = -1

/** For an error without a verdict, which only BullMQ itself can throw: retry soon. */
const FALLBACK_DELAY_MS = 1_000

/** Thrown to BullMQ when an attempt failed. BullMQ stores its message and stack, and asks {@link backoffStrategy} for the delay. */
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

// Carries the engine's verdict on a failed attempt to BullMQ, in the error that the processor throws.
import type { AttemptRecord } from '@bullpen/contract'
import type { Verdict } from '@bullpen/engine/internal'
import { describeEnd, encodeStack } from '../codec.ts'

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

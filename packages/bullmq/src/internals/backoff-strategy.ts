// The retry seam: the engine's verdict on a failed attempt, carried to BullMQ by the error that is thrown.
import type { AttemptRecord } from '@bullpen/contract'
import type { Verdict } from '@bullpen/engine/internal'
import { describeEnd, encodeStack } from '../codec.ts'

/** The name of the backoff that each job asks for: without one, BullMQ retries at once and asks nobody. */
export const BACKOFF_TYPE = 'bullpen'

/** What BullMQ's backoff strategy returns to say that there is no further attempt. */
const FINAL = -1

/** For an error that no verdict stands behind, which only BullMQ itself could throw: try again, soon. */
const FALLBACK_DELAY_MS = 1_000

/** Thrown to BullMQ when an attempt failed: its message and stack are stored, its delay is obeyed. */
export class AttemptFailed extends Error {
  override readonly name = 'AttemptFailed'
  readonly delayMs: number

  constructor(
    end: AttemptRecord,
    verdict: Verdict & { kind: 'retrying' | 'dead' | 'cancelled' | 'expired' },
    error: unknown,
  ) {
    super(describeEnd(end), { cause: error })
    this.delayMs = verdict.kind === 'retrying' ? verdict.delayMs : FINAL
    this.stack = encodeStack(end, error)
  }
}

/** BullMQ's `settings.backoffStrategy`. */
export function backoffStrategy(_attempts: number, _type: string | undefined, error: Error | undefined): number {
  return error instanceof AttemptFailed ? error.delayMs : FALLBACK_DELAY_MS
}

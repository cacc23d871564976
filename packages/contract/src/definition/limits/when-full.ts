// Defines the policies for a task whose queue is full.
import { z } from 'zod'
import { MAX_WAIT_S } from '../../http/queries.ts'
import { type Duration, milliseconds } from '../units/duration.ts'
import { durationText } from '../units/duration-text.ts'

/**
 * What happens to a task whose queue has reached a limit:
 *
 * - `'reject'`: the caller gets the error `queue_full`.
 * - `'drop'`: the caller gets a normal response, and the task is counted as dropped.
 * - `{ block: '10s' }`: the caller waits for room for up to this time. If there is still no room, the task is rejected.
 */
export type WhenFull = 'reject' | 'drop' | { readonly block: Duration }

const LONGEST = `${MAX_WAIT_S}s` as const

export const whenFullSchema = z.union(
  [
    z.enum(['reject', 'drop']),
    z.strictObject({
      block: durationText.refine((text) => !isDuration(text) || isShortEnough(text), `the longest is '${LONGEST}'`),
    }),
  ],
  { error: `expected "reject", "drop", or an object such as {"block":"10s"}, with at most '${LONGEST}'` },
)

/** Returns the policy unchanged. `fail` throws an error that names the queue. */
export function checkedWhenFull(given: WhenFull, fail: (problem: string) => never): WhenFull {
  if (whenFullSchema.safeParse(given).success) return typeof given === 'object' ? Object.freeze({ ...given }) : given
  return fail(
    `whenFull is ${JSON.stringify(given)}; expected 'reject', 'drop', or { block: DURATION } with at most '${LONGEST}'`,
  )
}

function isShortEnough(text: string): boolean {
  return milliseconds(text) <= MAX_WAIT_S * 1_000
}

/** Returns false for a string that {@link durationText} itself reports as invalid. */
function isDuration(text: string): boolean {
  return z.safeParse(durationText, text).success
}

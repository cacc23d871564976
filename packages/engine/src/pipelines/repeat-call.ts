// Repeats a call of a source or a reduction while Redis does not respond, so that a short outage uses up none of their retries. An outage
// that outlasts the task's lock interrupts the attempt.
import { BullpenError } from '@bullpen/contract'
import type { Attempt } from '../attempt/attempt.ts'
import type { Clock } from '../ports/clock.ts'

const PAUSE_MS = 100

/** @throws whatever the call throws, except `redis_unavailable`, or what the attempt's checkpoint throws. */
export async function repeatCall<T>(
  { checkpoint, clock }: Pick<Attempt, 'checkpoint'> & { readonly clock: Clock },
  call: () => Promise<T>,
): Promise<T> {
  for (;;) {
    checkpoint()
    try {
      return await call()
    } catch (error) {
      if (!(error instanceof BullpenError) || error.code !== 'redis_unavailable') throw error
      await new Promise<void>((resolve) => {
        clock.after(PAUSE_MS, resolve)
      })
    }
  }
}

// Repeats a call to a broker, as a client does, if Redis has not replied in time because the machine is busy.
import { BullpenError } from '@bullpen/contract'

export async function repeated<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call()
    } catch (error) {
      if (!(error instanceof BullpenError) || error.code !== 'redis_unavailable') throw error
    }
  }
}

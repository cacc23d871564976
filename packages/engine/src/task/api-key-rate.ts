// Decides which rate an API key has in a task's queue, and what happens to a request that exceeds a rate.
import { BullpenError, type EnqueueRate, EnqueueRateError, type ReachedRate } from '@bullpen/contract'
import { formatEnqueueRate } from '@bullpen/contract/internal'
import type { NewTask } from '../ports/broker.ts'

/** Returns undefined if the rate is not limited. */
export function rateInQueue({ apiKeyName, limits }: NewTask): EnqueueRate | undefined {
  return apiKeyName === undefined ? undefined : limits?.perApiKey?.enqueueRate
}

/** `wanted` is how many tokens the request needs. */
interface ExceededRate extends ReachedRate {
  readonly wanted: number
}

/** Returns the error of a request. It is `payload_too_large` if the rate never permits so many tasks at once. */
export function rateExceeded({ wanted, ...reached }: ExceededRate): BullpenError {
  const { apiKeyName, queue, rate } = reached
  if (wanted <= rate.max) return new EnqueueRateError(reached)
  const place = queue === undefined ? '' : ` in queue '${queue}'`
  return new BullpenError(
    'payload_too_large',
    `the request has ${wanted} tasks, and the rate of API key '${apiKeyName}'${place} is ${formatEnqueueRate(rate)}, which permits at most ${rate.max} at once; send fewer tasks in each request`,
  )
}

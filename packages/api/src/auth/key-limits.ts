// Looks up the limits of API keys in the settings.
import { type ApiSettings, EVERY_KEY } from '@bullpen/config'
import { readEnqueueRate } from '@bullpen/contract/internal'
import type { DefinedEnqueueRate } from '@bullpen/engine/internal'

/**
 * Returns a function that looks up how fast an API key may enqueue tasks. A key's own limit takes precedence over the limit for
 * all keys.
 */
export function enqueueRateOf(limits: ApiSettings['keyLimits'] = {}): DefinedEnqueueRate {
  const rates = new Map(
    Object.entries(limits).flatMap(([name, { enqueueRate }]) =>
      // `none` is not a rate, and exempts the key from the limit for all keys.
      enqueueRate === undefined ? [] : [[name, readEnqueueRate(enqueueRate)]],
    ),
  )
  return (apiKeyName) => rates.get(rates.has(apiKeyName) ? apiKeyName : EVERY_KEY)
}

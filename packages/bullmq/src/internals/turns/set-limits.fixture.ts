// Sets limits of concurrency keys and of limiters, as commands do.
import type { QueueKeys } from '../../keys.ts'
import { type Commander, runScript } from '../../scripts/script.ts'
import { applySettingsScript } from '../../store/scripts.ts'
import { THROTTLE_MARK } from '../throttle.ts'

/** A command overwrites only what older ones have set. */
let sequence = 0

/** `settings` are those that `keyLimitSettings` and `capacitySetting` return. */
export function setLimits(redis: Commander, keys: QueueKeys, settings: readonly string[]): Promise<void> {
  const args = { base: keys.base, sequence: ++sequence, mark: THROTTLE_MARK }
  return runScript(redis, applySettingsScript, keys, args, settings)
}

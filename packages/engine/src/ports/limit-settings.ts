// Defines what the fleet reports of the limits of a queue: those that commands have set, and those of its
// concurrency keys and limiters.
import type { ApiKeyLimits, LimitSource, StartRate } from '@bullpen/contract'
import type { LimitInForce } from './broker/concurrency-keys.ts'
import type { LimiterStatus, QueueSettings } from './fleet.ts'

/** The limits of every concurrency key, or of one. A limit that is undefined does not apply. */
interface KeyLimits {
  readonly concurrency: LimitInForce<number> | undefined
  readonly rate: LimitInForce<StartRate> | undefined
}

export interface LimitSettings {
  /** The queue's settings, whose own limits only commands set. */
  readonly settings: QueueSettings
  /** The limits that commands have set for API keys in this queue, by the key's name. */
  readonly perApiKey: ReadonlyMap<string, ApiKeyLimits>
  /** The limiters of `settings` with what has set the capacity of each. */
  readonly limiters: readonly (LimiterStatus & { readonly source: LimitSource })[] | undefined
  /** Those of every concurrency key. */
  readonly perConcurrencyKey: KeyLimits
  /** Concurrency keys with limits of their own, sorted by name. If there are more than 100, only some of them. */
  readonly singleKeys: readonly (KeyLimits & { readonly key: string })[]
}

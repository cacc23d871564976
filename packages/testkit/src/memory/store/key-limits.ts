// Keeps the limits of a queue's concurrency keys: those of the workers' catalogue, and those that were set at run time.
import type { ConcurrencyKeyLimits, PerConcurrencyKey } from '@bullpen/contract'

/** Limits that are set at run time. A limit that is omitted stays as it is, and `none` removes one that was set before. */
export type ConcurrencyKeyLimitChange = {
  readonly [Name in keyof ConcurrencyKeyLimits]: ConcurrencyKeyLimits[Name] | 'none'
}

/** Stands for every key. No concurrency key is empty. */
const EVERY_KEY = ''

export class KeyLimits {
  #defined: PerConcurrencyKey | undefined
  readonly #set = new Map<string, ConcurrencyKeyLimits>()

  /** Replaces the limits of the catalogue. */
  define(limits: PerConcurrencyKey | undefined): void {
    this.#defined = limits
  }

  /** Sets limits of a key or, without `key`, of every key. They replace the same limits of the catalogue. */
  set({ concurrency, rate }: ConcurrencyKeyLimitChange, key: string = EVERY_KEY): void {
    const before = this.#set.get(key)
    this.#set.set(key, {
      concurrency: concurrency === 'none' ? undefined : (concurrency ?? before?.concurrency),
      rate: rate === 'none' ? undefined : (rate ?? before?.rate),
    })
  }

  /** Returns the limits of a key. Those of a single key replace those of every key. */
  of(key: string): ConcurrencyKeyLimits {
    const all = [this.#set.get(key), this.#defined?.keys[key], this.#set.get(EVERY_KEY), this.#defined]
    return {
      concurrency: all.find((limits) => limits?.concurrency !== undefined)?.concurrency,
      rate: all.find((limits) => limits?.rate !== undefined)?.rate,
    }
  }
}

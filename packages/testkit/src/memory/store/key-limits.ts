// Keeps the limits of a queue's concurrency keys: those of the workers' catalogue, and those that were set at run time.
import type { ConcurrencyKeyLimits, PerConcurrencyKey } from '@bullpen/contract'
import type { KeyState } from '@bullpen/engine/internal'

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

  /** Returns whether any key has a limit. */
  get exist(): boolean {
    const set = [...this.#set.values()]
    return (
      this.#defined !== undefined ||
      set.some(({ concurrency, rate }) => concurrency !== undefined || rate !== undefined)
    )
  }

  /** Returns the limits of a key. Those of a single key replace those of every key. */
  of(key: string): ConcurrencyKeyLimits {
    const { concurrency, rate } = this.inForce(key)
    return { concurrency: concurrency?.value, rate: rate?.value }
  }

  /** Returns the limits of a key with what has set each of them. */
  inForce(key: string): Pick<KeyState, 'concurrency' | 'rate'> {
    const all = [
      { limits: this.#set.get(key), source: 'command', isOwn: true },
      { limits: this.#defined?.keys[key], source: 'definition', isOwn: true },
      { limits: this.#set.get(EVERY_KEY), source: 'command', isOwn: false },
      { limits: this.#defined, source: 'definition', isOwn: false },
    ] as const
    const first = <Name extends keyof ConcurrencyKeyLimits>(name: Name) => {
      for (const { limits, ...from } of all) {
        const value = limits?.[name]
        if (value !== undefined) return { value, ...from }
      }
      return undefined
    }
    return { concurrency: first('concurrency'), rate: first('rate') }
  }
}

// An outage of the memory broker, which lasts from fail() to recover().
import { BullpenError } from '@bullpen/contract'

export class Outage {
  #over: PromiseWithResolvers<void> | undefined

  get lasts(): boolean {
    return this.#over !== undefined
  }

  begin(): void {
    this.#over ??= Promise.withResolvers()
  }

  end(): void {
    this.#over?.resolve()
    this.#over = undefined
  }

  /** Resolves when there is no outage. Workers use this because they wait for the store. */
  async over(): Promise<void> {
    while (this.#over !== undefined) await this.#over.promise
  }

  /** Producers use this because they do not wait. @throws BullpenError `redis_unavailable` during an outage. */
  check(): void {
    if (this.lasts) throw new BullpenError('redis_unavailable', 'Redis is unavailable: fail() was called')
  }
}

/** Returns the methods so that each of them first calls `check`, and rejects with what it throws. */
export function guarded<T extends object>(check: () => void, methods: T): T {
  const guard =
    (method: (...args: unknown[]) => unknown) =>
    async (...args: unknown[]): Promise<unknown> => {
      check()
      return method(...args)
    }
  return Object.fromEntries(Object.entries(methods).map(([name, method]) => [name, guard(method)])) as T
}

// An outage of the memory broker, between fail() and recover().
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

  /** Resolves when no outage lasts: a worker waits for its store. */
  async over(): Promise<void> {
    while (this.#over !== undefined) await this.#over.promise
  }

  /** For producers, which do not wait. @throws BullpenError `redis_unavailable`. */
  check(): void {
    if (this.lasts) throw new BullpenError('redis_unavailable', 'Redis is unavailable: fail() was called')
  }
}

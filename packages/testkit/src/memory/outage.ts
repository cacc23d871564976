// An outage of the memory broker: the store can't be reached, until it can again.
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

  /** As a worker waits for its store. */
  async over(): Promise<void> {
    while (this.#over !== undefined) await this.#over.promise
  }

  /** As a producer finds out. @throws BullpenError `redis_unavailable`. */
  check(): void {
    if (this.lasts)
      throw new BullpenError('redis_unavailable', 'Redis did not answer: the memory broker was told to fail')
  }
}

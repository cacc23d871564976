// Expires the tasks of the memory broker whose queue timeout has passed.
import type { Clock } from '@bullpen/engine/internal'
import type { MemoryBrokerOptions } from './memory-broker-options.ts'
import type { MemoryStore } from './store/memory-store.ts'

export interface MemoryExpirerOptions {
  readonly clock: Clock
  /** How often to look for such tasks, in ms. */
  readonly sweepMs: number
  readonly stores: ReadonlyMap<string, MemoryStore>
  readonly isUnreachable: () => boolean
  readonly onExpired: MemoryBrokerOptions['onExpired'] | undefined
}

export interface MemoryExpirer {
  /** Begins to look for such tasks, because one was stored that may expire. */
  watch(): void
  close(): void
}

/** The sweep runs only as long as a task may expire, because otherwise a fake clock would never run out of timers. */
export function memoryExpirer(options: MemoryExpirerOptions): MemoryExpirer {
  const { clock, sweepMs, stores, isUnreachable, onExpired } = options
  let stopSweep: (() => void) | undefined

  const sweep = (): void => {
    stopSweep = clock.after(sweepMs, () => {
      stopSweep = undefined
      // During an outage, no task is expired, and another sweep is scheduled.
      const found = [...stores.values()].map((store) => (isUnreachable() ? undefined : store.expire('sweep:memory')))
      for (const { id, queue, task } of found.flatMap((each) => each?.expired ?? [])) onExpired?.({ queue, id, task })
      if (found.some((each) => each?.more ?? true)) sweep()
    })
  }

  return {
    watch() {
      if (stopSweep === undefined) sweep()
    },
    close: () => stopSweep?.(),
  }
}

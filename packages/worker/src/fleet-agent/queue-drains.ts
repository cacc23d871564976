// Follows the drains of whole queues: ends this worker's pools by their mode, lightly once the queue is empty, and lifts that.
import type { DrainMode } from '@bullpen/contract'
import type { Clock, DrainLimits, Fleet, QueueSettings } from '@bullpen/engine/internal'
import type { PoolSupervisor } from '../pools/pool-supervisor.ts'
import { waitUntilEmpty } from './wait-until-empty.ts'

export interface QueueDrainsOptions {
  readonly fleet: Fleet
  readonly clock: Clock
  readonly keeper: PoolSupervisor
  readonly limitsOf: (mode: DrainMode, timeoutMs: number | undefined) => DrainLimits
  /** Whether the whole worker drains: then nothing revives a pool, and a harsher drain of its queue still counts. */
  readonly ending: () => boolean
}

export interface QueueDrains {
  /** What holds for this queue now. */
  hear(queue: string, switches: QueueSettings): void
  /** Does what is heard to be wanted; twice is once. */
  follow(): void
  /** Whether the whole fleet of the queue drains, in a way that lets none of its pools work. */
  keepsFromWork(queue: string): boolean
  close(): void
}

export function followDrains({ fleet, clock, keeper, limitsOf, ending }: QueueDrainsOptions): QueueDrains {
  const drains = new Map<string, QueueSettings['drain']>()
  const emptying = new Map<string, { readonly command: string; readonly stop: () => void }>()

  const stopEmptying = (queue: string): void => {
    emptying.get(queue)?.stop()
    emptying.delete(queue)
  }

  const followOne = (queue: string, drain: QueueSettings['drain']): void => {
    const cause = keeper.causeOf(queue)
    if (drain?.mode !== 'light') stopEmptying(queue)
    if (drain === undefined) {
      if (cause?.by === 'switch' && !ending()) keeper.resume(queue)
      return
    }
    const { mode, timeoutMs, command } = drain
    if (cause?.command === command) return
    const end = (): void => keeper.drain(queue, limitsOf(mode, timeoutMs), { by: 'switch', command })
    if (mode !== 'light') end()
    else if (!ending() && cause === undefined && emptying.get(queue)?.command !== command) {
      stopEmptying(queue)
      emptying.set(queue, { command, stop: waitUntilEmpty(fleet, queue, clock, end) })
    }
  }

  return {
    hear: (queue, { drain }) => void drains.set(queue, drain),
    follow() {
      for (const [queue, drain] of drains) followOne(queue, drain)
    },
    keepsFromWork(queue) {
      const drain = drains.get(queue)
      return drain !== undefined && drain.mode !== 'light'
    },
    close() {
      for (const queue of emptying.keys()) stopEmptying(queue)
    },
  }
}

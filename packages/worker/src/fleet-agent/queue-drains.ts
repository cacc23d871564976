// Watches for drains of whole queues. When a queue drains, this worker's pool for that queue drains, too, and it resumes when the
// drain is lifted. In a light drain, the pool keeps working until the queue is empty.
import type { Clock, Fleet, QueueSettings } from '@bullpen/engine/internal'
import type { PoolSupervisor } from '../pools/pool-supervisor.ts'

export interface QueueDrainsOptions {
  readonly fleet: Fleet
  readonly clock: Clock
  readonly pools: PoolSupervisor
}

export interface QueueDrains {
  /** Stores the queue's current settings. `follow` acts on them. */
  update(queue: string, settings: QueueSettings): void
  /** Brings the pools in line with the settings. Idempotent. */
  follow(): void
  /** Returns whether the queue's settings prevent its pool from working. */
  isHeld(queue: string): boolean
  close(): void
}

export function createQueueDrains({ fleet, clock, pools }: QueueDrainsOptions): QueueDrains {
  const drains = new Map<string, QueueSettings['drain']>()
  /** Queues in a light drain that are not empty yet. */
  const waits = new Map<string, { readonly command: string; readonly stop: () => void }>()

  const stopWaiting = (queue: string): void => {
    waits.get(queue)?.stop()
    waits.delete(queue)
  }

  /**
   * Applies a queue's drain to its pool. While the worker itself is draining, pools are not resumed, but a harsher drain of the
   * queue is still applied.
   */
  const followOne = (queue: string, drain: QueueSettings['drain']): void => {
    const cause = pools.causeOf(queue)
    if (drain?.mode !== 'light') stopWaiting(queue)
    if (drain === undefined) {
      if (cause?.by === 'queue' && !pools.isDraining()) pools.resume(queue)
      return
    }
    const { mode, timeoutMs, command } = drain
    if (cause?.command === command) return
    const drainPool = (): void => pools.drain(queue, { mode, timeoutMs }, { by: 'queue', command })
    if (mode !== 'light') drainPool()
    else if (!pools.isDraining() && cause === undefined && waits.get(queue)?.command !== command) {
      stopWaiting(queue)
      waits.set(queue, { command, stop: waitUntilEmpty(fleet, queue, clock, drainPool) })
    }
  }

  return {
    update: (queue, { drain }) => void drains.set(queue, drain),
    follow() {
      for (const [queue, drain] of drains) followOne(queue, drain)
    },
    isHeld(queue) {
      const drain = drains.get(queue)
      return drain !== undefined && drain.mode !== 'light'
    },
    close() {
      for (const queue of waits.keys()) stopWaiting(queue)
    },
  }
}

const POLL_MS = 250
/** An API may learn that a queue no longer accepts tasks up to 3 s later than the workers do. */
const ADMISSION_CLOSED_AFTER_MS = 3_000

/** Calls `onEmpty` once, when the queue has no task left that could run now. Returns a function that cancels the wait. */
export function waitUntilEmpty(fleet: Fleet, queue: string, clock: Clock, onEmpty: () => void): () => void {
  const since = clock.monotonic()
  let stopped = false
  let cancelTimer = (): void => {}
  const poll = async (): Promise<void> => {
    // While Redis is unreachable, the number is unknown, so keep waiting.
    const remaining = await fleet.remaining(queue).catch(() => undefined)
    if (stopped) return
    if (remaining === 0 && clock.monotonic() - since > ADMISSION_CLOSED_AFTER_MS) onEmpty()
    else cancelTimer = clock.after(POLL_MS, () => void poll())
  }
  void poll()
  return () => {
    stopped = true
    cancelTimer()
  }
}

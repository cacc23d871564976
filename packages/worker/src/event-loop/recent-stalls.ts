// Remembers for how long the event loop was blocked within the last minute, which the worker reports with its heartbeats.
import type { TaskEvent } from '@bullpen/contract'
import type { RecentStalls } from '@bullpen/engine/internal'

type Stall = TaskEvent & { readonly event: 'event_loop.stalled' }

export interface StallMemory {
  note(stall: Stall): void
  /** Returns undefined if there was no stall. */
  recent(): RecentStalls | undefined
}

const REMEMBERED_MS = 60_000

/** `monotonic` returns the time in ms. */
export function createStallMemory(monotonic: () => number): StallMemory {
  let stalls: readonly { readonly endedAt: number; readonly stall: Stall }[] = []
  const forget = (): void => {
    stalls = stalls.filter(({ endedAt }) => endedAt > monotonic() - REMEMBERED_MS)
  }
  return {
    note(stall) {
      forget()
      stalls = [...stalls, { endedAt: monotonic(), stall }]
    },
    recent() {
      forget()
      const last = stalls.at(-1)?.stall
      if (last === undefined) return undefined
      const stalledMs = stalls.reduce((sum, { stall }) => sum + stall.stalledMs, 0)
      return { count: stalls.length, stalledMs: Math.round(stalledMs), lastTask: last.task }
    },
  }
}

// Computes how long tasks have waited for their first start, from the ledger.

import type { Figures } from '../figures/figures.ts'
import type { Effect } from '../ledger/effects.ts'
import type { End } from '../ledger/ledger.ts'
import { rank } from '../ledger/ranks.ts'

export interface Wait {
  /** When the task was enqueued, as Unix time in ms. */
  readonly at: number
  readonly ms: number
}

/** Returns the waits in the order in which the tasks were enqueued. Tasks that have not started are left out. */
export function waitsOf(
  ends: ReadonlyMap<string, Pick<End, 'enqueuedAt'>>,
  effects: readonly Effect[],
): readonly Wait[] {
  const firstStart = new Map<string, number>()
  for (const { what, id, at } of effects) if (what === 'start' && !firstStart.has(id)) firstStart.set(id, at)
  return [...ends]
    .flatMap(([id, { enqueuedAt }]) => {
      const start = firstStart.get(id)
      // Both are whole milliseconds of the same clock, read in different ways.
      return enqueuedAt === undefined || start === undefined
        ? []
        : [{ at: enqueuedAt, ms: Math.max(0, start - enqueuedAt) }]
    })
    .toSorted((a, b) => a.at - b.at)
}

export function waitFigures(waits: readonly Wait[]): Pick<Figures, 'waitP50Ms' | 'waitP99Ms'> {
  const times = waits.map(({ ms }) => ms)
  return { waitP50Ms: rank(times, 0.5), waitP99Ms: rank(times, 0.99) }
}

/** Returns the quantile of the waits of the tasks that were enqueued in each interval, by the beginning of the interval. */
export function quantileOverTime(
  waits: readonly Wait[],
  share: number,
  intervalMs: number,
): readonly { readonly at: number; readonly ms: number }[] {
  const intervals = Map.groupBy(waits, ({ at }) => Math.floor(at / intervalMs) * intervalMs)
  return [...intervals].map(([at, within]) => {
    return {
      at,
      ms:
        rank(
          within.map(({ ms }) => ms),
          share,
        ) ?? 0,
    }
  })
}

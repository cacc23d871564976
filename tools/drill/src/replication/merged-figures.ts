// Merges the figures of the runs of one drill: the longest of each time, and the sum of each number.
import type { Figures } from '../figures/figures.ts'

/** A figure that any run has not measured is left out. */
export function mergedFigures(all: readonly Figures[]): Figures {
  const names = Object.keys(all[0] ?? {}) as (keyof Figures)[]
  const merged = names.map((name) => {
    const values = all.map((figures) => figures[name])
    if (!values.every((value) => typeof value === 'number')) return [name, undefined]
    return [name, name.endsWith('Ms') ? Math.max(...values) : values.reduce((sum, value) => sum + value, 0)]
  })
  return Object.fromEntries(merged) as Figures
}

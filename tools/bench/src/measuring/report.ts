// Summarises the pairs of a benchmark, and prints them as a table.
import { median, type Pair } from './pairs.ts'

export interface Result {
  readonly bench: string
  readonly case: string
  /** The median of each side over all pairs. */
  readonly ours: number
  readonly theirs: number
  readonly unit: string
  /** The median of the pairs' ratios. */
  readonly ratio: number
  readonly pairs: readonly Pair[]
}

export function resultOf(bench: string, name: string, unit: string, pairs: readonly Pair[]): Result {
  return {
    bench,
    case: name,
    ours: round(median(pairs.map((pair) => pair.ours)), 0),
    theirs: round(median(pairs.map((pair) => pair.theirs)), 0),
    unit,
    ratio: round(median(pairs.map((pair) => pair.ratio)), 3),
    pairs: pairs.map((pair) => ({
      ours: round(pair.ours, 0),
      theirs: round(pair.theirs, 0),
      ratio: round(pair.ratio, 3),
    })),
  }
}

export function asTable(result: Result): string {
  const row = (label: string, { ours, theirs, ratio }: Pair): string =>
    `  ${label.padEnd(10)}${format(ours).padStart(12)}${format(theirs).padStart(12)}${ratio.toFixed(3).padStart(9)}`
  return [
    `${result.bench} ${result.case} (${result.unit}; a ratio above 1 means that ours is better)`,
    `  ${''.padEnd(10)}${'ours'.padStart(12)}${'theirs'.padStart(12)}${'ratio'.padStart(9)}`,
    ...result.pairs.map((pair, i) => row(`pair ${i + 1}`, pair)),
    row('median', result),
  ].join('\n')
}

function format(value: number): string {
  return value.toLocaleString('en-US', { maximumFractionDigits: 0 })
}

function round(value: number, digits: number): number {
  return Number(value.toFixed(digits))
}

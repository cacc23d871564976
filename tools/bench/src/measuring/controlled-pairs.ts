// Measures two sides in alternating rounds and compares them, with a control that shows how much of a difference is noise.
import { median } from './pairs.ts'

/** One round: each side measured once, and the other side a second time. */
interface Round<Measured> {
  readonly theirs: Measured
  readonly ours: Measured
  readonly again: Measured
}

/** The values of one ratio over all rounds. */
export interface Ratio {
  readonly median: number
  readonly least: number
  readonly most: number
}

export interface Comparison {
  /** The medians over all rounds. */
  readonly theirs: number
  readonly ours: number
  /** Ours divided by theirs. */
  readonly ratio: Ratio
  /** Theirs divided by theirs, which shows how much of the ratio is noise. */
  readonly control: Ratio
  /** The least value of each over all rounds. */
  readonly least: Round<number>
}

/**
 * Measures the rounds. Each one measures the other side, this side and the other side again. In every second round, the second
 * measurement of the other side is the one that is compared.
 */
export async function measureRounds<Measured>(
  count: number,
  ours: () => Promise<Measured>,
  theirs: () => Promise<Measured>,
): Promise<readonly Round<Measured>[]> {
  const rounds: Round<Measured>[] = []
  for (let i = 0; i < count; i++) {
    const first = await theirs()
    const own = await ours()
    const last = await theirs()
    rounds.push(i % 2 === 0 ? { theirs: first, ours: own, again: last } : { theirs: last, ours: own, again: first })
  }
  return rounds
}

/** Compares one value of each measurement over all rounds. */
export function compareRounds<Measured>(
  rounds: readonly Round<Measured>[],
  read: (measured: Measured) => number,
): Comparison {
  const leastOf = (side: keyof Round<Measured>) => Math.min(...rounds.map((round) => read(round[side])))
  return {
    theirs: median(rounds.map(({ theirs }) => read(theirs))),
    ours: median(rounds.map(({ ours }) => read(ours))),
    ratio: ratioOf(rounds.map(({ ours, theirs }) => read(ours) / read(theirs))),
    control: ratioOf(rounds.map(({ again, theirs }) => read(again) / read(theirs))),
    least: { theirs: leastOf('theirs'), ours: leastOf('ours'), again: leastOf('again') },
  }
}

function ratioOf(values: readonly number[]): Ratio {
  return { median: median(values), least: Math.min(...values), most: Math.max(...values) }
}

/** Returns the ratios in words, such as `ratio 1.012 (0.998 to 1.020)   control 1.001 (0.990 to 1.011)`. */
export function describeRatios({ ratio, control }: Comparison): string {
  const words = ({ median, least, most }: Ratio): string =>
    `${median.toFixed(3)} (${least.toFixed(3)} to ${most.toFixed(3)})`
  return `ratio ${words(ratio)}   control ${words(control)}`
}

/**
 * Returns the ratios of a cost in words, with the least cost of this side divided by that of the other side. Other load on the
 * machine makes CPU time longer and never shorter, so the least costs are those that it has changed least.
 */
export function describeCostRatios(compared: Comparison): string {
  const { theirs, ours, again } = compared.least
  return `${describeRatios(compared)}   least ${(ours / theirs).toFixed(3)}, control ${(again / theirs).toFixed(3)}`
}

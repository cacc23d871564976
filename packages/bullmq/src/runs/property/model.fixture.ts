// Computes with plain arrays what the run of a random pipeline may return.
import { faultOf, type Item, joined, transform, yieldedAt } from './items.fixture.ts'
import { firstMixed, type PlannedRun } from './program.fixture.ts'

export interface Failure {
  readonly stage: number
  /** The position of the item in its section. */
  readonly position: number
}

export interface Expected {
  /** How many items the source emits, and whether it then fails. */
  readonly emitted: number
  readonly sourceFails: boolean
  /** If the results are mixed, only their number and the items in all of them together are known. */
  readonly results: readonly Item[]
  readonly areResultsMixed: boolean
  /** What each of the source's items adds to the value of the result that contains it. */
  readonly values: ReadonlyMap<number, number>
  readonly failures: readonly Failure[]
  /**
   * The first item that fails or is in a batch that fails. If the results are in order and the first error stops the run, no
   * further item gets through.
   */
  readonly barrier: number
  readonly stages: readonly { readonly completed: number; readonly dropped: number; readonly failed: number }[]
  /** How many items or batches enter each section. */
  readonly sections: readonly number[]
  /** The first stage whose batches are unknown. */
  readonly mixed: number
  /** The stages of all handlers that have to be called, with the first item that each of them gets, such as `1.17`. */
  readonly calls: ReadonlySet<string>
}

/** What the run would return if it were neither stopped nor disturbed. */
export function expectedOf(planned: PlannedRun, number: number): Expected {
  const { count, source, stages, resultBatch, ordered } = planned
  const { fails } = source
  const sourceFails = fails?.isFinal === true && fails.at < count
  // The items of a batch that is not full are emitted as well.
  const emitted = sourceFails ? fails.at : count
  const failures: (Failure & { readonly at: number })[] = []
  const sections: number[] = []
  const calls = new Set<string>()
  const mixed = firstMixed(planned) ?? Number.POSITIVE_INFINITY

  let passing: readonly Placed[] = place(Array.from({ length: emitted }, (_, at) => yieldedAt(planned, number, at)))
  const counts = stages.map(({ batch }, i) => {
    if (batch !== undefined) passing = place(batchesOf(passing, batch))
    if (i === 0 || batch !== undefined) sections.push(passing.length)
    const ended = { completed: 0, dropped: 0, failed: 0 }
    passing = passing.flatMap(({ position, item }) => {
      const [at = 0] = item.ats
      if (i + 1 < mixed) calls.add(`${i + 1}.${at}`)
      const fault = faultOf(planned, i + 1, item)
      if (fault === 'fail') {
        ended.failed++
        failures.push({ stage: i + 1, position, at })
        return []
      }
      ended.completed++
      if (fault === 'drop') {
        ended.dropped++
        return []
      }
      return [{ position, item: transform(item) }]
    })
    return ended
  })
  const results = resultBatch === undefined ? passing.map(({ item }) => item) : batchesOf(passing, resultBatch)
  return {
    ...{ emitted, sourceFails, sections, mixed, calls, stages: counts },
    results: results.map((item) => ({ ...item, padding: '' })),
    areResultsMixed: mixed !== Number.POSITIVE_INFINITY || (!ordered && resultBatch !== undefined),
    values: new Map(results.flatMap(({ ats }) => ats).map((at) => [at, addedValue(planned, number, at)])),
    failures: failures.map(({ stage, position }) => ({ stage, position })),
    barrier: Math.min(...failures.map(({ at }) => at)),
  }
}

interface Placed {
  readonly position: number
  readonly item: Item
}

const place = (items: readonly Item[]): readonly Placed[] => items.map((item, position) => ({ position, item }))

function batchesOf(passing: readonly Placed[], size: number): readonly Item[] {
  const items = passing.map(({ item }) => item)
  return Array.from({ length: Math.ceil(items.length / size) }, (_, i) => joined(items.slice(i * size, (i + 1) * size)))
}

/** The value of an item of the source that passes all stages alone. */
function addedValue(planned: PlannedRun, number: number, at: number): number {
  const { stages, resultBatch } = planned
  let item = yieldedAt(planned, number, at)
  for (const { batch } of stages) item = transform(batch === undefined ? item : joined([item]))
  return (resultBatch === undefined ? item : joined([item])).value
}

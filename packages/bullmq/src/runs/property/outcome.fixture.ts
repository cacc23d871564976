// Computes what the run of a random pipeline may return, with plain arrays and functions, and compares it with what a run has returned.
import { MAX_PASSED_BYTES, type Run, type RunError } from '@bullpen/engine/internal'
import { expect } from 'vitest'
import type { PlannedRun } from './program.fixture.ts'

export interface Item {
  /** The position of the run among those of the program. */
  readonly run: number
  /** The number that the source gave the item. */
  readonly at: number
  readonly value: number
  /** How many stages the item has passed. */
  readonly passed: number
  /** Makes the item large on its way. Results are without it. */
  readonly padding: string
}

const LARGE = 'x'.repeat(MAX_PASSED_BYTES)

/** What the source yields at a position. */
export function yieldedAt({ largeEvery }: Pick<PlannedRun, 'largeEvery'>, run: number, at: number): Item {
  const isLarge = largeEvery !== undefined && at % largeEvery === 0
  return { run, at, value: 7 * at, passed: 0, padding: isLarge ? LARGE : '' }
}

/** What a stage makes of an item. */
export function transform({ value, passed, ...item }: Item): Item {
  return { ...item, value: (31 * value + passed + item.padding.length) % 1_000_003, passed: passed + 1 }
}

export interface Failure {
  readonly stage: number
  readonly position: number
}

export interface Expected {
  /** How many items the source yields, and whether it then fails. */
  readonly yielded: number
  readonly sourceFails: boolean
  readonly results: readonly Item[]
  readonly failures: readonly Failure[]
  readonly stages: readonly { readonly completed: number; readonly dropped: number; readonly failed: number }[]
  /** The stages and positions of all handlers that have to be called, such as `1.17`. */
  readonly calls: ReadonlySet<string>
}

/** What the run would return if it were neither stopped nor disturbed. */
export function expectedOf(planned: PlannedRun, number: number): Expected {
  const { count, source, stages, faults } = planned
  const { fails } = source
  const sourceFails = fails?.isFinal === true && fails.at < count
  const yielded = sourceFails ? fails.at : count
  const results: Item[] = []
  const failures: Failure[] = []
  const counts = stages.map(() => ({ completed: 0, dropped: 0, failed: 0 }))
  const calls = new Set<string>()
  for (let at = 0; at < yielded; at++) {
    const passed = pass(at)
    if (passed !== undefined) results.push({ ...passed, padding: '' })
  }
  return { yielded, sourceFails, results, failures, stages: counts, calls }

  function pass(at: number): Item | undefined {
    let item = yieldedAt(planned, number, at)
    for (const [i, count] of counts.entries()) {
      const name = `${i + 1}.${at}`
      calls.add(name)
      const fault = faults.get(name)
      if (fault === 'fail') {
        count.failed++
        failures.push({ stage: i + 1, position: at })
        return undefined
      }
      count.completed++
      if (fault === 'drop') {
        count.dropped++
        return undefined
      }
      item = transform(item)
    }
    return item
  }
}

export interface Returned {
  /** The position of the run among those of the program. */
  readonly number: number
  readonly run: Run
  readonly output: readonly Item[] | undefined
  readonly errors: readonly RunError[]
  /** The stages and positions of all handlers that were called. */
  readonly calls: ReadonlySet<string>
  /** Whether a client has cancelled the run. */
  readonly wasCancelled: boolean
}

/** Expects a run to have ended in one of the ways that were planned. */
export function expectOutcome(planned: PlannedRun, returned: Returned): void {
  const { run } = returned
  const expected = expectedOf(planned, returned.number)
  expect(run.state).toBe('ended')
  for (const { waiting, running } of run.stages) expect({ waiting, running }).toEqual({ waiting: 0, running: 0 })
  expect([...returned.calls].filter((call) => !expected.calls.has(call))).toEqual([])
  switch (run.stopped?.reason) {
    case undefined:
      expectWhole(planned, expected, returned)
      return
    case 'first_error':
      expectFirstError(planned, expected, returned)
      return
    case 'taken':
      expectTaken(planned, expected, returned)
      return
    case 'cancelled':
      expect(returned).toMatchObject({ wasCancelled: true, output: undefined, run: { ended: { result: 'cancelled' } } })
      expect(run.results).toBeLessThanOrEqual(mostResults(planned, expected))
      return
    default:
      expect.fail(`the run was stopped: ${run.stopped?.reason}`)
  }
}

function expectWhole(planned: PlannedRun, expected: Expected, { run, output, errors, calls }: Returned): void {
  const { yielded, sourceFails, results, failures, stages } = expected
  expect(run).toMatchObject({
    source: { state: sourceFails ? 'failed' : 'done', emitted: yielded },
    sections: [{ entered: yielded, left: yielded }],
    results: results.length,
    errors: failures.length,
    stages,
    ended: { result: sourceFails ? 'failed' : 'completed' },
  })
  expect(calls).toEqual(expected.calls)
  expect(planned.take ?? Number.POSITIVE_INFINITY).toBeGreaterThan(results.length)
  if (planned.onError === 'cancel') expect(failures).toEqual([])
  expectErrors(planned, expected, errors, Math.min(failures.length, planned.maxErrors))
  if (sourceFails || !planned.reduces) expect(output).toBeUndefined()
  else expect(inOrder(planned, output)).toEqual(results)
}

function expectFirstError(planned: PlannedRun, expected: Expected, { run, output }: Returned): void {
  const { stage = 0, position = 0, end } = run.firstError ?? {}
  expect(planned.onError).toBe('cancel')
  expect(expected.failures).toContainEqual({ stage, position })
  expect({ end, result: run.ended?.result, output }).toEqual({ end: 'dead', result: 'failed', output: undefined })
  expect(run.results).toBeLessThanOrEqual(mostResults(planned, expected))
  if (planned.take !== undefined) expect(run.results).toBeLessThan(planned.take)
}

function expectTaken(planned: PlannedRun, expected: Expected, { run, output, errors }: Returned): void {
  const { take } = planned
  expect(run).toMatchObject({ results: take, ended: { result: 'completed' } })
  expect(mostResults(planned, expected)).toBeGreaterThanOrEqual(take ?? 0)
  if (planned.onError === 'collect') expectErrors(planned, expected, errors, Math.min(run.errors, planned.maxErrors))
  if (!planned.reduces) return
  expect(output).toHaveLength(take ?? 0)
  if (planned.ordered) expect(output).toEqual(expected.results.slice(0, take))
  else for (const each of output ?? []) expect(expected.results).toContainEqual(each)
  expect(new Set(output?.map(({ at }) => at)).size).toBe(take)
}

/** The most results that a run can have: those in front of the first failing item if this item stops the run and results are in order. */
function mostResults({ ordered, onError, take }: PlannedRun, { results, failures }: Expected): number {
  const barrier = onError === 'cancel' && ordered ? Math.min(...failures.map(({ position }) => position)) : Infinity
  return Math.min(results.filter(({ at }) => at < barrier).length, take ?? Infinity)
}

/** Expects this many errors, each of another item, and each of them one that was planned. */
function expectErrors(
  { onError }: PlannedRun,
  { failures }: Expected,
  errors: readonly RunError[],
  count: number,
): void {
  expect(errors).toHaveLength(onError === 'collect' ? count : 0)
  expect(new Set(errors.map(({ position }) => position)).size).toBe(errors.length)
  for (const { stage, position, end } of errors) {
    expect(end).toBe('dead')
    expect(failures).toContainEqual({ stage, position })
  }
}

function inOrder({ ordered }: PlannedRun, output: readonly Item[] | undefined): readonly Item[] | undefined {
  return ordered ? output : output?.toSorted((one, other) => one.at - other.at)
}

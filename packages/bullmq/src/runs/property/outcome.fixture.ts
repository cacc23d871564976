// Compares what a run of a random pipeline has returned with what the model says.
import type { Run, RunError } from '@bullpen/engine/internal'
import { expect } from 'vitest'
import { type Item, MODULUS } from './items.fixture.ts'
import { type Expected, expectedOf } from './model.fixture.ts'
import type { PlannedRun } from './program.fixture.ts'

export interface Returned {
  /** The position of the run among those of the program. */
  readonly number: number
  readonly run: Run
  readonly output: readonly Item[] | undefined
  readonly errors: readonly RunError[]
  /** The stages of all handlers that were called, with the first item that each of them got. */
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
  expect(knownCalls(expected, returned).filter((call) => !expected.calls.has(call))).toEqual([])
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

/** The calls of stages whose batches are known. */
function knownCalls({ mixed }: Expected, { calls }: Returned): readonly string[] {
  return [...calls].filter((call) => Number.parseInt(call, 10) < mixed)
}

function expectWhole(planned: PlannedRun, expected: Expected, returned: Returned): void {
  const { run, output, errors } = returned
  const { emitted, sourceFails, results, failures, stages, sections } = expected
  expect(run).toMatchObject({
    source: { state: sourceFails ? 'failed' : 'done', emitted },
    sections: sections.map((entered) => ({ entered, left: entered, batching: 0 })),
    results: results.length,
    errors: failures.length,
    stages,
    ended: { result: sourceFails ? 'failed' : 'completed' },
  })
  expect(new Set(knownCalls(expected, returned))).toEqual(expected.calls)
  expect(planned.take ?? Number.POSITIVE_INFINITY).toBeGreaterThan(results.length)
  if (planned.onError === 'cancel') expect(failures).toEqual([])
  expectErrors(planned, expected, errors, Math.min(failures.length, planned.maxErrors))
  if (sourceFails || !planned.reduces) expect(output).toBeUndefined()
  else if (expected.areResultsMixed) {
    expect(output).toHaveLength(results.length)
    expectMixed(expected, output ?? [])
    expect(output?.flatMap(({ ats }) => ats).length).toBe(expected.values.size)
  } else expect(inOrder(planned, output)).toEqual(results)
}

/** Expects that no item of the source is in two results, and that the value of each result is that of its items. */
function expectMixed({ values }: Expected, output: readonly Item[]): void {
  const ats = output.flatMap((each) => each.ats)
  expect(new Set(ats).size).toBe(ats.length)
  for (const { ats, value } of output) {
    expect(value).toBe(ats.reduce((sum, at) => sum + (values.get(at) ?? Number.NaN), 0) % MODULUS)
  }
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
  else if (expected.areResultsMixed) expectMixed(expected, output ?? [])
  else for (const each of output ?? []) expect(expected.results).toContainEqual(each)
  expect(new Set(output?.map(({ ats }) => ats[0])).size).toBe(take)
}

/** The most results that a run can have: those in front of the first failing item if this item stops the run and results are in order. */
function mostResults({ ordered, onError, take }: PlannedRun, { results, barrier }: Expected): number {
  const end = onError === 'cancel' && ordered ? barrier : Number.POSITIVE_INFINITY
  const possible = results.filter(({ ats }) => ats.every((at) => at < end))
  return Math.min(possible.length, take ?? Number.POSITIVE_INFINITY)
}

/** Expects this many errors, each of another item, and each of them one that was planned. */
function expectErrors(
  { onError }: PlannedRun,
  { failures }: Expected,
  errors: readonly RunError[],
  count: number,
): void {
  expect(errors).toHaveLength(onError === 'collect' ? count : 0)
  expect(new Set(errors.map(({ stage, position }) => `${stage}.${position}`)).size).toBe(errors.length)
  for (const { stage, position, end } of errors) {
    expect(end).toBe('dead')
    expect(failures).toContainEqual({ stage, position })
  }
}

function inOrder({ ordered }: PlannedRun, output: readonly Item[] | undefined): readonly Item[] | undefined {
  return ordered ? output : output?.toSorted((one, other) => (one.ats[0] ?? 0) - (other.ats[0] ?? 0))
}

// Tests on every broker which items the batches of a pipeline contain, and that a run with batches goes on and ends like any other.
import { at, TaskError, type TaskId } from '@bullpen/contract'
import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import type { OpenBackend } from '../backend.ts'
import { reversing } from '../enqueueing/payloads.ts'
import type { Handle } from '../setup.ts'
import { any, batches, idle, isHeldUp, openRuns, stage } from './runs-setup.ts'

interface Numbered {
  readonly n: number
}

const upTo = (count: number, from = 0): readonly number[] => Array.from({ length: count }, (_, i) => from + i)
const sum = (numbers: readonly number[]): number => numbers.reduce((total, n) => total + n, 0)

/** A handler that passes on single numbers, and the sum of the numbers of a batch. It records the batches. */
function summing({ fails, drops }: { readonly fails?: number; readonly drops?: number } = {}) {
  const seen: (readonly number[])[] = []
  const handle: Handle = (context) => {
    const input = context.input as Numbered | readonly Numbered[]
    const numbers = [input].flat().map(({ n }) => n)
    if (Array.isArray(input)) seen.push(numbers)
    if (fails !== undefined && numbers.includes(fails)) throw new TaskError('unlucky', 'no', { retryable: false })
    return drops !== undefined && numbers.includes(drops) ? undefined : { n: sum(numbers) }
  }
  const inOrder = () => seen.toSorted(([one = 0], [other = 0]) => one - other)
  return { handle, seen, inOrder }
}

export function pipelineBatches(open: OpenBackend): void {
  it('batches of the source contain its items in order, and only the last one is shorter', async () => {
    const { handle, inOrder } = summing()
    const { startRun, start, ended, runs } = await openRuns(open, { handle })
    await start()
    const id = await startRun({ count: 12, stages: [batches(5, 2)] })
    expect(await ended(id)).toMatchObject({
      source: { emitted: 12 },
      stages: [{ completed: 3 }],
      sections: [{ entered: 3, left: 3 }],
      results: 3,
      ended: { result: 'completed' },
    })
    expect(inOrder()).toEqual([upTo(5), upTo(5, 5), upTo(2, 10)])
    expect(await runs.output(id)).toEqual({ ns: [sum(upTo(5)), sum(upTo(5, 5)), 21] })
  })

  it('batches behind a stage leave out the items that were dropped or have failed', async () => {
    const { handle, inOrder } = summing({ fails: 13, drops: 3 })
    const { startRun, start, ended } = await openRuns(open, { handle })
    await start()
    const id = await startRun({ count: 20, onError: 'collect', stages: [any(3), batches(5, 2)] })
    expect(await ended(id)).toMatchObject({
      errors: 1,
      results: 4,
      stages: [{ completed: 19, dropped: 1, failed: 1 }, { completed: 4 }],
    })
    expect(inOrder()).toEqual([[0, 1, 2, 4, 5], upTo(5, 6), [11, 12, 14, 15, 16], upTo(3, 17)])
  })

  it('an unordered run puts every item into one batch', async () => {
    const { handle, seen } = summing()
    const { startRun, start, ended } = await openRuns(open, { handle })
    await start()
    const run = await ended(await startRun({ count: 23, ordered: false, stages: [stage(4), batches(5, 2)] }))
    expect(run.ended?.result).toBe('completed')
    expect(seen.map(({ length }) => length).toSorted()).toEqual([3, 5, 5, 5, 5])
    expect(seen.flat().toSorted((one, other) => one - other)).toEqual(upTo(23))
  })

  it('the error of a batch counts once, at the number of the batch', async () => {
    const { handle: summed } = summing({ fails: 6 })
    const handle: Handle = (context) => (Array.isArray(context.input) ? summed(context) : context.input)
    const { startRun, start, ended, runs } = await openRuns(open, { handle })
    await start()
    const id = await startRun({ count: 12, onError: 'collect', stages: [any(1), batches(5, 2)] })
    expect(await ended(id)).toMatchObject({ errors: 1, results: 2, stages: [{ failed: 0 }, { failed: 1 }] })
    expect(await runs.errors(id, 0, 10)).toEqual([{ stage: 2, position: 1, end: 'dead' }])
  })

  it('batches of results are taken and reduced as arrays', async () => {
    const { startRun, start, ended, runs } = await openRuns(open)
    await start()
    const id = await startRun({ count: 12, resultBatch: 5, stages: [stage(3)] })
    expect(await ended(id)).toMatchObject({ results: 3, ended: { result: 'completed' } })
    expect(await runs.output(id)).toEqual({ ns: upTo(12) })
    const taking = await startRun({ count: 10_000, resultBatch: 5, take: 2, stages: [stage(3)] })
    expect(await ended(taking)).toMatchObject({ results: 2, stopped: { reason: 'taken' } })
    expect(await runs.output(taking)).toEqual({ ns: upTo(10) })
  })

  it('several batches follow each other, and each has positions of its own', async () => {
    const { handle, seen } = summing()
    const { startRun, start, ended, runs } = await openRuns(open, { handle })
    await start()
    const id = await startRun({ count: 25, stages: [batches(3, 2), batches(2, 2), batches(2, 1)] })
    expect(await ended(id)).toMatchObject({
      stages: [{ completed: 9 }, { completed: 5 }, { completed: 3 }],
      sections: [
        { entered: 9, left: 9, batching: 0 },
        { entered: 5, left: 5, batching: 0 },
        { entered: 3, left: 3, batching: 0 },
      ],
    })
    expect(seen).toHaveLength(17)
    expect(await runs.output(id)).toEqual({ ns: [sum(upTo(12)), sum(upTo(12, 12)), 24] })
  })

  it('a batch that is larger than all bounds becomes full, although a single slot runs the source and the stages', async () => {
    const { handle, seen } = summing()
    const { startRun, start, ended } = await openRuns(open, { handle, concurrency: 1 })
    await start()
    const run = await ended(await startRun({ count: 12, stages: [stage(1, 0), batches(8, 1, 0)] }))
    expect(run.ended?.result).toBe('completed')
    expect(run.source.segment).toBeGreaterThan(0)
    expect(seen).toEqual([upTo(8), upTo(4, 8)])
  })

  it('a source with cursors goes on at the last full batch', async () => {
    const begun: unknown[] = []
    const { handle, inOrder } = summing()
    const { startRun, start, ended } = await openRuns(open, {
      handle,
      concurrency: 1,
      *source({ count }, _context, cursor) {
        begun.push(cursor)
        for (let n = typeof cursor === 'number' ? cursor : 0; n < count; n++) yield at(n + 1, { n })
      },
    })
    await start()
    const run = await ended(await startRun({ count: 5, stages: [batches(3, 1, 0)] }))
    expect(run).toMatchObject({ source: { emitted: 5 }, ended: { result: 'completed' } })
    expect(begun).toEqual([undefined, 3])
    expect(inOrder()).toEqual([upTo(3), upTo(2, 3)])
  })

  it('a batch that is not full is passed on when the source has failed, before the run fails', async () => {
    const { handle, seen } = summing()
    const { startRun, start, ended } = await openRuns(open, {
      handle,
      *source() {
        for (const n of upTo(7)) yield { n }
        throw new TaskError('walk_failed', 'no permission', { retryable: false })
      },
    })
    await start()
    const run = await ended(await startRun({ count: 0, stages: [stage(2), batches(5, 1)] }))
    expect(run).toMatchObject({ source: { state: 'failed', emitted: 7 }, ended: { result: 'failed' } })
    expect(seen).toEqual([upTo(5), upTo(2, 5)])
  })

  it('a batch of the source that is not full is passed on when the source has failed for good, and not before', async () => {
    const { handle, inOrder } = summing()
    let attempts = 0
    const { startRun, start, ended } = await openRuns(open, {
      handle,
      *source() {
        for (const n of upTo(7)) yield { n }
        throw new TaskError('walk_failed', 'no permission', { retryable: ++attempts === 1 })
      },
    })
    await start()
    const run = await ended(await startRun({ count: 0, stages: [batches(5, 2)] }))
    expect(run).toMatchObject({ source: { state: 'failed', emitted: 7 }, results: 2, ended: { result: 'failed' } })
    expect([attempts, inOrder()]).toEqual([2, [upTo(5), upTo(2, 5)]])
  })

  it('values that a codec has encoded are put into batches of the source, of a stage and of results', async () => {
    const { handle, seen } = summing()
    const { startRun, start, ended, runs } = await openRuns(open, { handle, codec: reversing() })
    await start()
    const id = await startRun({ count: 11, resultBatch: 2, stages: [batches(2, 2), batches(2, 1)] })
    expect((await ended(id)).ended?.result).toBe('completed')
    expect(seen).toContainEqual([9, 13])
    expect(await runs.output(id)).toEqual({ ns: [6, 22, 27] })
  })

  it.each([
    ['', {}],
    [' through a codec', { codec: reversing() }],
  ])('a batch of large outputs reaches its task%s', async (_, used) => {
    const text = '€'.repeat(10_000)
    const handle: Handle = (context) => {
      const input = context.input as Numbered | readonly (Numbered & { readonly text: string })[]
      // A handler of the setup handles every definition, whose outputs differ.
      if (!Array.isArray(input)) return { ...input, text } as never
      expect(input.every((each) => each.text === text)).toBe(true)
      return { n: sum(input.map(({ n }) => n)) }
    }
    const { startRun, start, ended, runs } = await openRuns(open, { ...used, handle, maxOutputBytes: 100_000 })
    await start()
    const id = await startRun({ count: 7, stages: [any(2), batches(3, 2)] })
    expect((await ended(id)).ended?.result).toBe('completed')
    expect(await runs.output(id)).toEqual({ ns: [3, 12, 6] })
  })

  it('the record of a failed batch shows its items, although a codec has encoded each of them', async () => {
    const { handle: summed } = summing({ fails: 1 })
    const handle: Handle = (context) => (Array.isArray(context.input) ? summed(context) : context.input)
    const { startRun, start, ended, find, idsOf } = await openRuns(open, { handle, codec: reversing() })
    await start()
    await ended(await startRun({ count: 2, stages: [any(1), batches(2, 1)] }))
    const [dead] = await idsOf('dead')
    expect((await find(dead as TaskId)).input).toEqual([{ n: 0 }, { n: 1 }])
  })

  it('a run with batches whose worker is killed has the same output', async () => {
    const { handle } = summing()
    const { startRun, start, ended, runs, backend, idsOf } = await openRuns(open, { handle })
    await start('a:1')
    const id = await startRun({ count: 60, stages: [stage(2), batches(4, 2), any(2)] })
    await eventually(async () => ((await runs.find(id))?.stages[1]?.completed ?? 0) > 4)
    await backend.kill('a:1', await idsOf('active'))
    await start('b:2')
    expect((await ended(id)).ended?.result).toBe('completed')
    expect(await runs.output(id)).toEqual({ ns: upTo(15).map((i) => sum(upTo(4, 4 * i))) })
  })

  it('a stage works ahead for the next batch as far as its bounds allow, and a cancelled run leaves no item of it behind', async () => {
    const { startRun, start, ended, runs } = await openRuns(open, { handle: summing().handle })
    await start()
    const id = await startRun({ count: 1_000, stages: [stage(2, 0), { ...idle(1), batch: 5 }] })
    const full = await eventually(async () => {
      const run = await runs.find(id)
      return run !== undefined && isHeldUp(run) && run.stages[1]?.waiting === 6 && run
    })
    // The first batch has begun. The first stage may have 2 + 4 tasks and outputs, and its section 4 more items. When the batch has begun,
    // half of the section is free, so that the source goes on even if its task has ended in the meantime.
    expect(full).toMatchObject({
      source: { emitted: 5 + 10 },
      stages: [
        { running: 0, waiting: 4 },
        { running: 1, waiting: 6 },
      ],
    })
    await runs.cancel(id, 'bob')
    expect(await runs.find(id)).toMatchObject({ stages: [{ waiting: 0 }, { waiting: 0 }] })
    expect((await ended(id)).ended?.result).toBe('cancelled')
  })
}

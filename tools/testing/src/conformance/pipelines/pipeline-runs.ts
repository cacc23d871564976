// Tests on every broker what a pipeline promises about its items, its bounds, its errors and its end.
import { at, TaskError } from '@bullpen/contract'
import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import type { OpenBackend } from '../backend.ts'
import { AFTER, numbers, QUEUE, untilStopped } from '../setup.ts'
import { idle, isHeldUp, openRuns, stage } from './runs-setup.ts'

const upTo = (count: number): readonly number[] => Array.from({ length: count }, (_, n) => n)

export function pipelineRuns(open: OpenBackend): void {
  it('every item passes every stage, and the reduction gets the results in the order of the source', async () => {
    const { startRun, start, ended, runs } = await openRuns(open)
    await start()
    const id = await startRun({ count: 12, stages: [stage(3), stage(2, 0)] })
    expect(await ended(id)).toMatchObject({
      results: 12,
      sections: [{ entered: 12, left: 12 }],
      errors: 0,
      source: { state: 'done', emitted: 12 },
      stages: [{ completed: 12 }, { completed: 12 }],
      ended: { result: 'completed' },
    })
    expect(await runs.output(id)).toEqual({ ns: upTo(12) })
  })

  it('an empty source gives the reduction no results', async () => {
    const { startRun, start, ended, runs } = await openRuns(open)
    await start()
    const id = await startRun({ count: 0 })
    expect((await ended(id)).ended?.result).toBe('completed')
    expect(await runs.output(id)).toEqual({ ns: [] })
  })

  it('a stage has at most as many tasks as its concurrency, and the source stops when the window is full', async () => {
    let yielded = 0
    const { startRun, start, runs } = await openRuns(open, {
      *source({ count }) {
        for (let n = 0; n < count; n++) {
          yielded++
          yield { n }
        }
      },
    })
    await start()
    const id = await startRun({ count: 1_000, stages: [stage(2, 1), idle(3, 4)] })
    await eventually(async () => (await runs.find(id))?.stages[1]?.running === 3)
    const full = await eventually(async () => {
      const run = await runs.find(id)
      return run !== undefined && isHeldUp(run) && run.stages[1]?.waiting === 3 && run
    })
    expect(full.source.emitted).toBe(10)
    expect(full.stages[1]).toMatchObject({ running: 3, waiting: 3 })
    expect(yielded).toBeLessThanOrEqual(11)
    await runs.cancel(id, 'bob')
  })

  it('a source that waits for long frees its slot, and goes on in another task when there is room', async () => {
    const begun: unknown[] = []
    const { startRun, start, ended, runs, broker } = await openRuns(open, {
      concurrency: 1,
      *source({ count }, _context, cursor) {
        begun.push(cursor)
        for (let n = 0; n < count; n++) yield { n }
      },
    })
    await start()
    // With a single slot, the stage can run only when the source does not.
    const id = await startRun({ count: 7, stages: [stage(1, 1)] })
    expect((await ended(id)).ended?.result).toBe('completed')
    expect(await runs.output(id)).toEqual({ ns: upTo(7) })
    expect(begun.length).toBeGreaterThan(1)
    await eventually(async () => (await broker.totals('conformance')).outbox.entries === 0)
  })

  it('a source with cursors goes on where it was', async () => {
    const begun: unknown[] = []
    const { startRun, start, ended, runs } = await openRuns(open, {
      concurrency: 1,
      *source({ count }, _context, cursor) {
        begun.push(cursor)
        for (let n = typeof cursor === 'number' ? cursor : 0; n < count; n++) yield at(n + 1, { n })
      },
    })
    await start()
    const id = await startRun({ count: 5, stages: [stage(1, 1)] })
    expect((await ended(id)).ended?.result).toBe('completed')
    expect(await runs.output(id)).toEqual({ ns: upTo(5) })
    expect(begun).toEqual([undefined, 2, 4])
  })

  it.each([
    ['ignores its cursor', () => 0],
    ['yields the item at its cursor again', (cursor: unknown) => Number(cursor)],
  ])('a source that %s fails the run', async (_, first) => {
    const { startRun, start, ended } = await openRuns(open, {
      concurrency: 1,
      *source({ count }, _context, cursor) {
        for (let n = cursor === undefined ? 0 : first(cursor); n < count; n++) yield at(n, { n })
      },
    })
    await start()
    const run = await ended(await startRun({ count: 5, stages: [stage(1, 1)] }))
    expect(run).toMatchObject({ source: { state: 'failed', emitted: 2 }, results: 2, ended: { result: 'failed' } })
  })

  it('a source that does not yield the same items again fails the run', async () => {
    let runsOfSource = 0
    const { startRun, start, ended } = await openRuns(open, {
      concurrency: 1,
      *source({ count }) {
        const first = runsOfSource++
        for (let n = 0; n < count; n++) yield { n: n + first }
      },
    })
    await start()
    const id = await startRun({ count: 5, stages: [stage(1, 1)] })
    const run = await ended(id)
    expect(run).toMatchObject({ source: { state: 'failed', emitted: 2 }, results: 2, ended: { result: 'failed' } })
  })

  it('the first error cancels the rest, and no reduction runs', async () => {
    const { startRun, start, ended } = await openRuns(open)
    await start()
    const id = await startRun({ count: 1_000, stages: [stage(2)] })
    const run = await ended(id)
    expect(run).toMatchObject({
      firstError: { stage: 1, position: 13, end: 'dead' },
      stopped: { reason: 'first_error' },
      reduce: 'pending',
      ended: { result: 'failed' },
    })
    expect(run.source.emitted).toBeLessThan(100)
  })

  it('errors that are collected leave out their items, and only the failed tasks are kept', async () => {
    const { startRun, start, ended, runs, broker } = await openRuns(open)
    await start()
    const id = await startRun({ count: 20, onError: 'collect' })
    expect(await ended(id)).toMatchObject({ errors: 1, results: 19, ended: { result: 'completed' } })
    expect(await broker.counts('conformance')).toMatchObject({ completed: 0, dead: 1 })
    expect(await broker.totals('conformance')).toMatchObject({ unaccounted: 0, bytes: 0 })
    expect(await runs.errors(id, 0, 10)).toEqual([{ stage: 1, position: 13, end: 'dead' }])
    expect(await runs.output(id)).toEqual({ ns: upTo(20).filter((n) => n !== 13) })
  })

  it("the source's own error is looked at after the items that it has yielded", async () => {
    const { startRun, start, ended } = await openRuns(open, {
      *source() {
        yield* [{ n: 1 }, { n: 2 }, { n: 3 }]
        throw new TaskError('walk_failed', 'no permission', { retryable: false })
      },
    })
    await start()
    const run = await ended(await startRun({ count: 0 }))
    const source = { state: 'failed', emitted: 3 }
    expect(run).toMatchObject({ source, results: 3, reduce: 'pending', ended: { result: 'failed' } })
  })

  it('an item that does not match its schema fails the run, after the items before it have passed', async () => {
    const { startRun, start, ended } = await openRuns(open, {
      *source() {
        yield* [at('a', { n: 1 }), at('b', { n: 2 }), at('c', { n: 0.5 })]
      },
    })
    await start()
    const run = await ended(await startRun({ count: 0 }))
    const source = { state: 'failed', emitted: 2, cursor: '"b"' }
    expect(run).toMatchObject({ source, results: 2, ended: { result: 'failed' } })
  })

  it('a run that takes a number of results stops its source, and is completed', async () => {
    const { startRun, start, ended, runs, broker } = await openRuns(open)
    await start()
    const id = await startRun({ count: 100_000, take: 5 })
    const run = await ended(id)
    expect(run).toMatchObject({ results: 5, stopped: { reason: 'taken' }, ended: { result: 'completed' } })
    expect(run.source.emitted).toBeLessThan(1_000)
    expect(await runs.output(id)).toEqual({ ns: upTo(5) })
    expect(await broker.counts(QUEUE)).toMatchObject({ waiting: 0, cancelled: 0, completed: 0 })
  })

  it('a run that is cancelled ends its waiting and running tasks, and starts nothing any more', async () => {
    const { startRun, start, ended, runs, broker } = await openRuns(open, {
      handle: untilStopped,
    })
    await start()
    const id = await startRun({ count: 1_000, stages: [stage(3), idle(2)] })
    await eventually(async () => (await runs.find(id))?.stages[0]?.running === 3)
    expect(await runs.cancel(id, 'bob')).toMatchObject({ stopped: { reason: 'cancelled', by: 'bob' } })
    expect(await ended(id)).toMatchObject({ ended: { result: 'cancelled' }, results: 0 })
    const none = { waiting: 0, active: 0, scheduled: 0, retrying: 0, dead: 0, cancelled: 0, completed: 0 }
    expect([await broker.counts(QUEUE), await broker.counts(AFTER)]).toEqual([
      expect.objectContaining(none),
      expect.objectContaining(none),
    ])
    await runs.cancel(id, 'cat')
    expect((await runs.find(id))?.stopped?.by).toBe('bob')
  })

  it('a run that is cancelled during its reduction cancels the reduction, too', async () => {
    const { startRun, start, ended, runs, broker } = await openRuns(open)
    await start()
    const id = await startRun({ count: 3, reduceIn: AFTER })
    await eventually(async () => (await broker.counts(AFTER)).waiting === 1)
    await runs.cancel(id, 'bob')
    expect(await ended(id)).toMatchObject({ reduce: 'cancelled', results: 3, ended: { result: 'cancelled' } })
    expect(await broker.counts(AFTER)).toMatchObject({ waiting: 0, cancelled: 0 })
  })

  it('a run fails if its reduction is cancelled on its own', async () => {
    const { startRun, start, ended, broker } = await openRuns(open)
    await start()
    const id = await startRun({ count: 3, reduceIn: AFTER })
    await eventually(async () => (await broker.counts(AFTER)).waiting === 1)
    const { tasks } = await broker.list({ queue: AFTER, status: 'waiting', limit: 1, cursor: undefined })
    expect(await broker.cancel(tasks[0]?.id ?? expect.fail(), { stoppable: true, by: 'ann' })).toBe('cancelled')
    expect(await ended(id)).toMatchObject({ reduce: 'cancelled', stopped: undefined, ended: { result: 'failed' } })
  })

  it('a task of a run that is cancelled on its own is kept, unlike those that are cancelled with the run', async () => {
    const { startRun, start, ended, runs, broker } = await openRuns(open)
    await start()
    const id = await startRun({ count: 3, stages: [idle(2)], onError: 'collect' })
    await eventually(async () => (await broker.counts(AFTER)).waiting === 2)
    const { tasks } = await broker.list({ queue: AFTER, status: 'waiting', limit: 10, cursor: undefined })
    const [first = expect.fail()] = tasks.map((task) => task.id)
    expect(await broker.cancel(first, { stoppable: true, by: 'ann' })).toBe('cancelled')
    await eventually(async () => (await runs.find(id))?.errors === 1)
    await runs.cancel(id, 'bob')
    await ended(id)
    expect(await broker.counts(AFTER)).toMatchObject({ waiting: 0, cancelled: 1 })
    expect((await broker.find(first))?.attempts.at(-1)).toMatchObject({ by: 'ann' })
  })

  it('a run is deleted only once it has ended', async () => {
    const { startRun, start, ended, runs } = await openRuns(open)
    const id = await startRun({ count: 2 })
    await expect(runs.delete(id)).rejects.toMatchObject({ code: 'run_not_ended' })
    expect(await runs.count()).toBe(1)
    await start()
    await ended(id)
    await runs.delete(id)
    expect([await runs.find(id), await runs.count()]).toEqual([undefined, 0])
    await expect(runs.delete(id)).rejects.toMatchObject({ code: 'run_not_found' })
  })

  it('an id can be used again once its run is deleted, and nothing that is left of the first run affects the second', async () => {
    const { startRun, start, ended, runs, broker } = await openRuns(open)
    await start()
    const id = await startRun({ count: 20 })
    const { settings: first, ...failed } = await ended(id)
    expect(failed).toMatchObject({ firstError: { position: 13 }, ended: { result: 'failed' } })
    await runs.delete(id)
    await startRun({ id, count: 3, stages: [idle(2)] })
    await eventually(async () => (await runs.find(id))?.source.emitted === 3)
    const emission = { segment: 1, fencingToken: 9, from: 3, values: ['{"n":9}'], count: 1, digest: '', cursor: '' }
    expect(await runs.emit(first, { ...emission, isLast: true })).toBe('stopped')
    await expect(runs.results(first, 0, 10)).rejects.toMatchObject({ code: 'run_not_found' })
    await runs.cancel(id, 'bob')
    expect(await ended(id)).toMatchObject({ source: { emitted: 3 }, ended: { result: 'cancelled' } })
    await runs.delete(id)
    await startRun({ id, count: 13 })
    expect(await ended(id)).toMatchObject({ errors: 0, results: 13, ended: { result: 'completed' } })
    expect(await runs.output(id)).toEqual({ ns: upTo(13) })
    expect(await broker.counts('conformance')).toMatchObject({ waiting: 0, active: 0, dead: 1 })
  })

  it('a repeated start gets the run that the first one has started, and a different one is refused', async () => {
    const { startRun, start, ended, runs } = await openRuns(open)
    const id = await startRun({ count: 3 })
    await startRun({ id, count: 3 })
    for (const other of [{ count: 4 }, { count: 3, pipeline: 'letters' }, { count: 3, keepMs: 1 }]) {
      await expect(startRun({ id, ...other })).rejects.toMatchObject({ code: 'run_id_taken' })
    }
    await start()
    expect(await ended(id)).toMatchObject({ source: { emitted: 3 }, results: 3, ended: { result: 'completed' } })
    await startRun({ id, count: 3 })
    expect(await runs.output(id)).toEqual({ ns: upTo(3) })
  })

  it('results that take too many bytes stop the run', async () => {
    const { startRun, start, ended } = await openRuns(open)
    await start()
    const run = await ended(await startRun({ count: 100, maxBytes: 30 }))
    expect(run).toMatchObject({ stopped: { reason: 'results_too_large' }, ended: { result: 'failed' } })
    expect(run.resultBytes).toBeLessThanOrEqual(30)
  })

  it('a worker with an older catalogue leaves the tasks of a run to a newer one, and none of their attempts counts', async () => {
    const { startRun, start, ended, runs, events, idsOf, find } = await openRuns(open)
    const old = await start('old:1', [numbers.name])
    const id = await startRun({ count: 3 })
    const task = await eventually(async () => (await idsOf('scheduled'))[0])
    expect(await find(task)).toMatchObject({
      attemptsMade: 0,
      attempts: [{ state: 'DONE_ERROR', code: 'unknown_task', counted: false, worker: 'old:1' }],
    })
    await start('new:2')
    await old.drain({ drainMs: 0, graceMs: 0 })
    expect((await ended(id)).ended?.result).toBe('completed')
    expect(await runs.output(id)).toEqual({ ns: upTo(3) })
    const verdicts = events.flatMap((each) => (each.event === 'attempt.ended' && each.code ? [each.verdict] : []))
    expect(new Set(verdicts)).toEqual(new Set(['snoozed']))
  })

  it('a run whose worker is killed in every stage has the same output', async () => {
    const { startRun, start, ended, runs, backend, idsOf } = await openRuns(open, { handle: ({ input }) => input })
    await start('a:1')
    const id = await startRun({ count: 60, stages: [stage(2), stage(2)] })
    await eventually(async () => ((await runs.find(id))?.stages[1]?.completed ?? 0) > 10)
    await backend.kill('a:1', await idsOf('active'))
    await start('b:2')
    expect((await ended(id)).ended?.result).toBe('completed')
    expect(await runs.output(id)).toEqual({ ns: upTo(60) })
  })
}

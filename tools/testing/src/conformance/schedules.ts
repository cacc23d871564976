// Schedules: the tasks that are enqueued at each tick, overlapping runs, and the requests that control a schedule.
import {
  defineSchedule,
  type ScheduleDefinition,
  type ScheduleOptions,
  type TaskDefinition,
  TaskError,
} from '@bullpen/contract'
import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import type { OpenBackend } from './backend.ts'
import { gate, long, openSetup, QUEUE, short } from './setup.ts'

const BY = { source: 'api', by: 'ann' } as const

const everySecond = (more: Partial<ScheduleOptions<TaskDefinition>> = {}): ScheduleDefinition =>
  defineSchedule({ name: 'tick', task: short, input: { n: 7 }, every: '1s', ...more } as ScheduleOptions<typeof short>)

/** A schedule that is never due during a test. */
const yearly = (more: Partial<ScheduleOptions<TaskDefinition>> = {}): ScheduleDefinition =>
  defineSchedule({ name: 'yearly', task: short, input: {}, cron: '0 0 1 1 *', ...more } as ScheduleOptions<
    typeof short
  >)

export function schedules(open: OpenBackend): void {
  it('each tick enqueues one task, whose labels name the schedule and the tick', async () => {
    const seen: { readonly n: number; readonly labels: Readonly<Record<string, string>> }[] = []
    const { broker, start } = await openSetup(open, {
      handle: ({ input, meta }) => {
        seen.push({ ...(input as { n: number }), labels: meta })
        return input
      },
    })
    await start()
    const { action, state } = await broker.schedules.put(everySecond({ meta: { team: 'a' }, tags: ['x'] }), BY)
    expect(action).toBe('created')
    const first = state.record.next ?? 0
    expect(first % 1_000).toBe(0)
    await eventually(() => seen.length >= 2)
    const at = (tick: number) => ({
      n: 7,
      labels: { team: 'a', 'bullpen.schedule': 'tick', 'bullpen.tick': new Date(tick).toISOString() },
    })
    expect(seen.slice(0, 2)).toEqual([at(first), at(first + 1_000)])
    const { lastRun } = (await broker.schedules.find('tick')).record
    const last = lastRun && (await broker.find(lastRun.id))
    expect(last).toMatchObject({ task: short.name, tags: ['x', 'schedule:tick'] })
    await broker.schedules.remove('tick')
  })

  it('what a process declares is stored once, so that requests can change, pause and delete it', async () => {
    const { broker } = await openSetup(open)
    const { schedules } = broker
    const declare = (...definitions: readonly ScheduleDefinition[]) =>
      schedules.declare(definitions, { by: 'catalogue' })
    const created = [{ name: 'yearly', queue: QUEUE, action: 'created' }]
    expect(await declare(yearly())).toEqual(created)
    expect((await schedules.find('yearly')).record).toMatchObject({ source: 'catalogue', changedBy: 'catalogue' })
    expect(await declare(yearly())).toEqual([])
    await schedules.put(yearly({ overlap: 'allow' }), BY)
    await schedules.pause('yearly', 'ann')
    expect(await declare(yearly())).toEqual([])
    expect((await schedules.find('yearly')).record).toMatchObject({ overlap: 'allow', paused: { by: 'ann' } })
    // A new definition is stored, and the schedule stays paused. A process with the old one then changes nothing.
    const next = yearly({ overlap: 'queue' })
    expect(await declare(next)).toEqual([{ ...created[0], action: 'changed' }])
    expect(await declare(yearly())).toEqual([])
    expect((await schedules.find('yearly')).record).toMatchObject({ overlap: 'queue', paused: { by: 'ann' } })
    await schedules.remove('yearly')
    expect([await declare(next), await declare(yearly())]).toEqual([[], []])
    expect(await schedules.list()).toEqual([])
    // A sync restores it, and a schedule that nobody declares any more stays until a sync deletes it.
    await schedules.sync([next], { by: 'ann', dryRun: false })
    expect(await declare()).toEqual([])
    expect(await schedules.list()).toHaveLength(1)
    await schedules.sync([], { by: 'ann', dryRun: false })
    expect([await declare(next), await schedules.list()]).toEqual([[], []])
  })

  it('a schedule that only a request has stored is not replaced by one that a process declares', async () => {
    const { broker } = await openSetup(open)
    await broker.schedules.put(yearly({ overlap: 'allow' }), BY)
    expect(await broker.schedules.declare([yearly()], { by: 'catalogue' })).toEqual([])
    expect((await broker.schedules.find('yearly')).record).toMatchObject({ overlap: 'allow', source: 'api' })
  })

  it('a tick is skipped as long as the previous run has not ended', async () => {
    const { broker, idsOf } = await openSetup(open)
    await broker.schedules.put(everySecond(), BY)
    const skipped = await eventually(async () => {
      const { record } = await broker.schedules.find('tick')
      return record.skipped >= 2 && record
    })
    expect(skipped).toMatchObject({ runs: 1, waiting: [] })
    expect(skipped.overlappingSince).toBeGreaterThan(0)
    expect(await idsOf('waiting')).toEqual([skipped.lastRun?.id])
  })

  it('with the overlap policy allow, runs overlap', async () => {
    const { broker, idsOf } = await openSetup(open)
    await broker.schedules.put(everySecond({ overlap: 'allow' }), BY)
    await eventually(async () => (await idsOf('waiting')).length >= 2)
    expect((await broker.schedules.find('tick')).record).toMatchObject({ skipped: 0 })
  })

  it('with the overlap policy queue, the run of a tick starts when the previous run has ended, and no run is lost', async () => {
    const { handle, entered, open: openGate } = gate()
    const { broker, start } = await openSetup(open, { handle })
    await start()
    await broker.schedules.put(everySecond({ overlap: 'queue', task: long }), BY)
    const held = await eventually(async () => {
      const { record } = await broker.schedules.find('tick')
      return record.waiting.length >= 2 && record
    })
    expect(entered).toHaveLength(1)
    const [first = 0] = held.waiting
    openGate()
    await eventually(() => entered.length >= 3)
    const ticks = await Promise.all(
      entered.slice(0, 3).map(async (id) => (await broker.find(id))?.meta['bullpen.tick']),
    )
    expect(ticks).toEqual([first - 1_000, first, first + 1_000].map((tick) => new Date(tick).toISOString()))
  })

  it('with the overlap policy cancel, the run of a tick replaces the running one', async () => {
    const { handle, entered } = gate()
    const { broker, start, settled } = await openSetup(open, { handle })
    await start()
    await broker.schedules.put(everySecond({ overlap: 'cancel', task: long }), BY)
    await eventually(() => entered.length >= 2)
    await broker.schedules.remove('tick')
    const [first] = entered
    expect(first === undefined ? undefined : await settled(first)).toMatchObject({ status: 'cancelled' })
  })

  it('a request runs a schedule at once, even if the schedule is paused', async () => {
    const { broker, start, settled } = await openSetup(open)
    await start()
    await broker.schedules.put(yearly({ input: { n: 3 } }), BY)
    await broker.schedules.pause('yearly', 'ann')
    const { id, state } = await broker.schedules.run('yearly')
    expect(state.record).toMatchObject({ runs: 1, lastRun: { id } })
    expect(await settled(id)).toMatchObject({ status: 'completed', output: { n: 3 } })
    expect(await broker.schedules.find('yearly')).toMatchObject({
      lastStatus: 'completed',
      record: { paused: { by: 'ann' } },
    })
  })

  it('runs by request count among the failed runs of a schedule, and a successful one ends the series', async () => {
    let fails = true
    const { broker, start, settled } = await openSetup(open, {
      handle({ input }) {
        if (fails) throw new TaskError('gone', 'it is gone', { retryable: false })
        return input
      },
    })
    await start()
    await broker.schedules.put(yearly({ input: { n: 1 } }), BY)
    const run = async () => {
      const { id, state } = await broker.schedules.run('yearly')
      await settled(id)
      return state.record.failed?.runs
    }
    expect([await run(), await run(), await run()]).toEqual([undefined, 1, 2])
    fails = false
    expect([await run(), await run()]).toEqual([3, undefined])
  })

  it('a paused schedule has no ticks, and a resumed one continues with the next tick', async () => {
    const { broker, idsOf } = await openSetup(open)
    await broker.schedules.put(everySecond({ overlap: 'allow' }), BY)
    const paused = await broker.schedules.pause('tick', 'bob')
    expect(paused.record.paused).toMatchObject({ by: 'bob' })
    // Pausing again changes nothing.
    expect((await broker.schedules.pause('tick', 'eve')).record.paused).toMatchObject({ by: 'bob' })
    const { runs, next } = paused.record
    await eventually(async () => (await broker.schedules.find('tick')).now > (next ?? 0) + 1_000)
    expect(await idsOf('waiting')).toHaveLength(runs)
    const resumed = await broker.schedules.resume('tick', 'bob')
    expect(resumed.record.paused).toBeUndefined()
    expect(resumed.record.next).toBeGreaterThan(resumed.now)
    await eventually(async () => (await idsOf('waiting')).length > runs)
  })

  it('a schedule is counted as failing from the death of its last run until a run succeeds or the schedule is deleted', async () => {
    let fails = true
    const { broker, start, settled } = await openSetup(open, {
      handle({ input }) {
        if (fails) throw new TaskError('broken', 'it never works', { retryable: false })
        return input
      },
      locks: 'quick',
    })
    await start()
    const becomes = (failing: number) =>
      eventually(async () => (await broker.schedules.troubles(QUEUE)).failing === failing)
    const run = async () => settled((await broker.schedules.run('yearly')).id)
    await broker.schedules.put(yearly(), BY)
    await broker.schedules.put(yearly({ name: 'other' }), BY)
    expect(await broker.schedules.troubles(QUEUE)).toEqual({ failing: 0, overlapping: 0, missed: 0, unreadable: 0 })
    await run()
    await becomes(1)
    fails = false
    await run()
    await becomes(0)
    fails = true
    await run()
    await becomes(1)
    await broker.schedules.remove('yearly')
    await becomes(0)
  })

  it('storing a schedule again changes only the settings that differ, and keeps its ticks unless its cadence differs', async () => {
    const { broker } = await openSetup(open)
    const { state } = await broker.schedules.put(yearly(), BY)
    expect((await broker.schedules.put(yearly(), BY)).action).toBe('unchanged')
    const changed = await broker.schedules.put(yearly({ input: { n: 2 } }), { ...BY, by: 'bob' })
    expect(changed).toMatchObject({
      action: 'changed',
      state: { record: { changedBy: 'bob', cursor: state.record.cursor } },
    })
    const other = await broker.schedules.put(yearly({ cron: '0 0 2 1 *' }), BY)
    expect(other.state.record.cursor).toBeGreaterThanOrEqual(changed.state.now)
    expect((await broker.schedules.list()).map(({ record }) => record.name)).toEqual(['yearly'])
    await broker.schedules.remove('yearly')
    await expect(broker.schedules.remove('yearly')).rejects.toMatchObject({ code: 'schedule_not_found' })
    await expect(broker.schedules.find('yearly')).rejects.toMatchObject({ code: 'schedule_not_found' })
    await expect(broker.schedules.pause('yearli', 'ann')).rejects.toMatchObject({ code: 'schedule_not_found' })
  })

  it('concurrent requests for one schedule do not overwrite each other', async () => {
    const { broker } = await openSetup(open)
    await broker.schedules.put(yearly({ overlap: 'allow' }), BY)
    const runs = await Promise.all(Array.from({ length: 10 }, () => broker.schedules.run('yearly')))
    expect(new Set(runs.map(({ id }) => id)).size).toBe(10)
    expect((await broker.schedules.find('yearly')).record.runs).toBe(10)
  })

  it('a sync stores the schedules of a catalogue, and deletes those that it no longer has', async () => {
    const { broker } = await openSetup(open)
    const run = async (definitions: readonly ScheduleDefinition[], dryRun = false) =>
      (await broker.schedules.sync(definitions, { by: 'deploy', dryRun })).map(({ name, action, fields }) => [
        name,
        action,
        fields.map(({ field }) => field),
      ])
    await broker.schedules.put(yearly({ name: 'own' }), BY)
    await broker.schedules.put(yearly({ name: 'b' }), BY)
    const first = [yearly({ name: 'a' }), yearly({ name: 'b', input: { n: 1 } })]
    expect(await run(first, true)).toEqual([
      ['a', 'created', []],
      ['b', 'changed', ['input', 'source']],
    ])
    expect((await broker.schedules.list()).map(({ record }) => record.name)).toEqual(['b', 'own'])
    await run(first)
    expect(await run(first)).toEqual([
      ['a', 'unchanged', []],
      ['b', 'unchanged', []],
    ])
    // A request's change is undone by the next sync, and a pause is not.
    await broker.schedules.put(yearly({ name: 'a', timeZone: 'Europe/Berlin' }), BY)
    await broker.schedules.pause('a', 'ann')
    expect(await run([yearly({ name: 'a' })])).toEqual([
      ['b', 'deleted', []],
      ['a', 'changed', ['timeZone']],
    ])
    const left = await broker.schedules.list()
    expect(left.map(({ record }) => [record.name, record.source, record.paused !== undefined])).toEqual([
      ['a', 'catalogue', true],
      ['own', 'api', false],
    ])
  })
}

// A steward between a fleet in memory and real pools, on a clock that stands still.
import { defineCatalogue, defineHandler, defineTask } from '@bullpen/contract'
import type { CommandSpec } from '@bullpen/contract/internal'
import { drainLimits, HEARTBEAT_INTERVAL_MS } from '@bullpen/engine/internal'
import { fakeClock, memoryBroker, memoryPool } from '@bullpen/testkit'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { createPoolSupervisor } from '../pools/pool-supervisor.ts'
import { fakeFleet } from './fake-fleet.fixture.ts'
import { openFleetAgent } from './fleet-agent.ts'

const ME = 'host:1:abc'
const schemas = { input: z.object({}), output: z.object({}) }
const one = defineTask({ name: 'st.one', queue: 'one', timeout: 'none', ...schemas })
const two = defineTask({ name: 'st.two', queue: 'two', timeout: 'none', ...schemas })
const catalogue = defineCatalogue(one, two)
const times = { drainMs: 20_000, graceMs: 100 }

function stewardship() {
  const clock = fakeClock()
  const broker = memoryBroker({ clock })
  const fleet = fakeFleet(clock, ME)
  const lines: Record<string, unknown>[] = []
  const log = {
    debug() {},
    info: (fields: object, message: string) => lines.push({ ...fields, message }),
    warn: (fields: object, message: string) => lines.push({ ...fields, message }),
    error: (fields: object, message: string) => lines.push({ ...fields, message }),
  }
  const running: { readonly queue: string; finish(): void }[] = []
  const handle = (queue: string) => (context: { readonly signal: AbortSignal }) =>
    new Promise<Record<string, never>>((resolve, reject) => {
      running.push({ queue, finish: () => resolve({}) })
      context.signal.addEventListener('abort', () => reject(context.signal.reason))
    })
  const handlers = {
    'st.one': defineHandler(one, import.meta.url, handle('one')),
    'st.two': defineHandler(two, import.meta.url, handle('two')),
  }
  const watched = new Set<unknown>()
  const keeper = createPoolSupervisor({
    sizes: new Map([
      ['one', 2],
      ['two', 1],
    ]),
    make: (queue, concurrency) => memoryPool(broker, { catalogue, handlers, clock, queue, concurrency }),
    watch(pool) {
      watched.add(pool)
      return () => watched.delete(pool)
    },
    log,
  })
  const ends: unknown[] = []
  const skew = { ms: 0 }
  const steward = openFleetAgent({
    fleet: fleet.fleet,
    clock,
    log,
    keeper,
    about: { worker: ME, host: 'host', pid: 1, version: '1', drainTimeoutMs: 20_000, graceMs: 100 },
    startedAt: clock.monotonic(),
    skewMs: () => skew.ms,
    limitsOf: (mode, timeoutMs = times.drainMs) => drainLimits(mode, { ...times, drainMs: timeoutMs }),
    endProcess: (mode, timeoutMs) => ends.push({ mode, timeoutMs }),
    ending: () => ends.length > 0,
  })
  onTestFinished(async () => {
    const ended = Promise.all([steward.end(), keeper.end(drainLimits('hard', times))])
    await clock.advance(5_000)
    await ended
    expect([clock.pending(), fleet.listeners()]).toEqual([0, 0])
  })
  const stateOf = (queue: string) => keeper.pool(queue)?.state()
  const told = () => keeper.status().map(({ queue, state, paused, notReady }) => ({ queue, state, paused, notReady }))
  const begin = async () => {
    await steward.begin()
    await keeper.start()
    await clock.advance(0)
  }
  return { clock, broker, keeper, steward, lines, running, ends, skew, watched, stateOf, told, begin, ...fleet }
}

async function begun() {
  const all = stewardship()
  await all.begin()
  return all
}

const of = (order: CommandSpec): CommandSpec => order

describe('a steward', () => {
  it('tells the fleet of its worker every two seconds, and at once when it is woken', async () => {
    const { beats, clock, wake } = await begun()
    expect(beats).toMatchObject([{ worker: ME, draining: false, pools: [{ queue: 'one', state: 'NEW' }, {}] }])
    await clock.advance(HEARTBEAT_INTERVAL_MS)
    expect(beats[1]?.pools).toMatchObject([
      { queue: 'one', state: 'BG_RUNNING', concurrency: 2, slots: [{ slot: 1 }, { slot: 2 }] },
      { queue: 'two', state: 'BG_RUNNING', concurrency: 1 },
    ])
    wake()
    wake()
    await clock.advance(0)
    expect(beats.length).toBeLessThanOrEqual(4)
    const before = beats.length
    await clock.advance(HEARTBEAT_INTERVAL_MS - 1)
    expect(beats).toHaveLength(before)
  })

  it('tells by how much its machine’s clock is off, and when it began by the store’s', async () => {
    const { beats, skew, clock, send } = await begun()
    const began = clock.now()
    skew.ms = 5_000
    await clock.advance(2 * HEARTBEAT_INTERVAL_MS)
    expect(beats.at(-1)).toMatchObject({ skewMs: 5_000, startedAt: began })
    expect((await send(of({ action: 'pause', worker: ME })))?.at).toBe(clock.now())
  })

  it('goes on trying while the store is away, says so once, and disturbs no pool', async () => {
    const { faults, clock, lines, stateOf, beats, send } = await begun()
    faults.away = true
    await clock.advance(10 * HEARTBEAT_INTERVAL_MS)
    expect(lines.map(({ message }) => message)).toEqual([
      'the fleet is not reached: no commands come, and the pools go on',
    ])
    expect(stateOf('one')).toBe('BG_RUNNING')
    faults.away = false
    const before = beats.length
    await clock.advance(HEARTBEAT_INTERVAL_MS)
    expect(beats.length).toBeGreaterThan(before)
    expect(lines.at(-1)?.['message']).toBe('the fleet is reached again')
    expect(await send(of({ action: 'pause', worker: ME }))).toMatchObject({ outcome: 'done' })
  })

  it('lets pools start only when it knows what holds for them, and all the same when that can never be', async () => {
    const { faults, clock, begin, stateOf } = stewardship()
    faults.away = true
    const starting = begin()
    await clock.advance(60_000)
    expect(stateOf('one')).toBe('NEW')
    faults.away = false
    await clock.advance(HEARTBEAT_INTERVAL_MS)
    await starting
    expect(stateOf('one')).toBe('BG_RUNNING')

    const other = stewardship()
    other.faults.broken = true
    await other.begin()
    expect(other.stateOf('one')).toBe('BG_RUNNING')
  })

  it('leaves the fleet at its end, after its last sign of life', async () => {
    const { steward, left, beats, clock, wake } = await begun()
    wake()
    await steward.end()
    const before = beats.length
    expect(left).toEqual([ME])
    await clock.advance(60_000)
    expect(beats).toHaveLength(before)
  })
})

describe('a command', () => {
  it('pauses and resumes a pool, or all of a worker', async () => {
    const { send, told } = await begun()
    expect(await send(of({ action: 'pause', worker: ME, queue: 'one' }))).toMatchObject({
      worker: ME,
      outcome: 'done',
      detail: 'paused: one',
    })
    expect(told()).toMatchObject([{ paused: true, notReady: 'paused' }, { paused: false }])
    expect(await send(of({ action: 'pause', worker: ME }))).toMatchObject({ detail: 'paused: one, two' })
    expect(await send(of({ action: 'resume', worker: ME }))).toMatchObject({ detail: 'resumed: one, two' })
    expect(told()).toMatchObject([{ paused: false }, { paused: false }])
  })

  it('stops a slot; one that ends already has been stopped, and one that there is not is refused', async () => {
    const { send, keeper } = await begun()
    const stop = (slot: number) => of({ action: 'stop', worker: ME, queue: 'one', slot, how: 'wait' })
    expect(await send(stop(2))).toMatchObject({ outcome: 'done' })
    expect(keeper.pool('one')?.size()).toBe(1)
    expect(await send(stop(2))).toMatchObject({ outcome: 'done', detail: 'it ends already' })
    expect(await send(stop(9))).toMatchObject({ outcome: 'refused', detail: expect.stringContaining('slot 9') })
  })

  it('changes how many tasks a pool runs at once', async () => {
    const { send, keeper, broker, running, clock } = await begun()
    expect(await send(of({ action: 'resize', queue: 'two', concurrency: 5 }))).toMatchObject({ outcome: 'done' })
    for (let i = 0; i < 5; i++) await broker.add(two, {})
    await clock.advance(0)
    expect([keeper.pool('two')?.size(), running.length]).toEqual([5, 5])
  })

  it('drains a pool; another takes its place when it is resumed, as large as it was made', async () => {
    const { send, broker, running, clock, told, keeper, stateOf, watched } = await begun()
    await send(of({ action: 'resize', queue: 'one', concurrency: 3 }))
    await broker.add(one, {})
    await clock.advance(0)
    const first = keeper.pool('one')
    expect(await send(of({ action: 'drain', worker: ME, queue: 'one', mode: 'soft' }))).toMatchObject({
      outcome: 'done',
      detail: 'draining: one',
    })
    expect(told()[0]).toEqual({ queue: 'one', state: 'SHUTTING_DOWN', paused: false, notReady: 'drained by command' })
    expect(keeper.notReady()).toBeUndefined()
    expect(await send(of({ action: 'pause', worker: ME, queue: 'one' }))).toMatchObject({
      outcome: 'done',
      detail: 'paused: one, which is drained',
    })
    // It ends first: a pool is one on its queue. Asked twice is asked once.
    const later = { outcome: 'done', detail: 'resumed: one, when what it runs has ended' }
    expect(await send(of({ action: 'resume', worker: ME, queue: 'one' }))).toMatchObject(later)
    expect(await send(of({ action: 'resume', worker: ME, queue: 'one' }))).toMatchObject(later)
    expect([stateOf('one'), keeper.pool('one')]).toEqual(['SHUTTING_DOWN', first])
    expect(await send(of({ action: 'resize', queue: 'one', concurrency: 4 }))).toMatchObject({ outcome: 'done' })
    running[0]?.finish()
    await clock.advance(0)
    expect([stateOf('one'), first?.state(), keeper.pool('one')?.size()]).toEqual(['BG_RUNNING', 'SHUTDOWN', 4])
    expect([watched.size, watched.has(first)]).toEqual([2, false])
    await broker.add(one, {})
    await clock.advance(0)
    expect(running).toHaveLength(2)
  })

  it('drains by its own mode and timeout, and tells what came of it', async () => {
    const { send, broker, running, clock, stateOf, lines } = await begun()
    await broker.add(one, {})
    await clock.advance(0)
    await send(of({ action: 'drain', worker: ME, queue: 'one', mode: 'soft_timeout', timeout: '1s' }))
    await clock.advance(999)
    expect(stateOf('one')).toBe('SHUTTING_DOWN')
    await clock.advance(1_000)
    expect([stateOf('one'), running.length]).toEqual(['SHUTDOWN', 1])
    expect(lines.at(-1)).toMatchObject({ message: 'drained', queue: 'one', requeued: 1, slowestTaskMs: 1_000 })
  })

  it('ends the whole worker, with its mode', async () => {
    const { send, ends, beats } = await begun()
    const order = of({ action: 'drain', worker: ME, mode: 'soft_timeout', timeout: '90s' })
    expect(await send(order)).toMatchObject({ outcome: 'done', detail: 'the worker ends' })
    expect(ends).toEqual([{ mode: 'soft_timeout', timeoutMs: 90_000 }])
    expect(beats.at(-1)?.draining).toBe(true)
  })

  it('for a whole fleet leaves a worker alone that ends', async () => {
    const { send, ends, told } = await begun()
    ends.push('soft')
    for (const order of [
      of({ action: 'resume', queue: 'one' }),
      of({ action: 'resize', queue: 'one', concurrency: 9 }),
    ]) {
      expect(await send(order)).toMatchObject({ outcome: 'done', detail: 'the worker ends' })
    }
    expect(told()).toMatchObject([{ state: 'BG_RUNNING' }, {}])
  })

  it('that is told twice is done once, and answered the same', async () => {
    const { send, answers, faults, clock, lines, keeper } = await begun()
    faults.deaf = true
    await send(of({ action: 'stop', worker: ME, queue: 'one', slot: 2, how: 'wait' }), 'same')
    await clock.advance(3 * HEARTBEAT_INTERVAL_MS)
    expect([answers, keeper.pool('one')?.size()]).toEqual([[], 1])
    faults.deaf = false
    await clock.advance(HEARTBEAT_INTERVAL_MS)
    expect(answers).toMatchObject([{ command: 'same', outcome: 'done', detail: 'it ends' }])
    await send(of({ action: 'stop', worker: ME, queue: 'one', slot: 1, how: 'wait' }), 'same')
    expect([answers.length, keeper.pool('one')?.size()]).toEqual([2, 1])
    expect(lines.filter(({ command }) => command === 'same')).toHaveLength(1)
  })

  it('leaves one line: who, what, and what came of it', async () => {
    const { send, lines } = await begun()
    const order = of({ action: 'resize', worker: ME, queue: 'elsewhere', concurrency: 2 })
    await send(order)
    expect(lines).toEqual([
      {
        message: 'a command was refused',
        command: 'c1',
        by: 'ops',
        order,
        outcome: 'refused',
        detail: "this worker works one, two, and no queue 'elsewhere'",
      },
    ])
  })

  it('for the whole fleet of a queue changes nothing by itself, but that resuming it ends what pools were told', async () => {
    const { send, told } = await begun()
    await send(of({ action: 'pause', worker: ME, queue: 'one' }))
    expect(await send(of({ action: 'pause', queue: 'two' }))).toMatchObject({ outcome: 'done' })
    expect(await send(of({ action: 'limit', queue: 'two', concurrency: 1 }))).toMatchObject({ outcome: 'done' })
    expect(await send(of({ action: 'drain', queue: 'two', mode: 'hard' }))).toMatchObject({ outcome: 'done' })
    expect(told()).toMatchObject([{ paused: true }, { paused: false, state: 'BG_RUNNING' }])
    expect(await send(of({ action: 'resume', queue: 'one' }))).toMatchObject({ outcome: 'done' })
    expect(told()[0]).toMatchObject({ paused: false })
  })
})

describe('a queue whose whole fleet drains', () => {
  it('makes a drain of the whole worker harsher, and never gentler; nothing revives its pools', async () => {
    const { switchDrain, keeper, broker, running, clock, ends, stateOf } = await begun()
    await broker.add(one, {})
    await clock.advance(0)
    ends.push('soft')
    const ended = keeper.end(drainLimits('soft', times))
    await switchDrain('one', { mode: 'light', timeoutMs: undefined, command: 'c-light' })
    await clock.advance(10_000)
    expect([stateOf('one'), running.length]).toEqual(['SHUTTING_DOWN', 1])
    await switchDrain('one', { mode: 'hard', timeoutMs: undefined, command: 'c-hard' })
    await clock.advance(1_000)
    expect(await ended).toMatchObject([{ queue: 'one', requeued: 1 }, { queue: 'two' }])
    await switchDrain('one', undefined)
    await clock.advance(1_000)
    expect(stateOf('one')).toBe('SHUTDOWN')
  })

  it.each(['soft', 'soft_timeout', 'hard'] as const)('by %s has its pool drained until that is over', async (mode) => {
    const { switchDrain, stateOf, told, clock, send, lines } = await begun()
    await switchDrain('one', { mode, timeoutMs: undefined, command: 'd1' })
    await clock.advance(0)
    expect([stateOf('one'), stateOf('two')]).toEqual(['SHUTDOWN', 'BG_RUNNING'])
    expect(told()[0]?.notReady).toBe("its queue's fleet drains")
    expect(await send(of({ action: 'resume', worker: ME, queue: 'one' }))).toMatchObject({
      outcome: 'refused',
      detail: "the whole fleet of queue 'one' drains",
    })
    await clock.advance(3 * HEARTBEAT_INTERVAL_MS)
    expect(lines.filter(({ message }) => message === 'drained')).toHaveLength(1)
    await switchDrain('one', undefined)
    expect(stateOf('one')).toBe('BG_RUNNING')
  })

  it('has the pool of a worker that starts meanwhile start when that is over', async () => {
    const { switchDrain, begin, stateOf, told, keeper } = stewardship()
    await switchDrain('one', { mode: 'soft', timeoutMs: undefined, command: 'd1' })
    await begin()
    expect([stateOf('one'), stateOf('two'), keeper.notReady()]).toEqual(['NEW', 'BG_RUNNING', undefined])
    expect(told()[0]).toMatchObject({ state: 'NEW', notReady: "its queue's fleet drains" })
    await switchDrain('one', undefined)
    expect(stateOf('one')).toBe('BG_RUNNING')
  })

  it('lightly is worked until nothing remains, and no API takes in more; also by a worker that starts meanwhile', async () => {
    const { switchDrain, begin, stateOf, clock, remaining } = stewardship()
    remaining.set('one', 7)
    await switchDrain('one', { mode: 'light', timeoutMs: undefined, command: 'd1' })
    await begin()
    await clock.advance(10_000)
    expect(stateOf('one')).toBe('BG_RUNNING')
    remaining.set('one', 0)
    await clock.advance(500)
    expect(stateOf('one')).toBe('SHUTDOWN')
    await switchDrain('one', undefined)
    expect(stateOf('one')).toBe('BG_RUNNING')
  })

  it('lightly and empty goes on for the three seconds in which a task may still come', async () => {
    const { switchDrain, stateOf, clock, faults } = await begun()
    await switchDrain('one', { mode: 'light', timeoutMs: undefined, command: 'd1' })
    await clock.advance(2_900)
    expect(stateOf('one')).toBe('BG_RUNNING')
    faults.away = true
    await clock.advance(10_000)
    expect(stateOf('one')).toBe('BG_RUNNING')
    faults.away = false
    await clock.advance(500)
    expect(stateOf('one')).toBe('SHUTDOWN')
  })

  it('lightly, and then resumed, is looked at no longer', async () => {
    const { switchDrain, stateOf, clock } = await begun()
    await switchDrain('one', { mode: 'light', timeoutMs: undefined, command: 'd1' })
    await clock.advance(1_000)
    await switchDrain('one', undefined)
    await clock.advance(10_000)
    expect(stateOf('one')).toBe('BG_RUNNING')
  })

  it('lightly, and then harder, is as the harder', async () => {
    const { switchDrain, stateOf, clock, remaining, broker, running } = await begun()
    remaining.set('one', 7)
    await broker.add(one, {})
    await switchDrain('one', { mode: 'light', timeoutMs: undefined, command: 'd1' })
    await switchDrain('one', { mode: 'hard', timeoutMs: undefined, command: 'd2' })
    await clock.advance(2_000)
    expect([stateOf('one'), running.length]).toEqual(['SHUTDOWN', 1])
  })
})

// Tests the fleet agent between an in-memory fleet and real pools, on a fake clock.
import { defineCatalogue, defineHandler, defineTask, type PoolState, type TaskEvent } from '@bullpen/contract'
import type { CommandSpec } from '@bullpen/contract/internal'
import { HEARTBEAT_INTERVAL_MS } from '@bullpen/engine/internal'
import { createLogLevel } from '@bullpen/telemetry/internal'
import { fakeClock, memoryBroker, memoryPool } from '@bullpen/testkit'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { createPoolSupervisor, type DrainRequest } from '../pools/pool-supervisor.ts'
import { fakeFleet } from './fake-fleet.fixture.ts'
import { openFleetAgent } from './fleet-agent.ts'

const ME = 'host:1:abc'
const schemas = { input: z.object({}), output: z.object({}) }
const one = defineTask({ name: 'st.one', queue: 'one', timeout: 'none', ...schemas })
const two = defineTask({ name: 'st.two', queue: 'two', timeout: 'none', ...schemas })
const catalogue = defineCatalogue(one, two)

function newAgent() {
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
  const observed = new Set<unknown>()
  const sink = (event: TaskEvent): void => {
    if (event.event === 'pool.state') agent.poolMoved(event)
  }
  const pools = createPoolSupervisor({
    sizes: new Map([
      ['one', 2],
      ['two', 1],
    ]),
    drainSettings: () => ({ mode: 'soft_timeout', timeoutMs: 20_000, graceMs: 100 }),
    createPool: (queue, concurrency) => memoryPool(broker, { catalogue, handlers, clock, queue, concurrency, sink }),
    observe(pool) {
      observed.add(pool)
      return () => observed.delete(pool)
    },
    log,
  })
  const drains: DrainRequest[] = []
  const levels: string[] = []
  const logLevel = createLogLevel({ configured: 'info', apply: (level) => levels.push(level), clock, log })
  const skew = { ms: 0 }
  const agent = openFleetAgent({
    fleet: fleet.fleet,
    clock,
    log,
    pools,
    logLevel,
    drain(request) {
      drains.push(request)
      void pools.end(request)
    },
    about: { worker: ME, host: 'host', pid: 1, version: '1', drainTimeoutMs: 20_000, graceMs: 100 },
    startedAt: clock.monotonic(),
    skewMs: () => skew.ms,
    stalls: () => undefined,
  })
  onTestFinished(async () => {
    const ended = Promise.all([agent.close(), pools.end({ mode: 'hard' })])
    await clock.advance(5_000)
    await ended
    expect({ timers: clock.pending(), listeners: fleet.listeners() }).toEqual({ timers: 0, listeners: 0 })
  })
  const stateOf = (queue: string) => pools.pool(queue)?.state()
  const statuses = () =>
    pools.status().map(({ queue, state, paused, notReady }) => ({ queue, state, paused, notReady }))
  const start = async () => {
    await agent.start()
    await pools.start()
    await clock.advance(0)
  }
  return {
    clock,
    broker,
    pools,
    agent,
    lines,
    levels,
    running,
    drains,
    skew,
    observed,
    stateOf,
    statuses,
    start,
    ...fleet,
  }
}

async function startedAgent() {
  const setup = newAgent()
  await setup.start()
  return setup
}

const of = (spec: CommandSpec): CommandSpec => spec

describe('the fleet agent', () => {
  it('sends a heartbeat every two seconds, and at once when a command is announced', async () => {
    const { heartbeats, clock, wake } = await startedAgent()
    expect(heartbeats[0]).toMatchObject({ worker: ME, draining: false, pools: [{ queue: 'one', state: 'NEW' }, {}] })
    const started = heartbeats.length
    await clock.advance(HEARTBEAT_INTERVAL_MS)
    expect(heartbeats).toHaveLength(started + 1)
    expect(heartbeats.at(-1)?.pools).toMatchObject([
      { queue: 'one', state: 'BG_RUNNING', concurrency: 2, slots: [{ slot: 1 }, { slot: 2 }] },
      { queue: 'two', state: 'BG_RUNNING', concurrency: 1 },
    ])
    wake()
    wake()
    await clock.advance(0)
    const before = heartbeats.length
    expect(before - started).toBeLessThanOrEqual(3)
    await clock.advance(HEARTBEAT_INTERVAL_MS - 1)
    expect(heartbeats).toHaveLength(before)
  })

  it('reports at once that a pool has started, been paused, drained, replaced or resized, or that the worker drains', async () => {
    const { heartbeats, clock, running, broker, send, switchDrain, start, statuses, pools } = newAgent()
    const reported = () =>
      heartbeats.at(-1)?.pools.map(({ queue, state, paused, notReady }) => ({ queue, state, paused, notReady }))
    const both = (state: PoolState) => [{ state }, { state }]
    await start()
    expect(reported()).toMatchObject(both('BG_RUNNING'))
    for (const action of ['pause', 'resume'] as const) {
      await send(of({ action, worker: ME }))
      expect(reported()).toEqual(statuses())
    }
    await send(of({ action: 'resize', queue: 'two', concurrency: 5 }))
    expect(heartbeats.at(-1)?.pools[1]).toMatchObject({ concurrency: 5 })
    await switchDrain('one', { mode: 'soft', timeoutMs: undefined, command: 'd1' })
    expect(reported()?.[0]?.state).toBe('SHUTTING_DOWN')
    await switchDrain('one', undefined)
    expect(reported()).toMatchObject(both('BG_RUNNING'))
    // The pool is replaced only when its task has ended.
    await broker.add(one, {})
    await clock.advance(0)
    await send(of({ action: 'drain', worker: ME, queue: 'one', mode: 'soft' }))
    await send(of({ action: 'resume', worker: ME, queue: 'one' }))
    expect(reported()?.[0]?.state).toBe('SHUTTING_DOWN')
    running[0]?.finish()
    await clock.advance(0)
    expect(reported()).toMatchObject(both('BG_RUNNING'))
    await broker.add(one, {})
    await clock.advance(0)
    void pools.end({ mode: 'soft' })
    await clock.advance(0)
    expect(heartbeats.at(-1)).toMatchObject({ draining: true, pools: [{ state: 'SHUTTING_DOWN' }, {}] })
  })

  it('sends no heartbeat for a pool that moves before the agent has started, or after it has been closed', async () => {
    const { agent, clock, heartbeats, start } = newAgent()
    const move = { from: 'NEW', to: 'BG_RUNNING' } as const
    agent.poolMoved(move)
    await clock.advance(HEARTBEAT_INTERVAL_MS)
    expect(heartbeats).toEqual([])
    await start()
    await agent.close()
    const before = heartbeats.length
    agent.poolMoved(move)
    await clock.advance(HEARTBEAT_INTERVAL_MS)
    expect(heartbeats).toHaveLength(before)
  })

  it('says whether the store has accepted a heartbeat within the last 15 s, whatever keeps it from accepting one', async () => {
    const { agent, clock, faults, start } = newAgent()
    expect(agent.isAccepted()).toBe(false)
    await start()
    for (const fault of ['away', 'refused', 'broken'] as const) {
      faults[fault] = true
      await clock.advance(12_000)
      expect(agent.isAccepted()).toBe(true)
      await clock.advance(4_000)
      expect(agent.isAccepted()).toBe(false)
      faults[fault] = false
      await clock.advance(HEARTBEAT_INTERVAL_MS)
      expect(agent.isAccepted()).toBe(true)
    }
  })

  it('reports how far its clock is off, and its start time on the store’s clock', async () => {
    const { heartbeats, skew, clock, send } = await startedAgent()
    const began = clock.now()
    skew.ms = 5_000
    await clock.advance(2 * HEARTBEAT_INTERVAL_MS)
    expect(heartbeats.at(-1)).toMatchObject({ skewMs: 5_000, startedAt: began })
    expect((await send(of({ action: 'pause', worker: ME })))?.at).toBe(clock.now())
  })

  it('logs nothing of lost connections, which are logged already, and goes on when they are restored', async () => {
    const { faults, clock, lines, stateOf, send } = await startedAgent()
    // Before the loss is noticed, and after the connection is restored, replies may be late.
    faults.away = true
    await clock.advance(6 * HEARTBEAT_INTERVAL_MS)
    faults.refused = true
    faults.away = false
    await clock.advance(10 * HEARTBEAT_INTERVAL_MS)
    expect(stateOf('one')).toBe('BG_RUNNING')
    faults.refused = false
    faults.away = true
    await clock.advance(6 * HEARTBEAT_INTERVAL_MS)
    faults.away = false
    await clock.advance(HEARTBEAT_INTERVAL_MS)
    expect(lines).toEqual([])
    expect(await send(of({ action: 'pause', worker: ME }))).toMatchObject({ outcome: 'done' })
  })

  it('keeps trying while the store does not respond, logs that once, and leaves the pools running', async () => {
    const { faults, clock, lines, stateOf, heartbeats, send } = await startedAgent()
    faults.away = true
    await clock.advance(7 * HEARTBEAT_INTERVAL_MS)
    expect(lines).toEqual([])
    await clock.advance(3 * HEARTBEAT_INTERVAL_MS)
    expect(lines.map(({ message }) => message)).toEqual([
      'fleet registry unreachable; pools keep running, but remote commands are delayed',
    ])
    expect(stateOf('one')).toBe('BG_RUNNING')
    faults.away = false
    const before = heartbeats.length
    await clock.advance(HEARTBEAT_INTERVAL_MS)
    expect(heartbeats.length).toBeGreaterThan(before)
    expect(lines.at(-1)?.['message']).toBe('fleet registry reachable again')
    expect(await send(of({ action: 'pause', worker: ME }))).toMatchObject({ outcome: 'done' })
  })

  it('delays the start of pools until the settings of the queues are known, or can’t be read at all', async () => {
    const { faults, clock, start, stateOf } = newAgent()
    faults.away = true
    const starting = start()
    await clock.advance(60_000)
    expect(stateOf('one')).toBe('NEW')
    faults.away = false
    await clock.advance(HEARTBEAT_INTERVAL_MS)
    await starting
    expect(stateOf('one')).toBe('BG_RUNNING')

    const other = newAgent()
    other.faults.broken = true
    await other.start()
    expect(other.stateOf('one')).toBe('BG_RUNNING')
  })

  it('removes its worker from the registry after the last heartbeat', async () => {
    const { agent, left, heartbeats, clock, wake } = await startedAgent()
    wake()
    await agent.close()
    const before = heartbeats.length
    expect(left).toEqual([ME])
    await clock.advance(60_000)
    expect(heartbeats).toHaveLength(before)
  })
})

describe('a command', () => {
  it('pauses and resumes one pool, or every pool of a worker', async () => {
    const { send, statuses } = await startedAgent()
    expect(await send(of({ action: 'pause', worker: ME, queue: 'one' }))).toMatchObject({
      worker: ME,
      outcome: 'done',
      detail: 'paused: one',
    })
    expect(statuses()).toMatchObject([{ paused: true, notReady: 'paused' }, { paused: false }])
    expect(await send(of({ action: 'pause', worker: ME }))).toMatchObject({ detail: 'paused: one, two' })
    expect(await send(of({ action: 'resume', worker: ME }))).toMatchObject({ detail: 'resumed: one, two' })
    expect(statuses()).toMatchObject([{ paused: false }, { paused: false }])
  })

  it('stops a slot; stopping it again is idempotent, and an unknown slot is refused', async () => {
    const { send, pools } = await startedAgent()
    const stop = (slot: number) => of({ action: 'stop', worker: ME, queue: 'one', slot, how: 'wait' })
    expect(await send(stop(2))).toMatchObject({ outcome: 'done' })
    expect(pools.pool('one')?.size()).toBe(1)
    expect(await send(stop(2))).toMatchObject({ outcome: 'done', detail: 'slot 2 is already stopping' })
    expect(await send(stop(9))).toMatchObject({ outcome: 'refused', detail: expect.stringContaining('slot 9') })
  })

  it('resizes a pool', async () => {
    const { send, pools, broker, running, clock } = await startedAgent()
    expect(await send(of({ action: 'resize', queue: 'two', concurrency: 5 }))).toMatchObject({ outcome: 'done' })
    for (let i = 0; i < 5; i++) await broker.add(two, {})
    await clock.advance(0)
    expect([pools.pool('two')?.size(), running.length]).toEqual([5, 5])
  })

  it('changes the level of the log, until another command or for the given time', async () => {
    const { send, levels, lines, clock } = await startedAgent()
    expect(await send(of({ action: 'log_level', level: 'debug', for: '10m' }))).toMatchObject({ outcome: 'done' })
    await clock.advance(599_000)
    expect(levels).toEqual(['debug'])
    await clock.advance(1_000)
    expect([levels, lines.at(-1)]).toMatchObject([['debug', 'info'], { message: 'temporary log level ended' }])
    await send(of({ action: 'log_level', level: 'debug', for: '10m' }))
    await send(of({ action: 'log_level', level: 'warn', worker: ME }))
    await clock.advance(600_000)
    expect(levels.slice(2)).toEqual(['debug', 'warn'])
    await send(of({ action: 'log_level', level: 'configured', queue: 'one' }))
    expect(levels.at(-1)).toBe('info')
  })

  it('follows a level for all processes that was set before its start, until it is reset', async () => {
    const { send, setLogLevel, levels, lines, clock } = await startedAgent()
    const forAll = { command: 'c', level: 'debug', by: 'ann', until: clock.now() + 600_000 } as const
    await setLogLevel(forAll)
    expect(lines).toContainEqual(expect.objectContaining({ message: 'log level of all processes changed' }))
    // A later change of this worker alone stays.
    await send(of({ action: 'log_level', level: 'warn', worker: ME }))
    await setLogLevel({ ...forAll })
    expect(levels).toEqual(['debug', 'warn'])
    await setLogLevel(undefined)
    expect(levels.at(-1)).toBe('info')
    await setLogLevel({ ...forAll, command: 'd' })
    await clock.advance(600_000)
    expect(levels.slice(-2)).toEqual(['debug', 'info'])
  })

  it('drains a pool; resuming it starts a new pool of the same size', async () => {
    const { send, broker, running, clock, statuses, pools, stateOf, observed } = await startedAgent()
    await send(of({ action: 'resize', queue: 'one', concurrency: 3 }))
    await broker.add(one, {})
    await clock.advance(0)
    const first = pools.pool('one')
    expect(await send(of({ action: 'drain', worker: ME, queue: 'one', mode: 'soft' }))).toMatchObject({
      outcome: 'done',
      detail: 'draining: one',
    })
    expect(statuses()[0]).toEqual({
      queue: 'one',
      state: 'SHUTTING_DOWN',
      paused: false,
      notReady: 'drained by command',
    })
    expect(pools.notReady(false)).toBeUndefined()
    expect(await send(of({ action: 'pause', worker: ME, queue: 'one' }))).toMatchObject({
      outcome: 'done',
      detail: 'paused: one (drained)',
    })
    // The old pool finishes first: a queue has one pool at a time. Idempotent.
    const later = { outcome: 'done', detail: 'resumed: one (when its running tasks have ended)' }
    expect(await send(of({ action: 'resume', worker: ME, queue: 'one' }))).toMatchObject(later)
    expect(await send(of({ action: 'resume', worker: ME, queue: 'one' }))).toMatchObject(later)
    expect([stateOf('one'), pools.pool('one')]).toEqual(['SHUTTING_DOWN', first])
    expect(await send(of({ action: 'resize', queue: 'one', concurrency: 4 }))).toMatchObject({ outcome: 'done' })
    running[0]?.finish()
    await clock.advance(0)
    expect([stateOf('one'), first?.state(), pools.pool('one')?.size()]).toEqual(['BG_RUNNING', 'SHUTDOWN', 4])
    expect([observed.size, observed.has(first)]).toEqual([2, false])
    await broker.add(one, {})
    await clock.advance(0)
    expect(running).toHaveLength(2)
  })

  it('drains a pool with its own mode and timeout, and logs the summary', async () => {
    const { send, broker, running, clock, stateOf, lines } = await startedAgent()
    await broker.add(one, {})
    await clock.advance(0)
    await send(of({ action: 'drain', worker: ME, queue: 'one', mode: 'soft_timeout', timeout: '1s' }))
    await clock.advance(999)
    expect(stateOf('one')).toBe('SHUTTING_DOWN')
    await clock.advance(1_000)
    expect([stateOf('one'), running.length]).toEqual(['SHUTDOWN', 1])
    expect(lines.at(-1)).toMatchObject({ message: 'drained', queue: 'one', requeued: 1, slowestTaskMs: 1_000 })
  })

  it('drains the whole worker with its mode', async () => {
    const { send, drains, heartbeats } = await startedAgent()
    const spec = of({ action: 'drain', worker: ME, mode: 'soft_timeout', timeout: '90s' })
    expect(await send(spec)).toMatchObject({ outcome: 'done', detail: 'the worker is draining' })
    expect(drains).toEqual([{ mode: 'soft_timeout', timeoutMs: 90_000 }])
    expect(heartbeats.at(-1)?.draining).toBe(true)
  })

  it('for the whole fleet is ignored by a worker that drains', async () => {
    const { send, pools } = await startedAgent()
    void pools.end({ mode: 'soft' })
    for (const spec of [
      of({ action: 'resume', queue: 'one' }),
      of({ action: 'resize', queue: 'one', concurrency: 9 }),
    ]) {
      expect(await send(spec)).toMatchObject({ outcome: 'done', detail: 'the worker is draining' })
    }
    expect(pools.pool('one')?.state()).toBe('SHUTDOWN')
  })

  it('is executed once when it is delivered twice, and gets the same response again', async () => {
    const { send, responses, faults, clock, lines, pools } = await startedAgent()
    faults.dropsResponses = true
    await send(of({ action: 'stop', worker: ME, queue: 'one', slot: 2, how: 'wait' }), 'same')
    await clock.advance(3 * HEARTBEAT_INTERVAL_MS)
    expect([responses, pools.pool('one')?.size()]).toEqual([[], 1])
    faults.dropsResponses = false
    await clock.advance(HEARTBEAT_INTERVAL_MS)
    expect(responses).toMatchObject([{ command: 'same', outcome: 'done', detail: 'slot 2 is stopping' }])
    await send(of({ action: 'stop', worker: ME, queue: 'one', slot: 1, how: 'wait' }), 'same')
    expect([responses.length, pools.pool('one')?.size()]).toEqual([2, 1])
    expect(lines.filter(({ command }) => command === 'same')).toHaveLength(1)
  })

  it('writes one audit line: who, what and the outcome', async () => {
    const { send, lines } = await startedAgent()
    const spec = of({ action: 'resize', worker: ME, queue: 'elsewhere', concurrency: 2 })
    await send(spec)
    expect(lines).toEqual([
      {
        message: 'command refused',
        command: 'c1',
        by: 'ops',
        spec,
        outcome: 'refused',
        detail: "this worker has no pool for queue 'elsewhere'; it has pools for one, two",
      },
    ])
  })

  it('for a whole queue changes no pool by itself, except that resuming the queue resumes its pools', async () => {
    const { send, statuses } = await startedAgent()
    await send(of({ action: 'pause', worker: ME, queue: 'one' }))
    expect(await send(of({ action: 'pause', queue: 'two' }))).toMatchObject({ outcome: 'done' })
    expect(await send(of({ action: 'limit', queue: 'two', concurrency: 1 }))).toMatchObject({ outcome: 'done' })
    expect(await send(of({ action: 'drain', queue: 'two', mode: 'hard' }))).toMatchObject({ outcome: 'done' })
    expect(statuses()).toMatchObject([{ paused: true }, { paused: false, state: 'BG_RUNNING' }])
    expect(await send(of({ action: 'resume', queue: 'one' }))).toMatchObject({ outcome: 'done' })
    expect(statuses()[0]).toMatchObject({ paused: false })
  })
})

describe('the drain of a whole queue', () => {
  it('can make the drain of a worker harsher, never gentler, and no pool is resumed', async () => {
    const { switchDrain, pools, broker, running, clock, stateOf } = await startedAgent()
    await broker.add(one, {})
    await clock.advance(0)
    const ended = pools.end({ mode: 'soft' })
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

  it.each(['soft', 'soft_timeout', 'hard'] as const)(
    'with mode %s drains the pool until it is lifted',
    async (mode) => {
      const { switchDrain, stateOf, statuses, clock, send, lines } = await startedAgent()
      await switchDrain('one', { mode, timeoutMs: undefined, command: 'd1' })
      await clock.advance(0)
      expect([stateOf('one'), stateOf('two')]).toEqual(['SHUTDOWN', 'BG_RUNNING'])
      expect(statuses()[0]?.notReady).toBe('the whole queue is draining')
      expect(await send(of({ action: 'resume', worker: ME, queue: 'one' }))).toMatchObject({
        outcome: 'refused',
        detail: "queue 'one' is draining on all workers: resume the whole queue",
      })
      await clock.advance(3 * HEARTBEAT_INTERVAL_MS)
      expect(lines.filter(({ message }) => message === 'drained')).toHaveLength(1)
      await switchDrain('one', undefined)
      expect(stateOf('one')).toBe('BG_RUNNING')
    },
  )

  it('holds the pool of a worker that starts meanwhile until it is lifted', async () => {
    const { switchDrain, start, stateOf, statuses, pools } = newAgent()
    await switchDrain('one', { mode: 'soft', timeoutMs: undefined, command: 'd1' })
    await start()
    expect([stateOf('one'), stateOf('two'), pools.notReady(false)]).toEqual(['NEW', 'BG_RUNNING', undefined])
    expect(statuses()[0]).toMatchObject({ state: 'NEW', notReady: 'the whole queue is draining' })
    await switchDrain('one', undefined)
    expect(stateOf('one')).toBe('BG_RUNNING')
  })

  it('with mode light lets pools work until the queue is empty, also those of a worker that starts meanwhile', async () => {
    const { switchDrain, start, stateOf, clock, remaining } = newAgent()
    remaining.set('one', 7)
    await switchDrain('one', { mode: 'light', timeoutMs: undefined, command: 'd1' })
    await start()
    await clock.advance(10_000)
    expect(stateOf('one')).toBe('BG_RUNNING')
    remaining.set('one', 0)
    await clock.advance(500)
    expect(stateOf('one')).toBe('SHUTDOWN')
    await switchDrain('one', undefined)
    expect(stateOf('one')).toBe('BG_RUNNING')
  })

  it('with mode light waits three seconds on an empty queue, in which an API may still accept a task', async () => {
    const { switchDrain, stateOf, clock, faults } = await startedAgent()
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

  it('with mode light is forgotten when the queue is resumed', async () => {
    const { switchDrain, stateOf, clock } = await startedAgent()
    await switchDrain('one', { mode: 'light', timeoutMs: undefined, command: 'd1' })
    await clock.advance(1_000)
    await switchDrain('one', undefined)
    await clock.advance(10_000)
    expect(stateOf('one')).toBe('BG_RUNNING')
  })

  it('with mode light becomes hard when a hard drain follows', async () => {
    const { switchDrain, stateOf, clock, remaining, broker, running } = await startedAgent()
    remaining.set('one', 7)
    await broker.add(one, {})
    await switchDrain('one', { mode: 'light', timeoutMs: undefined, command: 'd1' })
    await switchDrain('one', { mode: 'hard', timeoutMs: undefined, command: 'd2' })
    await clock.advance(2_000)
    expect([stateOf('one'), running.length]).toEqual(['SHUTDOWN', 1])
  })
})

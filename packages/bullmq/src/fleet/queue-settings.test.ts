// The settings of a queue on real pools: pause, drain, global concurrency and rate limit.
import type { CommandSpec } from '@bullpen/contract/internal'
import { eventually } from '@bullpen/testkit'
import { describe, expect, it } from 'vitest'
import { queueKeys } from '../keys.ts'
import { long, setup, short } from '../setup.fixture.ts'
import { fleetRig, status } from './fleet.fixture.ts'

async function worked(options: Parameters<typeof setup>[0] = {}) {
  const pools = await setup(options)
  const { fleet, redis } = await fleetRig({ namespace: pools.namespace, queues: ['rig'] })
  let sent = 0
  return {
    ...pools,
    fleet,
    redis,
    keys: queueKeys(pools.namespace, 'rig'),
    command: (order: CommandSpec) => fleet.send({ id: `c${++sent}`, spec: order, by: 'me' }),
  }
}

describe('the settings of a queue', () => {
  it('are read as they were set, also in the reply to a heartbeat', async () => {
    const { fleet } = await fleetRig()
    const unlimited = { concurrency: undefined, rate: undefined, maxTasks: undefined }
    const open = { paused: false, outboxFull: false, drain: undefined }
    const none = { ...open, ...unlimited, maxBytes: undefined, maxAgeMs: undefined }
    expect(await fleet.queueSettings('cpu')).toEqual(none)
    let sent = 0
    const command = (order: CommandSpec) => fleet.send({ id: `c${++sent}`, spec: order, by: 'me' })
    await command({ action: 'limit', queue: 'cpu', concurrency: 3 })
    await command({ action: 'limit', queue: 'cpu', rate: { max: 20, per: '1s' } })
    await command({ action: 'limit', queue: 'cpu', maxTasks: 7, maxBytes: 5_000 })
    await command({ action: 'limit', queue: 'cpu', maxBytes: '64MiB', maxAge: '10m' })
    await command({ action: 'pause', queue: 'cpu' })
    const { at } = await command({ action: 'drain', queue: 'cpu', mode: 'soft_timeout', timeout: '9s' })
    const all = {
      paused: true,
      outboxFull: false,
      drain: { mode: 'soft_timeout', timeoutMs: 9_000, since: at, command: 'c6' },
      concurrency: 3,
      rate: { max: 20, perMs: 1_000 },
      maxTasks: 7,
      maxBytes: 67_108_864,
      maxAgeMs: 600_000,
    }
    expect(await fleet.queueSettings('cpu')).toEqual(all)
    expect(await fleet.queueSettings('io')).toEqual(none)
    expect((await fleet.heartbeat(status('a'))).queueSettings).toEqual(new Map([['cpu', all]]))
    await command({ action: 'resume', queue: 'cpu' })
    await command({ action: 'limit', queue: 'cpu', concurrency: 'none', rate: 'none', maxTasks: 'none' })
    await command({ action: 'limit', queue: 'cpu', maxBytes: 'none', maxAge: 'none' })
    expect(await fleet.queueSettings('cpu')).toEqual(none)
  })

  it('do not change when a single worker is paused, drained or resumed', async () => {
    const { fleet } = await fleetRig()
    await fleet.heartbeat(status('a'))
    await fleet.send({ id: 'q', spec: { action: 'pause', queue: 'cpu' }, by: 'me' })
    await fleet.send({ id: 'p', spec: { action: 'resume', queue: 'cpu', worker: 'a' }, by: 'me' })
    await fleet.send({ id: 'd', spec: { action: 'drain', mode: 'hard', worker: 'a' }, by: 'me' })
    expect(await fleet.queueSettings('cpu')).toMatchObject({ paused: true, drain: undefined })
  })
})

describe('a paused queue', () => {
  it('runs what an older BullMQ has added meanwhile, however much it is, before the tasks that wait when it is resumed', async () => {
    const { command, keys, redis } = await worked()
    await command({ action: 'pause', queue: 'rig' })
    const ids = Array.from({ length: 8_000 }, (_, n) => `old${n}`)
    await redis.lpush(keys.wait, 'oldest', 'newest')
    await redis.lpush(`${keys.base}paused`, ...ids)
    await command({ action: 'resume', queue: 'rig' })
    expect(await redis.exists(`${keys.base}paused`)).toBe(0)
    expect((await redis.lrange(keys.wait, 0, -1)).toReversed()).toEqual([...ids, 'oldest', 'newest'])
  })

  it('lets an idle worker wake at the time of a lane when it is resumed', async () => {
    const { command, keys, redis } = await worked()
    await command({ action: 'pause', queue: 'rig' })
    await redis.zadd(keys.laneTimes, 5_000, 'a')
    await command({ action: 'resume', queue: 'rig' })
    expect(await redis.zrange(keys.marker, 0, '-1', 'WITHSCORES')).toEqual(['1', '5000'])
  })

  it('starts no task on any worker, lets running ones finish, and shows its tasks as waiting', async () => {
    const started: number[] = []
    const gate = Promise.withResolvers<void>()
    const handle = async ({ input }: { input: { n: number } }) => {
      started.push(input.n)
      if (input.n === 1) await gate.promise
      return input
    }
    const { broker, enqueue, startPool, settled, command, fleet, redis, keys } = await worked({
      handle,
      concurrency: 2,
    })
    await startPool()
    await startPool()
    const running = await enqueue(long, { input: { n: 1 } })
    await eventually(() => started.length === 1)
    await command({ action: 'pause', queue: 'rig' })
    const held = [await enqueue(short, { input: { n: 2 } }), await enqueue(short, { input: { n: 3 } })]
    const later = await enqueue(short, { input: { n: 4 }, delayMs: 1 })
    gate.resolve()
    expect((await settled(running))?.status).toBe('completed')
    // The scheduled task is due: it is promoted, but not started.
    await eventually(async () => (await broker.find(later))?.status === 'waiting')
    for (const id of held) expect((await broker.find(id))?.status).toBe('waiting')
    expect((await broker.list({ queue: 'rig', status: 'waiting', limit: 10, cursor: undefined })).tasks).toHaveLength(3)
    expect((await broker.counts('rig')).waiting).toBe(3)
    expect(started).toEqual([1])
    expect(await broker.cancel(held[1] as never, { stoppable: false })).toBe('cancelled')
    // What Bull Board reads.
    expect(await broker.boardQueues[0]?.isPaused()).toBe(true)
    expect(await redis.exists(`${keys.base}paused`)).toBe(0)
    await command({ action: 'resume', queue: 'rig' })
    for (const id of [held[0] as never, later]) expect((await settled(id))?.status).toBe('completed')
    expect(started.toSorted()).toEqual([1, 2, 4])
    await broker.boardQueues[0]?.pause()
    expect((await fleet.queueSettings('rig')).paused).toBe(true)
    await broker.boardQueues[0]?.resume()
  })
})

describe('a global concurrency of 3 over two pools of 10', () => {
  it('is reached and never exceeded', async () => {
    let running = 0
    let most = 0
    const three = Promise.withResolvers<void>()
    const handle = async ({ input }: { input: { n: number } }) => {
      most = Math.max(most, ++running)
      if (running === 3) three.resolve()
      await three.promise
      await new Promise((resolve) => setImmediate(resolve))
      running--
      return input
    }
    const { enqueue, startPool, settled, command } = await worked({ handle, concurrency: 10 })
    await command({ action: 'limit', queue: 'rig', concurrency: 3 })
    await startPool()
    await startPool()
    const ids = await Promise.all(Array.from({ length: 200 }, () => enqueue(short)))
    for (const id of ids) expect((await settled(id))?.status).toBe('completed')
    expect(most).toBe(3)
  })

  it('passes the room of a pool that fetches no more to the other one, by the next maintenance', async () => {
    const gates: PromiseWithResolvers<void>[] = []
    const handle = async ({ input }: { input: { n: number } }) => {
      const gate = Promise.withResolvers<void>()
      gates.push(gate)
      await gate.promise
      return input
    }
    const { enqueue, startPool, settled, command } = await worked({ handle, concurrency: 10 })
    await command({ action: 'limit', queue: 'rig', concurrency: 1 })
    const first = await startPool()
    const ids = [await enqueue(long), await enqueue(long)]
    await eventually(() => gates.length === 1)
    await startPool()
    first.pause()
    gates[0]?.resolve()
    // BullMQ by itself checks again after 5 s.
    await eventually(() => gates.length === 2)
    gates[1]?.resolve()
    for (const id of ids) expect((await settled(id))?.status).toBe('completed')
  })

  it('passes room on when a task is requeued, when its worker dies, and when the limit is raised', async () => {
    const gates = new Map<number, PromiseWithResolvers<void>>()
    const handle = async ({ input, signal }: { input: { n: number }; signal: AbortSignal }) => {
      const gate = Promise.withResolvers<void>()
      gates.set(input.n, gate)
      signal.addEventListener('abort', () => gate.resolve())
      await gate.promise
      signal.throwIfAborted()
      return input
    }
    const locks = { lockMs: 30_000, renewalMs: 200 }
    const { enqueue, startPool, settled, command, kill } = await worked({
      handle,
      concurrency: 10,
      locks,
      roundMs: 150,
    })
    await command({ action: 'limit', queue: 'rig', concurrency: 1 })
    const first = await startPool()
    const one = await enqueue(long, { input: { n: 1 } })
    const two = await enqueue(long, { input: { n: 2 } })
    await eventually(() => gates.size === 1)
    await startPool()
    // Requeued by a drain: another worker runs it, still alone.
    gates.clear()
    await first.drain({ drainMs: 0, graceMs: 1_000, hurry: new AbortController().signal })
    await eventually(() => gates.size === 1)
    expect([...gates.keys()]).toEqual([1])
    // The worker dies: the lock is gone, and the stall check requeues the task for another worker.
    gates.clear()
    await kill(1, [one])
    await startPool()
    await eventually(() => gates.size === 1)
    expect([...gates.keys()]).toEqual([1])
    // The worker that runs the task in quarantine fetches no other task.
    await startPool()
    await command({ action: 'limit', queue: 'rig', concurrency: 2 })
    await eventually(() => gates.size === 2)
    for (const gate of gates.values()) gate.resolve()
    for (const id of [one, two]) expect((await settled(id))?.status).toBe('completed')
  })
})

describe('a rate limit of 20 per hour over two pools', () => {
  it('is obeyed, however many tasks wait', async () => {
    let started = 0
    const handle = ({ input }: { input: { n: number } }) => {
      started++
      return input
    }
    const { broker, enqueue, startPool, command, redis, keys } = await worked({
      // It handles both definitions of the fixture, whose inputs differ.
      handle: handle as never,
      concurrency: 10,
    })
    await command({ action: 'limit', queue: 'rig', rate: { max: 20, per: '1h' } })
    await startPool()
    await startPool()
    await Promise.all(Array.from({ length: 50 }, () => enqueue(short)))
    for (const [completed, waiting] of [
      [20, 30],
      [40, 10],
      [50, 0],
    ]) {
      await eventually(async () => (await broker.counts('rig')).completed === completed)
      expect([started, (await broker.counts('rig')).waiting]).toEqual([completed, waiting])
      // The window ends.
      await redis.del(`${keys.base}limiter`)
    }
  })
})

describe('a rate limit that is removed', () => {
  it('delays no task any more', async () => {
    const { broker, enqueue, startPool, settled, command } = await worked()
    await command({ action: 'limit', queue: 'rig', rate: { max: 1, per: '1h' } })
    await startPool()
    const ids = [await enqueue(short), await enqueue(short)]
    await eventually(async () => (await broker.counts('rig')).completed === 1)
    await command({ action: 'limit', queue: 'rig', rate: 'none' })
    for (const id of ids) expect((await settled(id))?.status).toBe('completed')
  })
})

describe('the remaining tasks of a queue', () => {
  it('are those that wait, run or are due, without those scheduled for later', async () => {
    const gate = Promise.withResolvers<void>()
    const handle = async ({ input }: { input: { n: number } }) => {
      await gate.promise
      return input
    }
    const { enqueue, startPool, command, fleet, broker } = await worked({ handle, concurrency: 1 })
    expect(await fleet.remaining('rig')).toBe(0)
    await enqueue(long)
    await enqueue(long)
    await enqueue(long, { delayMs: 3_600_000 })
    expect(await fleet.remaining('rig')).toBe(2)
    await startPool()
    await eventually(async () => (await broker.counts('rig')).active === 1)
    await command({ action: 'pause', queue: 'rig' })
    await enqueue(long, { delayMs: 1 })
    await eventually(async () => (await fleet.remaining('rig')) === 3)
    gate.resolve()
    await eventually(async () => (await fleet.remaining('rig')) === 2)
  })

  it('include a quarantined task for which no worker has a place, and not once it is cancelled', async () => {
    const gate = Promise.withResolvers<void>()
    const entered: string[] = []
    const handle = async ({ id, input }: { readonly id: string; readonly input: { readonly n: number } }) => {
      entered.push(id)
      await gate.promise
      return input
    }
    const { enqueue, startPool, fleet, broker, redis, keys, settled } = await worked({ handle, concurrency: 2 })
    const ids = [await enqueue(long), await enqueue(long)]
    // Tasks that have died twice run strictly alone.
    for (const id of ids) await redis.hset(keys.job(id), { deaths: 2, stc: 2 })
    await startPool()
    await eventually(async () => (await broker.counts('rig')).scheduled === 1)
    expect(await fleet.remaining('rig')).toBe(2)
    const waits = ids.find((id) => !entered.includes(id)) ?? ids[0]
    await eventually(async () => (await broker.cancel(waits as (typeof ids)[0], { stoppable: true })) !== 'cancelling')
    expect(await fleet.remaining('rig')).toBe(1)
    gate.resolve()
    await Promise.all(ids.map(settled))
    expect(await fleet.remaining('rig')).toBe(0)
  })
})

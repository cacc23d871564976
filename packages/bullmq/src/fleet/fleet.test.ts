// The fleet on a real Redis: the registry of workers, the commands for them, and their responses.
import type { CommandSpec } from '@bullpen/contract/internal'
import { FORGOTTEN_AFTER_MS, outcomeOf, SILENT_AFTER_MS } from '@bullpen/engine/internal'
import { privateRedis } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { describe, expect, it } from 'vitest'
import { silent } from '../setup.fixture.ts'
import { recipientsOf, storeCommand } from './commands.ts'
import { FEATURES } from './features.ts'
import { fleetRig, pool, status } from './fleet.fixture.ts'
import { readWorkers, storeHeartbeat } from './registry.ts'

const PAUSE: CommandSpec = { action: 'pause', queue: 'cpu' }
const stop = (worker: string): CommandSpec => ({ action: 'stop', worker, queue: 'cpu', slot: 1, how: 'wait' })

describe('the registry', () => {
  it('shows the last status of each worker, and the time of its heartbeat by Redis’s clock', async () => {
    const { fleet, open, redis } = await fleetRig()
    const slots = [{ slot: 1, state: 'IDLE' as const, since: 1_700_000_000_100, task: undefined }]
    await fleet.heartbeat(status('a'))
    await (await open()).heartbeat(status('b', [pool('cpu', slots), pool('io')]))
    await fleet.heartbeat({ ...status('a'), draining: true })
    const { now, workers } = await fleet.workers()
    expect(workers.map(({ seenAt: _, ...status }) => status)).toEqual(
      expect.arrayContaining([
        { ...status('a'), draining: true, features: [...FEATURES] },
        { ...status('b', [pool('cpu', slots), pool('io')]), features: [...FEATURES] },
      ]),
    )
    const [seconds] = await redis.time()
    expect(Math.abs(now - Number(seconds) * 1_000)).toBeLessThan(60_000)
    for (const { seenAt } of workers) expect(now - seenAt).toBeLessThan(SILENT_AFTER_MS)
  })

  it('removes a worker that leaves, and responds to its commands with gone', async () => {
    const { fleet } = await fleetRig()
    await fleet.heartbeat(status('a'))
    await fleet.send({ id: 'c', spec: stop('a'), by: 'me' })
    await fleet.leave('a')
    expect((await fleet.workers()).workers).toEqual([])
    expect((await fleet.command('c'))?.responses).toMatchObject([{ worker: 'a', outcome: 'gone' }])
  })

  it('is read page by page: a large fleet is complete, and no worker is shown twice', async () => {
    const { fleet, redis, keys } = await fleetRig()
    const ids = Array.from({ length: 350 }, (_, i) => `w-${i}`)
    await Promise.all(ids.map((id) => storeHeartbeat(redis, keys, status(id))))
    const { workers } = await fleet.workers()
    expect(workers.map(({ worker }) => worker).toSorted()).toEqual(ids.toSorted())
  })

  it('removes a worker with more commands than one script responds to, and responds to all of them', async () => {
    const { fleet, redis, keys } = await fleetRig()
    await fleet.heartbeat(status('a'))
    const commands = Array.from({ length: 250 }, (_, i) => ({ id: `c-${i}`, spec: stop('a'), by: 'me' }))
    await Promise.all(commands.map((command) => storeCommand(redis, keys, command, ['a'])))
    await fleet.leave('a')
    const records = await fleet.commands(300)
    expect(records).toHaveLength(250)
    expect(records.every(({ responses }) => responses[0]?.outcome === 'gone')).toBe(true)
    expect(await redis.exists(keys.worker('a'), keys.inbox('a'))).toBe(0)
  })

  it('shows silent workers until they are forgotten, and their pending commands as gone', async () => {
    const { fleet, redis, keys, silence } = await fleetRig()
    await fleet.heartbeat(status('quiet'))
    await fleet.heartbeat(status('loud'))
    await fleet.send({ id: 'c', spec: PAUSE, by: 'me' })
    await silence('quiet', SILENT_AFTER_MS + 1_000)
    expect((await fleet.workers()).workers.map(({ worker }) => worker).sort()).toEqual(['loud', 'quiet'])
    expect((await fleet.command('c'))?.responses).toMatchObject([
      { worker: 'loud', outcome: 'pending' },
      { worker: 'quiet', outcome: 'gone' },
    ])
    // The worker was only slow.
    await fleet.heartbeat(status('quiet'))
    expect((await fleet.command('c'))?.responses[1]).toEqual({ worker: 'quiet', outcome: 'pending' })
    await silence('quiet', FORGOTTEN_AFTER_MS + 1_000)
    expect((await fleet.workers()).workers).toHaveLength(1)
    await fleet.heartbeat(status('loud'))
    expect(await redis.exists(keys.worker('quiet'), keys.inbox('quiet'))).toBe(0)
    await fleet.heartbeat(status('quiet'))
    expect((await fleet.command('c'))?.responses[1]).toMatchObject({ outcome: 'gone' })
  })
})

describe('a command', () => {
  it('is delivered to the workers that it concerns until they respond, and only the first response of each counts', async () => {
    const { fleet } = await fleetRig()
    for (const name of ['a', 'b']) await fleet.heartbeat(status(name))
    await fleet.heartbeat(status('other', [pool('io')]))
    const sent = await fleet.send({ id: 'c', spec: PAUSE, by: 'me' })
    expect(sent).toMatchObject({ id: 'c', spec: PAUSE, by: 'me' })
    expect(sent.responses).toEqual([
      { worker: 'a', outcome: 'pending' },
      { worker: 'b', outcome: 'pending' },
    ])
    const [addressed, other] = [
      await fleet.heartbeat(status('a')),
      await fleet.heartbeat(status('other', [pool('io')])),
    ]
    expect(addressed.commands).toEqual([{ id: 'c', spec: PAUSE, by: 'me', at: sent.at }])
    expect(other.commands).toEqual([])
    await fleet.respond('c', { worker: 'a', outcome: 'done', detail: 'paused' })
    await fleet.respond('c', { worker: 'a', outcome: 'refused' })
    await fleet.respond('c', { worker: 'other', outcome: 'done' })
    expect((await fleet.heartbeat(status('a'))).commands).toEqual([])
    const record = await fleet.command('c')
    expect(record?.responses).toMatchObject([
      { worker: 'a', outcome: 'done', detail: 'paused' },
      { worker: 'b', outcome: 'pending' },
    ])
    expect(record?.responses[0]?.at).toBeGreaterThanOrEqual(sent.at)
  })

  it('is idempotent by id and spec, also when sent concurrently; another spec needs another id', async () => {
    const { fleet, open } = await fleetRig()
    await fleet.heartbeat(status('a'))
    const spec: CommandSpec = { action: 'drain', mode: 'soft', queue: 'cpu' }
    const same: CommandSpec = { queue: 'cpu', mode: 'soft', action: 'drain' }
    const members = [fleet, await open(), await open()]
    const records = await Promise.all(
      members.flatMap((member) => [spec, same].map((each) => member.send({ id: 'c', spec: each, by: 'me' }))),
    )
    for (const record of records) expect(record).toEqual(records[0])
    await fleet.heartbeat(status('late'))
    await fleet.respond('c', { worker: 'a', outcome: 'done' })
    expect((await fleet.send({ id: 'c', spec, by: 'me' })).responses).toMatchObject([{ worker: 'a', outcome: 'done' }])
    expect(await fleet.commands(10)).toHaveLength(1)
    await expect(fleet.send({ id: 'c', spec: PAUSE, by: 'me' })).rejects.toMatchObject({ code: 'command_id_reused' })
  })

  it('for an unknown worker is refused, and not stored', async () => {
    const { fleet, silence } = await fleetRig()
    await fleet.heartbeat(status('a'))
    await silence('a', SILENT_AFTER_MS + 1_000)
    for (const name of ['a', 'never']) {
      await expect(fleet.send({ id: name, spec: stop(name), by: 'me' })).rejects.toMatchObject({
        code: 'worker_not_found',
      })
    }
    expect(await fleet.commands(10)).toEqual([])
  })

  it('for an unknown queue is refused', async () => {
    const { fleet } = await fleetRig()
    const spec: CommandSpec = { action: 'pause', queue: 'never' }
    await expect(fleet.send({ id: 'c', spec, by: 'me' })).rejects.toMatchObject({ code: 'queue_not_found' })
    await expect(fleet.queueSettings('never')).rejects.toMatchObject({ code: 'queue_not_found' })
  })

  it('that concerns no worker is done: the settings of its queue are applied', async () => {
    const { fleet } = await fleetRig()
    const { responses } = await fleet.send({ id: 'c', spec: PAUSE, by: 'me' })
    expect([responses, outcomeOf(responses)]).toEqual([[], 'done'])
    expect(await fleet.awaitResponses('c', new AbortController().signal)).toMatchObject({ id: 'c' })
  })

  it('whose sender died before applying it is applied and delivered at the next heartbeat', async () => {
    const { fleet, redis, keys } = await fleetRig()
    await fleet.heartbeat(status('a'))
    const asked = { id: 'c', spec: PAUSE, by: 'me' }
    await storeCommand(redis, keys, asked, recipientsOf(asked, await readWorkers(redis, keys, '', silent)))
    expect((await fleet.queueSettings('cpu')).paused).toBe(false)
    const { commands, queueSettings } = await fleet.heartbeat(status('a'))
    expect(commands).toMatchObject([asked])
    expect(queueSettings.get('cpu')?.paused).toBe(true)
    expect(await redis.zcard(keys.unapplied)).toBe(0)
  })

  it('that is applied late does not overwrite a newer one', async () => {
    const { fleet, redis, keys } = await fleetRig()
    const asked = { id: 'c', spec: PAUSE, by: 'me' }
    await storeCommand(redis, keys, asked, [])
    await fleet.send({ id: 'd', spec: { action: 'resume', queue: 'cpu' }, by: 'me' })
    await fleet.heartbeat(status('a'))
    expect((await fleet.queueSettings('cpu')).paused).toBe(false)
    await fleet.send(asked)
    expect((await fleet.queueSettings('cpu')).paused).toBe(false)
  })

  it('is listed, newest first, for seven days and among the last 10,000', async () => {
    const { fleet, redis, keys } = await fleetRig()
    for (const id of ['x', 'y', 'z']) await fleet.send({ id, spec: PAUSE, by: 'me' })
    expect((await fleet.commands(2)).map(({ id }) => id)).toEqual(['z', 'y'])
    const days = (await redis.pttl(keys.command('x'))) / 86_400_000
    expect(days).toBeGreaterThan(6.9)
    expect(days).toBeLessThanOrEqual(7)
    const many = Array.from({ length: 10_000 }, (_, i) => [Date.now() * 1_000 - 60_000_000 + i, `old-${i}`]).flat()
    await redis.zadd(keys.commands, ...(many as string[]))
    await redis.zadd(keys.commands, 1, 'ancient')
    await redis.hset(keys.command('ancient'), 'order', '{}')
    await fleet.send({ id: 'last', spec: PAUSE, by: 'me' })
    expect(await redis.zcard(keys.commands)).toBe(10_000)
    expect(await redis.exists(keys.command('ancient'))).toBe(0)
    expect((await fleet.commands(5)).map(({ id }) => id)).toEqual(['last', 'z', 'y', 'x'])
  })
})

describe('a caller that waits for responses', () => {
  it('gets the command when the last worker has responded', async () => {
    const { fleet, open } = await fleetRig()
    for (const name of ['a', 'b']) await fleet.heartbeat(status(name))
    await fleet.send({ id: 'c', spec: PAUSE, by: 'me' })
    const waiting = await open()
    const record = waiting.awaitResponses('c', AbortSignal.timeout(120_000))
    await fleet.respond('c', { worker: 'a', outcome: 'done' })
    await fleet.respond('c', { worker: 'b', outcome: 'refused', detail: 'no' })
    expect((await record)?.responses.map(({ outcome }) => outcome)).toEqual(['done', 'refused'])
  })

  it('gets the present state when its signal aborts, and undefined for an unknown command', async () => {
    const { fleet } = await fleetRig()
    await fleet.heartbeat(status('a'))
    await fleet.send({ id: 'c', spec: stop('a'), by: 'me' })
    const over = new AbortController()
    const record = fleet.awaitResponses('c', over.signal)
    over.abort()
    expect((await record)?.responses).toEqual([{ worker: 'a', outcome: 'pending' }])
    expect(await fleet.awaitResponses('never', new AbortController().signal)).toBeUndefined()
  })

  it('does not wait for a worker that falls silent', async () => {
    const { fleet, silence } = await fleetRig()
    await fleet.heartbeat(status('a'))
    await fleet.send({ id: 'c', spec: stop('a'), by: 'me' })
    const record = fleet.awaitResponses('c', AbortSignal.timeout(120_000))
    await silence('a', SILENT_AFTER_MS + 1_000)
    expect((await record)?.responses).toMatchObject([{ worker: 'a', outcome: 'gone' }])
  })
})

describe('a worker that listens', () => {
  it('is woken by its commands, by the settings of its queues, and after a loss of the connection', async () => {
    // A Redis of its own: the connections of other tests must not be cut.
    const server = await privateRedis()
    await server.start()
    const { fleet, open, redis } = await fleetRig({ queues: ['cpu'], redisUrl: server.url })
    await fleet.heartbeat(status('a'))
    await fleet.heartbeat(status('b'))
    const woken: number[] = []
    const listener = await open()
    const stopListening = listener.listen('a', () => woken.push(woken.length))
    await eventually(() => woken.length === 1)
    await fleet.send({ id: 'b', spec: stop('b'), by: 'me' })
    await fleet.send({ id: 'a', spec: stop('a'), by: 'me' })
    await eventually(() => woken.length === 2)
    await fleet.send({ id: 'q', spec: PAUSE, by: 'me' })
    await eventually(() => woken.length === 3)
    await redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub')
    await eventually(() => woken.length === 4)
    await fleet.send({ id: 'a2', spec: stop('a'), by: 'me' })
    await eventually(() => woken.length === 5)
    stopListening()
  })
})

describe('a heartbeat', () => {
  it('returns changed settings of a queue even if Redis is full, and does not read unchanged ones again', async () => {
    const server = await privateRedis()
    await server.start()
    const { fleet, open, redis } = await fleetRig({ queues: ['cpu'], redisUrl: server.url })
    const worker = await open()
    const paused = async () => (await worker.heartbeat(status('a'))).queueSettings.get('cpu')?.paused
    expect(await paused()).toBe(false)
    await redis.config('RESETSTAT')
    expect(await paused()).toBe(false)
    expect(await redis.info('commandstats')).not.toContain('cmdstat_hmget:')
    await redis.config('SET', 'maxmemory', '1')
    await fleet.send({ id: 'q', spec: PAUSE, by: 'me' })
    expect(await paused()).toBe(true)
  })
})

// Tests what a failed enqueue says about its effect, and what a repeated one gets from a queue that accepts no tasks.
import { randomBytes } from 'node:crypto'
import { createTaskId } from '@bullpen/contract/internal'
import type { NewTask } from '@bullpen/engine'
import { newTask } from '@bullpen/engine/internal'
import { idempotencyOf } from '@bullpen/engine/node'
import { privateRedis } from '@bullpen/testing'
import { eventually, faultProxy } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { COMMAND_TIMEOUT_MS } from '../connection.ts'
import { fleetRig, pool, status } from '../fleet/fleet.fixture.ts'
import { encodeStatus } from '../fleet/status-codec.ts'
import { setup, short, silent } from '../setup.fixture.ts'
import { openPatientBroker } from './patient-broker.fixture.ts'

const TURN = { key: 'acme', weight: 1 }

function aTask(more: Partial<NewTask> = {}): NewTask {
  const now = Date.now()
  const origin = { id: createTaskId('rig', now, randomBytes(10)), enqueuedAt: now, correlationId: undefined }
  return { ...newTask(short, {}, {}, origin), ...more }
}

describe('an enqueue that fails because Redis does not respond', () => {
  async function silentRedis() {
    const proxy = await faultProxy(inject('redisUrl'))
    onTestFinished(() => proxy.close())
    const { broker, enqueue } = await setup({ redisUrl: proxy.url, commandTimeoutMs: COMMAND_TIMEOUT_MS })
    onTestFinished(() => proxy.reset())
    // After this call, the broker knows everything that a task without a turn depends on.
    await eventually(() => enqueue(short))
    proxy.cutAnswers()
    return broker
  }

  it('had no effect if the workers of the queue could not be read before the task was sent', async () => {
    const broker = await silentRedis()
    const error = { code: 'redis_unavailable', hadNoEffect: true }
    const task = aTask({ turn: TURN })
    await expect(broker.enqueue(task)).rejects.toMatchObject(error)
    await expect(broker.enqueueAll([task])).rejects.toMatchObject(error)
    expect(await broker.enqueueBulk([task])).toMatchObject([{ reason: error }])
  })

  it('may have had an effect if the task was sent', async () => {
    const broker = await silentRedis()
    const error = { code: 'redis_unavailable', hadNoEffect: false }
    await expect(broker.enqueue(aTask())).rejects.toMatchObject(error)
    await expect(broker.enqueueAll([aTask()])).rejects.toMatchObject(error)
  })
})

describe.each(['queue_draining', 'fleet_too_old', 'redis_full'])('in a queue that refuses tasks with %s', (code) => {
  const keyed = (key: string, request = 'a') =>
    aTask({ turn: TURN, idempotency: idempotencyOf({ key, caller: 'ann', request, life: 3_600 }) })

  /** Tasks with the keys 'k0' and 'k1' are stored before the queue refuses tasks. */
  async function refusing() {
    const server = await privateRedis()
    await server.start()
    const { broker: earlier, namespace } = await setup({ redisUrl: server.url })
    const first = await Promise.all([earlier.enqueue(keyed('k0')), earlier.enqueue(keyed('k1'))])
    const { fleet, redis, keys } = await fleetRig({ namespace, queues: ['rig'], redisUrl: server.url })
    const makeRefuse: Record<string, () => Promise<unknown>> = {
      queue_draining: () => fleet.send({ id: 'c1', spec: { action: 'drain', mode: 'light', queue: 'rig' }, by: 'me' }),
      async fleet_too_old() {
        await fleet.heartbeat(status('old:1', [pool('rig')]))
        await redis.hset(keys.worker('old:1'), 'status', encodeStatus(status('old:1', [pool('rig')])).status)
      },
      redis_full: () => fillUp(server.url),
    }
    await makeRefuse[code]?.()
    const refused: string[] = []
    const broker = openPatientBroker({
      ...{ redisUrl: server.url, namespace, queues: ['rig'], sizeLimit: 10_000, log: silent, leads: false },
      onRefused: (each) => refused.push(each.code),
    })
    onTestFinished(() => broker.close())
    await eventually(() => broker.ping().then(() => true))
    return { broker, refused, replays: first.map(({ id }) => ({ id, replayed: { status: 'waiting' } })) }
  }

  it('a repeated call gets its first response, and a call with a new key or without a key is refused', async () => {
    const { broker, refused, replays } = await refusing()
    expect(await broker.enqueue(keyed('k0'))).toMatchObject(replays[0] as object)
    expect(await broker.enqueueBulk([keyed('k1'), keyed('new')])).toMatchObject([
      { value: replays[1] },
      { reason: { code } },
    ])
    await expect(broker.enqueue(aTask({ turn: TURN }))).rejects.toMatchObject({ code })
    await expect(broker.enqueue(keyed('k0', 'b'))).rejects.toMatchObject({ code: 'idempotency_key_reused' })
    expect(refused).toEqual([code, code])
    expect((await broker.counts('rig')).waiting).toBe(2)
  })

  it('a repeated atomic call gets its first response, and one with a new key stores nothing', async () => {
    const { broker, refused, replays } = await refusing()
    expect(await broker.enqueueAll([keyed('k0'), keyed('k1')])).toMatchObject(replays)
    expect(refused).toEqual([])
    const error = await broker.enqueueAll([keyed('k0'), keyed('new')]).catch((caught) => caught)
    expect(error).toMatchObject({ code, errors: [] })
    expect(refused).toEqual([code, code])
    expect((await broker.counts('rig')).waiting).toBe(2)
  })
})

/** Fills a server up to 90% of its memory. */
async function fillUp(url: string): Promise<void> {
  const redis = new Redis(url)
  await redis.setrange('ballast', 20_000_000, 'end')
  const used = Number(/^used_memory:(\d+)/m.exec(await redis.info('memory'))?.[1])
  await redis.config('SET', 'maxmemory', Math.round(used / 0.9))
  redis.disconnect()
}

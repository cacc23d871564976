// Tests the report of workers that fall silent without leaving the fleet.
import { randomUUID } from 'node:crypto'
import type { SlotStatus } from '@bullpen/engine'
import { FORGOTTEN_AFTER_MS, HEARTBEAT_INTERVAL_MS, SILENT_AFTER_MS } from '@bullpen/engine/internal'
import { eventually, faultProxy } from '@bullpen/testkit'
import { expect, inject, it, onTestFinished } from 'vitest'
import { producerConnection } from '../connection.ts'
import { fleetRig, pool, status } from '../fleet/fleet.fixture.ts'
import { silent } from '../setup.fixture.ts'
import { type LostWorker, reportLostWorkers } from './lost-workers.ts'

const busy = (slot: number): SlotStatus => ({
  ...({ slot, state: 'WORKING', since: 1_700_000_000_500 } as const),
  task: { id: `cpu-${slot}`, task: 'math.square', fencingToken: 1 },
})

const ROUND_MS = 1_500
/** How long the visits must have been steady. */
const STEADY_MS = SILENT_AFTER_MS + HEARTBEAT_INTERVAL_MS + 1

it('a worker that falls silent is reported once with its tasks, whoever leads, and again if it is lost again', async () => {
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const { fleet, redis, keys } = await fleetRig({ namespace })
  const twelve = Array.from({ length: 12 }, (_, i) => busy(i + 1))
  await fleet.heartbeat(status('killed', [pool('cpu', twelve), pool('io')]))
  await fleet.heartbeat(status('drained'))
  await fleet.leave('drained')
  let { now } = await fleet.workers()
  const leader = () => {
    const lost: LostWorker[] = []
    const report = reportLostWorkers({ redis, namespace, now: () => now, onLost: (each) => lost.push(each) })
    return async () => {
      await report(() => false)
      return lost.splice(0)
    }
  }
  /** Lets the leaders visit regularly until a worker that has sent its last heartbeat at the start is lost. */
  const steady = async (...leaders: ReturnType<typeof leader>[]) => {
    const found: LostWorker[] = []
    for (const until = now + STEADY_MS + ROUND_MS; now < until; now += ROUND_MS) {
      for (const each of leaders) found.push(...(await each()))
    }
    return found
  }
  const [first, next] = [leader(), leader()]
  const found = await steady(first)
  expect(found).toMatchObject([{ worker: 'killed', host: 'h', tasks: 12, queues: { cpu: 12, io: 0 } }])
  expect(found[0]?.ids).toEqual(twelve.slice(0, 10).map(({ task }) => task?.id))
  expect(await steady(first, next)).toEqual([])
  expect(await redis.pttl(keys.worker('killed'))).toBeGreaterThan(0)

  // It was only frozen, and is killed now.
  await fleet.heartbeat(status('killed'))
  now = (await fleet.workers()).now
  expect(await steady(first, next)).toMatchObject([{ worker: 'killed', tasks: 0 }])

  now += FORGOTTEN_AFTER_MS
  expect(await steady(leader())).toEqual([])
})

it('an outage of Redis makes no worker lost that sends heartbeats again, and one that does not is reported once', async () => {
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const proxy = await faultProxy(inject('redisUrl'))
  const redis = producerConnection(proxy.url, silent, undefined, 5_000)
  onTestFinished(async () => {
    redis.disconnect()
    await proxy.close()
  })
  const { fleet, redis: direct, keys } = await fleetRig({ namespace })
  let { now } = await fleet.workers()
  const beat = (worker: string) => direct.zadd(keys.heartbeats, now, worker)
  for (const worker of ['live', 'killed']) await fleet.heartbeat(status(worker))
  const lost: string[] = []
  const report = reportLostWorkers({ redis, namespace, now: () => now, onLost: ({ worker }) => lost.push(worker) })
  const visit = () => report(() => false)
  const visits = async (ms: number, ...alive: readonly string[]) => {
    for (const until = now + ms; now < until; now += ROUND_MS) {
      for (const worker of alive) await beat(worker)
      await visit()
    }
  }
  await eventually(() => redis.exists('t-none').then(() => true))
  await visits(2 * STEADY_MS, 'live', 'killed')

  for (const outageMs of [4_000, 10_000, 30_000]) {
    proxy.cut()
    await expect(visit()).rejects.toThrow()
    now += outageMs
    proxy.mend()
    await eventually(() => redis.exists('t-none').then(() => true))
    // The leader visits before the workers have reconnected and sent a heartbeat.
    await visits(SILENT_AFTER_MS)
    await visits(2 * STEADY_MS, 'live', 'killed')
    expect(lost).toEqual([])
  }
  await visits(3 * STEADY_MS, 'live')
  expect(lost).toEqual(['killed'])
})

it('after writes were refused, or a backup was restored, no worker is lost that sends heartbeats again', async () => {
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const { fleet, redis, keys } = await fleetRig({ namespace })
  let { now } = await fleet.workers()
  const lost: string[] = []
  const report = reportLostWorkers({ redis, namespace, now: () => now, onLost: ({ worker }) => lost.push(worker) })
  const visits = async (ms: number, ...alive: readonly string[]) => {
    for (const until = now + ms; now < until; now += ROUND_MS) {
      for (const worker of alive) await redis.zadd(keys.heartbeats, now, worker)
      await report(() => false)
    }
  }
  for (const worker of ['live', 'killed']) await fleet.heartbeat(status(worker))
  await visits(2 * STEADY_MS, 'live', 'killed')
  for (const staleMs of [HEARTBEAT_INTERVAL_MS, SILENT_AFTER_MS, STEADY_MS, 5 * SILENT_AFTER_MS]) {
    // The leader goes on: its lease outlasts a short refusal, and a backup is restored between two visits.
    for (const worker of ['live', 'killed']) await redis.zadd(keys.heartbeats, now - staleMs, worker)
    await visits(HEARTBEAT_INTERVAL_MS)
    await visits(2 * STEADY_MS, 'live', 'killed')
    expect(lost).toEqual([])
  }
  await visits(3 * STEADY_MS, 'live')
  expect(lost).toEqual(['killed'])
})

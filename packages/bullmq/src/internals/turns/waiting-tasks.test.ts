// What works on waiting tasks also works on those in lanes: limits, wake-ups, cancels by filter and listings.
import { randomBytes } from 'node:crypto'
import type { TaskId } from '@bullpen/contract'
import { createTaskId } from '@bullpen/contract/internal'
import { newTask } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { expect, it, onTestFinished } from 'vitest'
import { fleetRig } from '../../fleet/fleet.fixture.ts'
import { queueKeys } from '../../keys.ts'
import { queueOutbox } from '../../outbox/forwarder.ts'
import { CLOSED_BY_OUTBOX } from '../../outbox/outbox-bounds.ts'
import { long, setup } from '../../setup.fixture.ts'
import { laneViolations } from './lane-scan.fixture.ts'

const TURN = { key: 'a', weight: 1 }

async function stage(options: Parameters<typeof setup>[0] = {}) {
  const all = await setup({ leads: false, ...options })
  const redis = new Redis(all.redisUrl)
  onTestFinished(() => redis.disconnect())
  const keys = queueKeys(all.namespace, 'rig')
  return {
    ...all,
    redis,
    keys,
    /** Takes the marker, as a worker does that is killed then. */
    forgetMarker: () => redis.del(keys.marker),
    marker: () => redis.zscore(keys.marker, '0'),
  }
}

it.each([
  ['a', []],
  ['a b', [{ limiter: 'permits:db', amount: 2 }]],
  ['a\x1eb=1', []],
  ['a\x1eb=1', [{ limiter: 'permits:db', amount: 2 }]],
])('have the key %j in their view, which is stored once', async (key, needs) => {
  const { enqueue, broker, redis, keys } = await stage()
  const id = await enqueue(long, { concurrencyKey: key, turn: { key, weight: 0.5 }, needs })
  expect(await broker.find(id)).toMatchObject({ concurrencyKey: key })
  expect(await redis.hget(keys.job(id), 'data')).not.toContain('concurrencyKey')
})

it('have a key in their view that takes no turns', async () => {
  const { enqueue, broker } = await stage()
  const needs = [{ limiter: 'permits:db', amount: 2 }]
  const found = async (given: object) => (await broker.find(await enqueue(long, given)))?.concurrencyKey
  expect(await found({ concurrencyKey: 'a', needs })).toBe('a')
  expect(await found({ concurrencyKey: 'a' })).toBe('a')
  expect(await found({ needs })).toBeUndefined()
})

it('count for the limits of their queue', async () => {
  const { enqueue } = await stage()
  const enqueuedAt = Date.now() - 60_000
  await enqueue(long, { turn: TURN, enqueuedAt })
  await enqueue(long, { turn: TURN, priority: 1 })
  const refused = (limits: object) => expect(enqueue(long, { limits })).rejects
  await refused({ maxTasks: 2 }).toMatchObject({ code: 'queue_full', reached: { limit: 'maxTasks', found: 2 } })
  await refused({ maxAgeMs: 30_000 }).toMatchObject({ code: 'queue_full', reached: { limit: 'maxAge' } })
})

it('wake a worker when a command resumes their queue', async () => {
  const { enqueue, namespace, forgetMarker, marker } = await stage()
  const { fleet } = await fleetRig({ namespace, queues: ['rig'] })
  await fleet.send({ id: 'c1', spec: { action: 'pause', queue: 'rig' }, by: 'me' })
  await enqueue(long, { turn: TURN })
  await forgetMarker()
  await fleet.send({ id: 'c2', spec: { action: 'resume', queue: 'rig' }, by: 'me' })
  expect(await marker()).toBe('0')
})

it('wake a worker when the outbox no longer closes their queue', async () => {
  const { enqueue, redis, keys, forgetMarker, marker } = await stage()
  await redis.hset(keys.meta, 'paused', CLOSED_BY_OUTBOX)
  await enqueue(long, { turn: TURN })
  await forgetMarker()
  await queueOutbox(redis, keys).remove([])
  expect(await marker()).toBe('0')
})

it('wake a worker again if their marker is lost', async () => {
  const { enqueue, forgetMarker, marker } = await stage({ leads: true, roundMs: 50 })
  await enqueue(long, { turn: TURN })
  await forgetMarker()
  await eventually(async () => (await marker()) === '0')
})

it('are cancelled by a filter and listed page by page, although their lanes are longer than a page', async () => {
  const { broker, redis, keys } = await stage({ leads: true, roundMs: 50 })
  const tasks = Array.from({ length: 600 }, (_, i) => {
    const id = createTaskId('rig', Date.now(), randomBytes(10))
    const origin = { id, enqueuedAt: Date.now(), correlationId: undefined }
    // Some lanes are those of keys, some those of needs, and some those of both.
    const turn = i < 400 ? { key: `key ${Math.floor(i / 200)}`, weight: 1 } : undefined
    const needs = i < 200 ? [] : [{ limiter: 'permits:db', amount: 1 }]
    return { ...newTask(long, {}, { tags: [i % 3 === 0 ? 'gone' : 'kept'] }, origin), turn, needs, priority: i % 2 }
  })
  await broker.enqueueBulk(tasks)
  const listed = async (): Promise<TaskId[]> => {
    const ids: TaskId[] = []
    let cursor: string | undefined
    do {
      const page = await broker.list({ queue: 'rig', status: 'waiting', limit: 190, cursor })
      ids.push(...page.tasks.map(({ id }) => id))
      cursor = page.next
    } while (cursor !== undefined)
    return ids.toSorted()
  }
  expect(await listed()).toEqual(tasks.map(({ id }) => id).toSorted())
  await broker.cancelMany({ queue: 'rig', tag: 'gone', before: Date.now() + 1, reason: 'cancelled' })
  await eventually(async () => (await broker.counts('rig')).cancelled === 200)
  const kept = tasks.filter(({ tags = [] }) => tags[0] === 'kept')
  expect(await listed()).toEqual(kept.map((task) => task.id).toSorted())
  expect(await laneViolations(redis, keys)).toEqual([])
})

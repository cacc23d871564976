// Followers of streams on a real Redis: they share a connection, survive its loss, and learn of dropped entries.
import { randomUUID } from 'node:crypto'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { expect, inject, it, onTestFinished } from 'vitest'
import { silent } from '../setup.fixture.ts'
import { openStreamFollower, type StreamListener } from './stream-follower.ts'

/** How many entries the streams of these tests keep, unless a test says otherwise. */
const KEPT = 100

async function setup({ reconnectAfterMs = 50 } = {}) {
  const base = `t-${randomUUID().slice(0, 12)}`
  const name = `follower-${base}`
  const redis = new Redis(inject('redisUrl'))
  let connections = 0
  const follower = openStreamFollower({
    redis,
    connect() {
      connections++
      return new Redis(inject('redisUrl'), {
        connectionName: name,
        maxRetriesPerRequest: null,
        retryStrategy: () => reconnectAfterMs,
      })
    },
    log: silent,
  })
  onTestFinished(() => {
    follower.close()
    redis.disconnect()
  })
  const received: string[] = []
  const listener = (label: string): StreamListener => ({
    onEntries: (entries) => void received.push(...entries.map(([, fields]) => `${label} ${fields[1]}`)),
    onMissed: (kind) => void received.push(`${label} ${kind}`),
  })
  const clients = async (): Promise<readonly string[]> =>
    String(await redis.client('LIST'))
      .split('\n')
      .filter((line) => line.includes(`name=${name}`))
  /** Ends the follower's connection while it waits for entries. */
  const disconnect = async (): Promise<void> => {
    await eventually(async () => (await clients()).some((line) => line.includes('cmd=xread')))
    const id = /^id=(\d+)/.exec((await clients())[0] ?? '')?.[1] ?? ''
    await redis.client('KILL', 'ID', id)
  }
  return { base, redis, follower, received, listener, clients, disconnect, connections: () => connections }
}

it('the followers of several streams share one connection, which is closed when the last one stops', async () => {
  const { base, redis, follower, received, listener, clients } = await setup()
  const stops = ['a', 'b', 'c'].map((label) => follower.follow(`${base}:${label}`, '0-0', listener(label), KEPT))
  for (const label of ['a', 'b', 'c', 'a']) await redis.xadd(`${base}:${label}`, '*', 'n', label)
  await eventually(() => received.length === 4)
  expect(received.toSorted()).toEqual(['a a', 'a a', 'b b', 'c c'])
  await eventually(async () => (await clients()).length === 1)
  for (const stop of stops) stop()
  await eventually(async () => (await clients()).length === 0)
})

it('a follower that begins at an earlier position receives the entries since then, and the others receive none twice', async () => {
  const { base, redis, follower, received, listener } = await setup()
  const first = (await redis.xadd(base, '*', 'n', '1')) ?? ''
  await redis.xadd(base, '*', 'n', '2')
  follower.follow(base, first, listener('late'), KEPT)
  await eventually(() => received.length === 1)
  follower.follow(base, '0-0', listener('early'), KEPT)
  await redis.xadd(base, '*', 'n', '3')
  await eventually(() => received.length === 5)
  expect(received.filter((each) => each.startsWith('late'))).toEqual(['late 2', 'late 3'])
  expect(received.filter((each) => each.startsWith('early'))).toEqual(['early 1', 'early 2', 'early 3'])
})

it('a follower whose connection was lost continues after the last entry, and is notified', async () => {
  const { base, redis, follower, received, listener, disconnect } = await setup()
  follower.follow(base, '0-0', listener('a'), KEPT)
  await redis.xadd(base, '*', 'n', '1')
  await eventually(() => received.length === 1)
  await disconnect()
  await redis.xadd(base, '*', 'n', '2')
  await eventually(() => received.includes('a 2'))
  expect(received.filter((each) => each !== 'a reconnected')).toEqual(['a 1', 'a 2'])
})

/** Adds this many entries in one step, and returns their ids. */
async function addAll(redis: Redis, key: string, count: number): Promise<readonly string[]> {
  const transaction = redis.multi()
  for (let n = 1; n <= count; n++) transaction.xadd(key, '*', 'n', n)
  return ((await transaction.exec()) ?? []).map(([, id]) => String(id))
}

it.each([3_000, 200])(
  'a follower learns that some of %i entries were dropped before it has read them',
  async (count) => {
    const { base, redis, follower, received, listener } = await setup()
    const [position = ''] = await addAll(redis, base, count)
    await redis.xtrim(base, 'MAXLEN', count / 2)
    follower.follow(base, position, listener('a'), KEPT)
    await eventually(() => received.length === 1 + count / 2)
    expect(received.slice(0, 2)).toEqual(['a trimmed', `a ${1 + count / 2}`])
  },
)

it('a follower learns that a few entries were dropped while it was disconnected', async () => {
  const { base, redis, follower, received, listener, disconnect } = await setup({ reconnectAfterMs: 500 })
  follower.follow(base, '0-0', listener('a'), KEPT)
  await addAll(redis, base, 1)
  await eventually(() => received.length === 1)
  await disconnect()
  const [, , oldest = ''] = await addAll(redis, base, 4)
  await redis.xtrim(base, 'MINID', oldest)
  await eventually(() => received.includes('a 4'))
  expect(received.filter((each) => each !== 'a reconnected')).toEqual(['a 1', 'a trimmed', 'a 3', 'a 4'])
})

it('a follower of a stream that keeps few entries learns that some were dropped before it has read them', async () => {
  const { base, redis, follower, received, listener } = await setup()
  const [position = ''] = await addAll(redis, base, 20)
  await redis.xtrim(base, 'MAXLEN', 10)
  follower.follow(base, position, listener('a'), 10)
  await eventually(() => received.includes('a 20'))
  expect(received.slice(0, 2)).toEqual(['a trimmed', 'a 11'])
})

it('a follower is not notified of dropped entries that it has read', async () => {
  const { base, redis, follower, received, listener, disconnect } = await setup({ reconnectAfterMs: 500 })
  const [newest = ''] = await addAll(redis, base, 1)
  await redis.xtrim(base, 'MAXLEN', 0)
  follower.follow(base, newest, listener('a'), KEPT)
  await disconnect()
  await addAll(redis, base, 200)
  await eventually(() => received.length === 201)
  await redis.xtrim(base, 'MAXLEN', 0)
  await eventually(async () => received.includes('a reconnected'))
  await addAll(redis, base, 200)
  await eventually(() => received.length === 401)
  expect(received).not.toContain('a trimmed')
})

it('a follower whose entries Redis has lost goes on with the entries that follow', async () => {
  const { base, redis, follower, received, listener, disconnect } = await setup()
  follower.follow(base, '9000000000000-0', listener('a'), KEPT)
  await redis.xadd(base, '1-0', 'n', 'old')
  await disconnect()
  await eventually(() => received.includes('a reset'))
  await redis.xadd(base, '2-0', 'n', 'new')
  await eventually(() => received.includes('a new'))
  expect(received).not.toContain('a old')
})

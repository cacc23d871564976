// A stream of events on a real Redis: its pages.
import { randomUUID } from 'node:crypto'
import { STREAM_START } from '@bullpen/engine/internal'
import { Redis } from 'ioredis'
import { expect, inject, it, onTestFinished } from 'vitest'
import { openStreamFollower } from '../redis/stream-follower.ts'
import { silent } from '../setup.fixture.ts'
import { eventStream } from './event-stream.ts'

it('entries that cannot be decoded are left out, and the pages after them are read', async () => {
  const redis = new Redis(inject('redisUrl'))
  const follower = openStreamFollower({ redis, connect: () => new Redis(inject('redisUrl')), log: silent })
  onTestFinished(() => {
    follower.close()
    redis.disconnect()
  })
  const key = `t-${randomUUID().slice(0, 12)}`
  const event = (n: number) => ['id', `q-${n}`, 'event', JSON.stringify({ type: 'enqueued', task: 'a.b' })]
  await redis.xadd(key, '1-0', ...event(1))
  await redis.xadd(key, '2-0', 'event', 'from a later version')
  await redis.xadd(key, '3-0', ...event(3))
  const stream = eventStream({ redis, key, follower, call: (run) => run() })
  const first = await stream.read(STREAM_START, 2)
  expect([first.events.map(({ id }) => id), first.next]).toEqual([['1-0'], '2-0'])
  const last = await stream.read('2-0', 2)
  expect([last.events.map(({ id }) => id), last.next]).toEqual([['3-0'], undefined])
})

// Commands of one turn of the event loop: how they are written, in which order, and what each of them is answered.
import { randomUUID } from 'node:crypto'
import { eventually, faultProxy } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { describe, expect, inject, it, onTestFinished, vi } from 'vitest'
import { type JoinedUntil, joinWrites } from './joined-writes.ts'
import { RECONNECTING } from './redis-client.ts'

async function joined(until: JoinedUntil = 'turn') {
  const proxy = await faultProxy(inject('redisUrl'))
  const redis = new Redis(proxy.url, RECONNECTING)
  redis.on('error', () => {})
  joinWrites(redis, until)
  onTestFinished(async () => {
    redis.disconnect()
    await proxy.close()
  })
  await eventually(() => redis.status === 'ready')
  return { proxy, redis, key: `t-${randomUUID()}` }
}

/** What Node passes to the system: each call is one write. */
function writesOf({ stream }: Redis): { readonly alone: () => number; readonly together: () => number[] } {
  const one = vi.spyOn(stream, '_write')
  const several = vi.spyOn(stream as Required<typeof stream>, '_writev')
  return {
    alone: () => one.mock.calls.length,
    together: () => several.mock.calls.map(([chunks]) => chunks.length),
  }
}

describe('the commands of one turn', () => {
  it('are written together', async () => {
    const { redis, key } = await joined()
    const writes = writesOf(redis)
    const sets = [1, 2, 3].map((n) => redis.set(key, n))
    const after = Promise.resolve().then(() => redis.get(key))
    expect([writes.alone(), writes.together()]).toEqual([0, []])
    expect([await Promise.all(sets), await after]).toEqual([['OK', 'OK', 'OK'], '3'])
    expect([writes.alone(), writes.together()]).toEqual([0, [4]])
    // The next turn is not held back by the last one.
    expect(await redis.get(key)).toBe('3')
    expect([writes.alone(), writes.together()]).toEqual([1, [4]])
  })

  it('are written in groups of five, so that Redis can begin before the turn ends', async () => {
    const { redis, key } = await joined()
    const writes = writesOf(redis)
    const replies = Array.from({ length: 12 }, (_, n) => redis.rpush(key, n))
    expect([writes.alone(), writes.together()]).toEqual([0, [5, 5]])
    expect(await Promise.all(replies)).toEqual(Array.from({ length: 12 }, (_, n) => n + 1))
    expect([writes.alone(), writes.together()]).toEqual([0, [5, 5, 2]])
    // The groups of the next turn are complete again.
    await Promise.all(Array.from({ length: 6 }, (_, n) => redis.rpush(key, n)))
    expect([writes.alone(), writes.together()]).toEqual([1, [5, 5, 2, 5]])
  })

  it('are written at once with one that is large, such as a batch of ends', async () => {
    const { redis, key } = await joined()
    const writes = writesOf(redis)
    const replies = [redis.set(key, 'small'), redis.set(key, 'x'.repeat(3_000))]
    expect([writes.alone(), writes.together()]).toEqual([0, [2]])
    replies.push(redis.set(key, 'last'))
    expect(await Promise.all(replies)).toEqual(['OK', 'OK', 'OK'])
    expect([writes.alone(), writes.together()]).toEqual([1, [2]])
  })

  it.each([
    ['turn', 0],
    ['callback', 1],
  ] as const)('are held back until the end of the %s', async (until, writtenBefore) => {
    const { redis, key } = await joined(until)
    const writes = writesOf(redis)
    const nextCallback = Promise.withResolvers<number>()
    setImmediate(() => {
      // Two steps of promises belong to the same callback.
      void Promise.resolve()
        .then(() => undefined)
        .then(() => redis.set(key, 1))
    })
    setImmediate(() => nextCallback.resolve(writes.alone()))
    expect(await nextCallback.promise).toBe(writtenBefore)
    expect(await redis.get(key)).toBe('1')
  })

  it('of one callback are written together', async () => {
    const { redis, key } = await joined('callback')
    const writes = writesOf(redis)
    const first = Promise.resolve().then(() => redis.set(key, 1))
    const second = Promise.resolve()
      .then(() => undefined)
      .then(() => redis.get(key))
    expect([await first, await second]).toEqual(['OK', '1'])
    expect([writes.alone(), writes.together()]).toEqual([0, [2]])
  })

  it('are executed in the order in which they were sent, also over several turns', async () => {
    const { redis, key } = await joined()
    const sent: string[] = []
    const push = async (caller: number): Promise<void> => {
      for (let n = 0; n < 50; n++) {
        sent.push(`${caller}.${n}`)
        const reply = redis.rpush(key, `${caller}.${n}`)
        if ((caller + n) % 3 === 0) await reply
        else if ((caller + n) % 3 === 1) await new Promise(setImmediate)
      }
    }
    await Promise.all([0, 1, 2, 3, 4].map(push))
    expect(await redis.lrange(key, 0, -1)).toEqual(sent)
  })

  it('fail one by one', async () => {
    const { redis, key } = await joined()
    await redis.set(key, 'x')
    const replies = await Promise.allSettled([
      redis.get(key),
      redis.incr(key),
      redis.eval('return redis.error_reply("ERR of the script")', 0),
      redis.multi().get(key).incr(key).exec(),
      redis.get(key),
    ])
    expect(replies).toMatchObject([
      { value: 'x' },
      { reason: { message: expect.stringContaining('not an integer') } },
      { reason: { message: expect.stringContaining('ERR of the script') } },
      {
        value: [[null, 'x'], [expect.any(Error)]],
      },
      { value: 'x' },
    ])
  })

  it('are sent again, in order, if the connection is lost before the turn ends', async () => {
    const { redis, key } = await joined()
    const replies = ['a', 'b', 'c'].map((text) => redis.rpush(key, text))
    redis.stream.destroy()
    expect(await Promise.all(replies)).toEqual([1, 2, 3])
    expect(await redis.lrange(key, 0, -1)).toEqual(['a', 'b', 'c'])
  })

  it('reach Redis if the client is closed before the turn ends', async () => {
    const { redis, key } = await joined()
    const reply = redis.set(key, 'x').catch(() => {})
    redis.disconnect()
    await reply
    const other = new Redis(inject('redisUrl'))
    onTestFinished(() => other.disconnect())
    await eventually(async () => (await other.get(key)) === 'x')
  })
})

// The time that a connection's commands may take, with a Redis whose replies do not arrive.
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { eventually, faultProxy } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { afterEach, describe, expect, inject, it, onTestFinished, vi } from 'vitest'
import { limitCommands } from './command-timeouts.ts'
import { RECONNECTING } from './redis-client.ts'

const LIMIT_MS = 200
/** Longer than Redis takes for a reply on a busy machine. */
const AMPLE_MS = 60_000

afterEach(() => vi.restoreAllMocks())

async function limited(ms = LIMIT_MS) {
  const proxy = await faultProxy(inject('redisUrl'))
  const redis = new Redis(proxy.url, RECONNECTING)
  redis.on('error', () => {})
  limitCommands(redis, ms)
  onTestFinished(async () => {
    redis.disconnect()
    await proxy.close()
  })
  await eventually(() => redis.status === 'ready')
  return { proxy, redis, key: `t-${randomUUID()}` }
}

/** Returns the time that the promise took, in ms, and its error, if any. */
async function timed(reply: Promise<unknown>) {
  const startedAt = performance.now()
  const error = await reply.then(
    () => undefined,
    ({ message }: Error) => message,
  )
  return { error, tookMs: performance.now() - startedAt }
}

describe('a command', () => {
  it('is rejected when its time has passed, and not before, if Redis hangs', async () => {
    const { redis, proxy, key } = await limited()
    proxy.cutAnswers()
    const ends: number[] = []
    const replies: Promise<unknown>[] = []
    for (const n of [0, 1, 2]) {
      const reply = timed(redis.get(key)).then(({ error, tookMs }) => {
        ends.push(n)
        return { error, isEarly: tookMs < LIMIT_MS }
      })
      replies.push(reply)
      await new Promise(setImmediate)
    }
    expect(await Promise.all(replies)).toEqual(Array(3).fill({ error: 'Command timed out', isEarly: false }))
    expect(ends).toEqual([0, 1, 2])
  })

  it('is not sent again after its caller has received an error', async () => {
    const { redis, proxy, key } = await limited()
    proxy.cutAnswers()
    expect(await timed(redis.rpush(key, 'late'))).toMatchObject({ error: 'Command timed out' })
    const other = new Redis(inject('redisUrl'))
    onTestFinished(() => other.disconnect())
    await eventually(() => other.llen(key))
    const lost = once(redis, 'close')
    proxy.reset()
    await lost
    await eventually(() => redis.status === 'ready')
    expect(await other.lrange(key, 0, -1)).toEqual(['late'])
  })

  it('gets its own reply after commands that timed out', async () => {
    const { redis, proxy, key } = await limited()
    proxy.cutAnswers()
    const late = await Promise.all(['a', 'b'].map((text) => timed(redis.rpush(key, text))))
    expect(late.map(({ error }) => error)).toEqual(['Command timed out', 'Command timed out'])
    proxy.mend()
    // On a busy machine, Redis may take longer than the limit, and the commands are then sent again.
    const replies = await eventually(() => Promise.all([redis.lrange(key, 0, -1), redis.llen(key), redis.echo('c')]))
    expect(replies).toEqual([['a', 'b'], 2, 'c'])
  })

  it('that is sent again after a lost connection keeps its first limit, and is answered', async () => {
    const { redis, proxy, key } = await limited(AMPLE_MS)
    proxy.cutAnswers()
    const reply = redis.set(key, 'x')
    proxy.reset()
    expect(await reply).toBe('OK')
  })

  it('that fails does not affect the commands around it', async () => {
    const { redis, key } = await limited(AMPLE_MS)
    await redis.set(key, 'x')
    const replies = await Promise.allSettled([redis.get(key), redis.incr(key), redis.get(key)])
    expect(replies.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  })
})

it('many commands share a timer', async () => {
  const { redis, key } = await limited(AMPLE_MS)
  const timers = vi.spyOn(globalThis, 'setTimeout')
  for (let turn = 0; turn < 30; turn++) await Promise.all(Array.from({ length: 100 }, () => redis.get(key)))
  expect(timers.mock.calls.filter(([, ms = 0]) => ms > 50_000).length).toBeLessThanOrEqual(1)
})

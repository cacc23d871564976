import type { TaskId } from '@bullpen/contract'
import { privateRedis } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { COMMAND_TIMEOUT_MS } from './connection.ts'
import { monitorCommands } from './redis/command-monitor.fixture.ts'
import { long, setup, short } from './setup.fixture.ts'

describe('a caller that waits for the end of a task', () => {
  it('is woken by the event, without the recheck', async () => {
    const server = await privateRedis()
    await server.start()
    const result = Promise.withResolvers<{ n: number }>()
    const { enqueue, startPool, broker } = await setup({ redisUrl: server.url, handle: () => result.promise })
    const id = await enqueue(long)
    await startPool()
    const redis = new Redis(server.url)
    onTestFinished(() => redis.disconnect())
    // The recheck is an interval, so that it never comes.
    vi.useFakeTimers({ toFake: ['setInterval'] })
    onTestFinished(() => void vi.useRealTimers())
    const waiting = broker.waitUntilFinished(id, new AbortController().signal)
    await eventually(async () => String(await redis.client('LIST')).includes('cmd=xread'))
    result.resolve({ n: 1 })
    expect(await waiting).toMatchObject({ status: 'completed' })
  })

  it('gets a task that has ended, one that does not exist, and one whose wait is already over, without an event', async () => {
    const { enqueue, startPool, broker, settled } = await setup()
    const [waiting, ended] = [await enqueue(short, { delayMs: 3_600_000 }), await enqueue(short)]
    const pool = await startPool()
    await settled(ended)
    await pool.drain({ drainMs: 1_000, graceMs: 1_000 })
    const signal = new AbortController().signal
    expect(await broker.waitUntilFinished(ended, signal)).toMatchObject({ status: 'completed' })
    expect(await broker.waitUntilFinished(`${waiting.slice(0, -1)}0` as TaskId, signal)).toBeUndefined()
    expect(await broker.waitUntilFinished(waiting, AbortSignal.abort())).toMatchObject({ status: 'scheduled' })
  })

  it('reads the whole task only when it may have ended', async () => {
    const server = await privateRedis()
    await server.start()
    const { enqueue, startPool, broker } = await setup({ redisUrl: server.url })
    const id = await enqueue(short)
    const redis = new Redis(server.url)
    onTestFinished(() => redis.disconnect())
    const seen: string[] = []
    const monitor = await monitorCommands(redis, ([command = '', key = '']) => {
      seen.push(`${command.toLowerCase()} ${key.slice(key.lastIndexOf(':') + 1)}`)
    })
    onTestFinished(() => monitor.close())
    const waiting = broker.waitUntilFinished(id, new AbortController().signal)
    await eventually(async () => String(await redis.client('LIST')).includes('cmd=xread'))
    await eventually(async () => (await redis.info('commandstats')).includes('cmdstat_zscore'))
    await redis.echo('now')
    await eventually(() => seen.includes('echo now'))
    expect(seen).not.toContain(`hgetall ${id}`)
    await startPool()
    expect(await waiting).toMatchObject({ status: 'completed' })
    await eventually(() => seen.includes(`hgetall ${id}`))
  })

  it('is refused when Redis does not answer for 800 ms, and succeeds when it does again', async () => {
    const server = await privateRedis()
    await server.start()
    const { enqueue, settled, startPool } = await setup({ redisUrl: server.url, commandTimeoutMs: COMMAND_TIMEOUT_MS })
    const id = await eventually(() => enqueue(short, { input: { n: 4 } }))
    server.freeze()
    const message = expect.stringMatching(/did not respond within 800 ms$/)
    await expect(settled(id)).rejects.toMatchObject({ code: 'redis_unavailable', message })
    server.thaw()
    await startPool()
    expect(await eventually(() => settled(id).catch(() => undefined))).toMatchObject({ output: { n: 4 } })
  })
})

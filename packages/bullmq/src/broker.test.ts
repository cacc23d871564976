import { privateRedis } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { describe, expect, it } from 'vitest'
import { long, setup, short } from './setup.fixture.ts'

describe('a caller that waits for the end of a task', () => {
  it('is woken by the event, not by the recheck', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const { enqueue, startPool, settled } = await setup({ handle: () => promise.then(() => ({ n: 1 })) })
    const id = await enqueue(long)
    await startPool()
    const latencies: number[] = []
    const waiting = settled(id).then(() => latencies.push(performance.now()))
    await new Promise((wait) => setTimeout(wait, 300))
    const ended = performance.now()
    resolve()
    await waiting
    expect((latencies[0] ?? Number.NaN) - ended).toBeLessThan(500)
  })

  it('is refused within a second when Redis does not answer, and succeeds when it does again', async () => {
    const server = await privateRedis()
    await server.start()
    const { enqueue, settled, startPool } = await setup({ redisUrl: server.url })
    const id = await enqueue(short, { input: { n: 4 } })
    server.freeze()
    const began = performance.now()
    await expect(settled(id)).rejects.toMatchObject({ code: 'redis_unavailable' })
    expect(performance.now() - began).toBeLessThan(1_000)
    server.thaw()
    await startPool()
    expect(await eventually(() => settled(id).catch(() => undefined))).toMatchObject({ output: { n: 4 } })
  })
})

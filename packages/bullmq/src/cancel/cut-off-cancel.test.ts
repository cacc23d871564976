// A cancel of a task whose process is cut off from Redis at that moment: kept, and heard of when either is back.
import { faultProxy } from '@bullpen/testkit'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { long, rig } from '../setup.fixture.ts'

const LOCKS = { lockMs: 3_000, renewalMs: 500, stallCheckMs: 500 }

/** A pool at work on a task that listens, and cut off since. */
async function cutOff() {
  const proxy = await faultProxy(inject('redisUrl'))
  onTestFinished(() => proxy.close())
  const signals: unknown[] = []
  const begun = Promise.withResolvers<void>()
  const handle = ({ signal }: { readonly signal: AbortSignal }): Promise<{ n: number }> =>
    new Promise((_, reject) => {
      begun.resolve()
      signal.addEventListener('abort', () => {
        signals.push(signal.reason)
        reject(signal.reason)
      })
    })
  const stage = await rig({ handle, locks: LOCKS, concurrency: 1 })
  await stage.startPool(proxy.url)
  const id = await stage.enqueue(long)
  // Redis says that it is active before the pool has heard of it.
  await begun.promise
  proxy.cut()
  return { ...stage, proxy, id, signals }
}

describe('a cancel of a task whose process is cut off', () => {
  it('for less than its lock holds reaches the handler when it is back', async () => {
    const { proxy, broker, id, signals, settled } = await cutOff()
    expect(await broker.cancel(id, { stoppable: true })).toBe('cancelling')
    expect(signals).toEqual([])
    proxy.mend()
    expect(await settled(id)).toMatchObject({
      status: 'cancelled',
      fencingToken: 1,
      attempts: [{ fencingToken: 1, state: 'TERMINATED_STOP_SIGNAL', reason: 'cancelled' }],
    })
    expect(signals).toHaveLength(1)
  })

  it('for longer is carried out by whoever takes the task over: it is not started again', async () => {
    const { broker, id, signals, settled, startPool, events } = await cutOff()
    expect(await broker.cancel(id, { stoppable: true })).toBe('cancelling')
    await startPool()
    expect(await settled(id)).toMatchObject({
      status: 'cancelled',
      attempts: [{ fencingToken: 0, reason: 'cancelled' }],
    })
    // The watchdog has told the handler before anybody else could have the task.
    expect(signals).toHaveLength(1)
    expect(events.filter((event) => event.event === 'attempt.ended' && event.verdict === 'completed')).toEqual([])
  })
})

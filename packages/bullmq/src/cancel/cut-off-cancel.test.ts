// A cancel of a task whose worker is cut off from Redis at that moment is stored, and delivered when the worker is back.
import { faultProxy } from '@bullpen/testkit'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { long, setup } from '../setup.fixture.ts'

/** The first lock outlasts every test. The second one expires in a test, but not while a busy machine is paused for 5 s. */
const LASTING_MS = 600_000
const EXPIRING_MS = 8_000

/** A pool that runs a task whose handler listens to its signal, and that was cut off since. */
async function cutOff(lockMs: number) {
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
  const all = await setup({ handle, locks: { lockMs, renewalMs: 500 }, roundMs: 500, concurrency: 1 })
  await all.startPool(proxy.url)
  const id = await all.enqueue(long)
  // Redis shows the task as active before the pool has received it.
  await begun.promise
  proxy.cut()
  return { ...all, proxy, id, signals }
}

describe('a cancel of a task whose worker is cut off', () => {
  it('for less than the lock lasts reaches the handler when the worker is back', async () => {
    const { proxy, broker, id, signals, settled } = await cutOff(LASTING_MS)
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

  it('for longer is executed by the worker that takes the task over, without starting it', async () => {
    const { broker, id, signals, settled, startPool, events } = await cutOff(EXPIRING_MS)
    expect(await broker.cancel(id, { stoppable: true })).toBe('cancelling')
    await startPool()
    expect(await settled(id)).toMatchObject({
      status: 'cancelled',
      attempts: [
        { fencingToken: 1, reason: 'process_lost' },
        { fencingToken: 0, reason: 'cancelled' },
      ],
    })
    // The handler was signalled before another worker could have the task.
    expect(signals).toHaveLength(1)
    expect(events.filter((event) => event.event === 'attempt.ended' && event.verdict === 'completed')).toEqual([])
  })
})

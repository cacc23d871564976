// Tests the states of a pool's entry: started, held, drained, replaced and closed with the worker.
import type { DrainReport } from '@bullpen/engine'
import type { Pool } from '@bullpen/engine/internal'
import { describe, expect, it } from 'vitest'
import { POOL_ENTRY_TRANSITIONS, PoolEntry } from './pool-supervisor.ts'

const HARD = { drainMs: 0, graceMs: 0 }
const CAUSE = { by: 'command', command: 'c1' } as const

function newEntry() {
  const calls: string[] = []
  const drains: PromiseWithResolvers<DrainReport>[] = []
  const observed = new Set<Pool>()
  const entry = new PoolEntry({
    queue: 'cpu',
    concurrency: 2,
    log: { debug() {}, info() {}, warn() {}, error() {} },
    createPool(_, concurrency) {
      const drained = Promise.withResolvers<DrainReport>()
      drains.push(drained)
      const number = drains.length
      const record = (what: string) => void calls.push(`${what} ${number}`)
      const pool = {
        start: async () => record('start'),
        drain() {
          record('drain')
          return drained.promise
        },
        resume: () => record('resume'),
        resize: () => record('resize'),
        status: () => ({ queue: 'cpu', concurrency }),
      }
      // The methods that the supervisor calls. The others would throw.
      return pool as unknown as Pool
    },
    observe(pool) {
      observed.add(pool)
      return () => observed.delete(pool)
    },
  })
  const report: DrainReport = {
    queue: 'cpu',
    finished: 0,
    requeued: 0,
    failed: 0,
    abandoned: [],
    unconfirmed: [],
    slowestTaskMs: 0,
  }
  return {
    entry,
    calls,
    observed,
    start: () => entry.start((pool) => pool.start()),
    /** Finishes the drain of the newest pool. */
    async finishDrain() {
      drains.at(-1)?.resolve(report)
      await new Promise((resolve) => setImmediate(resolve))
    },
  }
}

describe('the entry of a pool', () => {
  it('replaces a drained pool when it is resumed', async () => {
    const { entry, calls, start, finishDrain, observed } = newEntry()
    await start()
    entry.drain(HARD, CAUSE)
    expect(entry.state).toBe('draining')
    await finishDrain()
    expect(entry.state).toBe('drained')
    expect(entry.status()).toMatchObject({ notReady: 'drained by command', concurrency: 2 })
    expect(entry.resume()).toBe('now')
    expect(entry.state).toBe('running')
    expect(calls).toEqual(['start 1', 'drain 1', 'start 2'])
    expect([...observed]).toEqual([entry.pool])
  })

  it('replaces a pool that still drains when it has drained', async () => {
    const { entry, calls, start, finishDrain } = newEntry()
    await start()
    entry.drain(HARD, CAUSE)
    expect(entry.resume()).toBe('later')
    expect(entry.resume()).toBe('later')
    entry.resize(5)
    expect(entry.state).toBe('replacing')
    await finishDrain()
    expect(entry.state).toBe('running')
    expect(entry.status().concurrency).toBe(5)
    expect(calls).toEqual(['start 1', 'drain 1', 'start 2'])
  })

  it('stays drained when it is drained again before it was replaced', async () => {
    const { entry, start, finishDrain } = newEntry()
    await start()
    entry.drain(HARD, CAUSE)
    entry.resume()
    entry.drain(HARD, CAUSE)
    await finishDrain()
    expect(entry.state).toBe('drained')
  })

  it('holds a pool that was drained before the worker started', async () => {
    const { entry, calls, start } = newEntry()
    entry.drain(HARD, CAUSE)
    expect(start()).toBeUndefined()
    expect(entry.state).toBe('held')
    expect(entry.resume()).toBe('now')
    expect(entry.state).toBe('running')
    expect(calls).toEqual(['start 1'])
  })

  it('closes with the worker, and is neither resumed nor replaced then', async () => {
    const { entry, calls, start, finishDrain } = newEntry()
    await start()
    entry.drain(HARD, CAUSE)
    const report = entry.close(HARD)
    expect(entry.state).toBe('closing')
    expect(() => entry.resume()).toThrow(
      expect.objectContaining({
        code: 'wrong_state',
        message: "the pool for queue 'cpu' is closing: the worker is draining",
      }),
    )
    await finishDrain()
    expect(await report).toMatchObject({ queue: 'cpu' })
    expect(entry.state).toBe('closed')
    expect(calls).toEqual(['start 1', 'drain 1', 'drain 1'])
  })

  it('is not reported again when it had drained before the worker', async () => {
    const { entry, start, finishDrain } = newEntry()
    await start()
    entry.drain(HARD, CAUSE)
    await finishDrain()
    expect(entry.close(HARD)).toBeUndefined()
    expect(entry.state).toBe('closed')
  })

  it('reaches every state of its table', () => {
    const reachable = new Set(['new', ...Object.values(POOL_ENTRY_TRANSITIONS).flat()])
    expect([...reachable].sort()).toEqual(Object.keys(POOL_ENTRY_TRANSITIONS).sort())
  })
})

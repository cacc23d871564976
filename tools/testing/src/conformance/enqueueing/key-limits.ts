// Limits of how many tasks of each concurrency key run at once, and of how many start per period.
import { TaskError, type TaskId } from '@bullpen/contract'
import { eventually } from '@bullpen/testkit'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { OpenBackend } from '../backend.ts'
import { gate, long, openSetup, short } from '../setup.ts'

const HOUR = 3_600_000

interface Planned {
  readonly key: 'a' | 'b' | 'c'
  readonly how: 'return' | 'return later' | 'throw' | 'snooze'
  readonly priority: number
}

const planned: fc.Arbitrary<Planned> = fc.record({
  key: fc.constantFrom('a', 'b', 'c'),
  how: fc.constantFrom('return', 'return later', 'throw', 'snooze'),
  priority: fc.nat({ max: 2 }),
})

/** Notes how many tasks of each key run, and the highest of these numbers. */
function ledger() {
  const running = new Map<string, number>()
  const most = new Map<string, number>()
  return {
    most,
    enter(key: string): () => void {
      const now = (running.get(key) ?? 0) + 1
      running.set(key, now)
      most.set(key, Math.max(most.get(key) ?? 0, now))
      return () => running.set(key, (running.get(key) ?? 0) - 1)
    },
  }
}

export function keyLimits(open: OpenBackend): void {
  it('a key runs as many tasks at once as its limit says, and neither other keys nor tasks without a key wait', async () => {
    const { entered, handle, open: release, holds } = gate()
    const limits = { concurrency: 1, keys: { wide: { concurrency: 3 }, stopped: { concurrency: 0 } } }
    const setup = await openSetup(open, { concurrency: 20, handle, keyLimits: limits })
    const { backend, enqueue, start, find, settled } = setup
    const ids: Record<string, TaskId[]> = {}
    for (const key of ['stopped', 'small', 'wide', '']) {
      ids[key] = []
      for (let i = 0; i < 4; i++) ids[key].push(await enqueue(long, {}, key === '' ? {} : { concurrencyKey: key }))
    }
    const { small = [], wide = [], stopped = [], '': others = [] } = ids
    await start()
    await holds(8)
    expect(entered.toSorted()).toEqual([...small.slice(0, 1), ...wide.slice(0, 3), ...others].toSorted())
    for (const [task, ahead] of [
      [small[2], 1],
      [wide[3], 0],
      [stopped[3], 3],
    ] as const) {
      // The task may not have been looked at yet.
      const waits = await eventually(async () => {
        const { waitsFor } = await find(task as TaskId)
        return waitsFor?.kind === 'concurrency' && waitsFor
      })
      expect(waits).toEqual({ kind: 'concurrency', ahead })
    }
    release()
    for (const id of [...small, ...wide, ...others]) expect((await settled(id))?.status).toBe('completed')
    expect((await find(stopped[0] as TaskId)).status).toBe('waiting')
    // A limit that is set at run time replaces that of the catalogue until it is removed.
    await backend.limitKeys({ concurrency: 2 }, 'stopped')
    for (const id of stopped) expect((await settled(id))?.status).toBe('completed')
    await backend.limitKeys({ concurrency: 'none' }, 'stopped')
    const last = await enqueue(long, {}, { concurrencyKey: 'stopped' })
    await eventually(async () => (await find(last)).waitsFor?.kind === 'concurrency')
  })

  it('a key starts as many tasks at once as the burst of its rate says, and the next one when its rate allows it', async () => {
    const rate = { max: 1, perMs: HOUR, burst: 3 }
    const { backend, enqueue, start, find, settled } = await openSetup(open, { keyLimits: { rate, keys: {} } })
    const ids: TaskId[] = []
    for (let i = 0; i < 5; i++) ids.push(await enqueue(short, {}, { concurrencyKey: 'a' }))
    const [fourth = expect.fail(), fifth = expect.fail()] = ids.slice(3)
    const before = Date.now()
    await start()
    for (const id of ids.slice(0, 3)) expect((await settled(id))?.status).toBe('completed')
    const { until = 0, ahead } = await eventually(async () => {
      const { waitsFor } = await find(fifth)
      return waitsFor?.kind === 'rate' && waitsFor
    })
    expect(ahead).toBe(1)
    expect(until - before).toBeGreaterThan(HOUR - 1_000)
    expect((await settled(await enqueue(short, {}, { concurrencyKey: 'b' })))?.status).toBe('completed')
    await backend.limitKeys({ rate: { max: 20, perMs: 1_000, burst: 1 } })
    // An idle worker starts the fifth when its time has come.
    for (const id of [fourth, fifth]) expect((await settled(id))?.status).toBe('completed')
  })

  it('a key at its limit starts its next task when one ends in another worker', async () => {
    const { entered, handle, open: release, holds } = gate()
    const { enqueue, pool, settled } = await openSetup(open, { handle, keyLimits: { concurrency: 1, keys: {} } })
    const [first, second] = [pool('test:1'), pool('test:2')]
    await first.start()
    const a = { concurrencyKey: 'a' }
    const ids = [await enqueue(long, {}, a), await enqueue(long, {}, a)]
    await holds(1)
    await second.start()
    // The first worker starts nothing more.
    const drained = first.drain({ drainMs: 5_000, graceMs: 1_000 })
    release()
    for (const id of ids) expect((await settled(id))?.status).toBe('completed')
    expect(entered).toEqual(ids)
    await drained
  })

  it('the tasks of a killed worker no longer count against the limits of their keys once they are recovered', async () => {
    const { entered, handle, open: release, holds } = gate()
    const limits = { concurrency: 2, keys: {} }
    const setup = await openSetup(open, { handle, locks: 'quick', keyLimits: limits })
    const { backend, enqueue, start, settled } = setup
    const ids: TaskId[] = []
    for (let i = 0; i < 4; i++) ids.push(await enqueue(long, {}, { concurrencyKey: 'a' }))
    await start('test:1')
    await holds(2)
    await start('test:2')
    await backend.kill('test:1', ids.slice(0, 2))
    // The handlers of the killed worker hold until the end. The others may run one by one, because their worker has died.
    await eventually(() => entered.length > 2)
    release()
    for (const id of ids) expect((await settled(id))?.status).toBe('completed')
  })

  it('random tasks never exceed the limits of their keys, however their attempts end, and all of them end', async () => {
    const limits = { concurrency: 1, keys: { b: { concurrency: 2 }, c: { concurrency: 3 } } }
    const run = async (tasks: readonly Planned[]): Promise<void> => {
      const { most, enter } = ledger()
      const { enqueue, start, settled, drain } = await openSetup(open, {
        keyLimits: limits,
        async handle({ input, fencingToken, snooze }) {
          const { key = '', how } = tasks[input.n] ?? {}
          const leave = enter(key)
          await new Promise((resolve) => setTimeout(resolve, how === 'return later' ? 5 : 0))
          leave()
          if (how === 'throw' && fencingToken === 1) throw new TaskError('busy', 'not now')
          if (how === 'snooze' && fencingToken === 1) return snooze('5ms')
          return input
        },
      })
      await start('test:1')
      await start('test:2')
      const ids: TaskId[] = []
      for (const [n, { key, priority }] of tasks.entries()) {
        ids.push(await enqueue(long, { n }, { concurrencyKey: key, priority }))
      }
      for (const id of ids) expect((await settled(id))?.status).toBe('completed')
      for (const [key, count] of most) expect(count).toBeLessThanOrEqual({ a: 1, b: 2, c: 3 }[key] ?? 0)
      await drain()
    }
    const programs = fc.array(planned, { minLength: 8, maxLength: 24 })
    await fc.assert(fc.asyncProperty(programs, run), { numRuns: 4, endOnFailure: true })
  })
}

// What tasks need of the limiters of their queue: permits, and a place among the tasks of their definition.
import { type CallOptions, TaskError, type TaskId } from '@bullpen/contract'
import type { Need } from '@bullpen/engine'
import { definitionLimiter, permitsLimiter } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import type { OpenBackend } from '../backend.ts'
import { gate, long, openSetup, type SetupOptions } from '../setup.ts'

const permits = (name: string, amount: number): Need => ({ limiter: permitsLimiter(name), amount })
const db = (amount: number): Need => permits('db', amount)
const gpu = permits('gpu', 1)
const ofDefinition: Need = { limiter: definitionLimiter(long.name), amount: 1 }

/** A queue with 3 permits for a database and 1 for a GPU. */
const CAPACITIES = { [permitsLimiter('db')]: 3, [permitsLimiter('gpu')]: 1 }

async function opened(open: OpenBackend, options: SetupOptions = {}) {
  const { handle, open: release, holds, entered } = gate()
  const setup = await openSetup(open, { concurrency: 20, handle, capacities: CAPACITIES, ...options })
  return {
    ...setup,
    ...{ release, holds, entered },
    /** Enqueues a task that needs this. */
    need: (needs: readonly Need[], call: CallOptions = {}): Promise<TaskId> =>
      setup.enqueueTask({ ...setup.create(long, {}, call), needs }),
    /** Returns what a task waits for, once it has been looked at. */
    waitsFor: (id: TaskId) =>
      eventually(async () => {
        const { waitsFor } = await setup.find(id)
        return waitsFor !== undefined && waitsFor.kind !== 'turn' && waitsFor
      }),
    async expectCompleted(ids: readonly TaskId[]): Promise<void> {
      for (const id of ids) expect((await setup.settled(id))?.status).toBe('completed')
    },
  }
}

export function permitsOfTasks(open: OpenBackend): void {
  it('a task starts when all permits that it needs are free, and those that need others do not wait for it', async () => {
    const { need, start, holds, entered, waitsFor, release, expectCompleted } = await opened(open)
    const first = await need([db(2), gpu])
    const other = await need([db(1)])
    const none = await need([])
    await start()
    await holds(3)
    const [both, third] = [await need([db(1), gpu]), await need([db(1), gpu])]
    expect(await waitsFor(both)).toEqual({ kind: 'permits', limiter: 'db', ahead: 0 })
    expect(await waitsFor(third)).toEqual({ kind: 'permits', limiter: 'db', ahead: 1 })
    expect(entered.toSorted()).toEqual([first, other, none].toSorted())
    release()
    await expectCompleted([first, other, none, both, third])
  })

  it('tasks that need few permits do not pass one that needs many', async () => {
    const ends = [1, 2, 3].map(() => Promise.withResolvers<void>())
    const entered: TaskId[] = []
    const { need, start, waitsFor, expectCompleted, settled } = await opened(open, {
      async handle({ id, input }) {
        await ends[entered.push(id) - 1]?.promise
        return input
      },
    })
    await start()
    const small = [await need([db(1)]), await need([db(1)]), await need([db(1)])]
    await eventually(() => entered.length === 3)
    const large = await need([db(3)])
    await waitsFor(large)
    const later = [await need([db(1)]), await need([db(1)])]
    for (const id of later) await waitsFor(id)
    for (const [n, end] of ends.entries()) {
      expect(entered.slice(3)).toEqual([])
      end.resolve()
      await settled(entered[n] ?? expect.fail())
    }
    await expectCompleted([...small, large, ...later])
    expect(entered[3]).toBe(large)
  })

  it('a task that needs more permits than there are holds up no others, and starts when there are enough', async () => {
    const { backend, need, start, waitsFor, release, expectCompleted, find } = await opened(open)
    release()
    const large = await need([db(4)])
    await start()
    expect(await waitsFor(large)).toEqual({ kind: 'permits', limiter: 'db', ahead: 0 })
    await expectCompleted([await need([db(3)]), await need([db(1)])])
    expect((await find(large)).status).toBe('waiting')
    await backend.limitPermits({ db: 4 })
    await expectCompleted([large])
  })

  it('permits are changed while tasks run and wait, and those of the definition apply again after that', async () => {
    const { backend, need, start, holds, release, waitsFor, expectCompleted } = await opened(open)
    await backend.limitPermits({ gpu: 2 })
    const ids = [await need([gpu]), await need([gpu]), await need([gpu])]
    await start()
    await holds(2)
    await backend.limitPermits({ gpu: 0 })
    release()
    await expectCompleted(ids.slice(0, 2))
    expect(await waitsFor(ids[2] ?? expect.fail())).toEqual({ kind: 'permits', limiter: 'gpu', ahead: 0 })
    await backend.limitPermits({ gpu: 'none' })
    await expectCompleted(ids.slice(2))
  })

  it('the cap of a definition limits how many of its tasks run at once, whatever their keys', async () => {
    const capacities = { [ofDefinition.limiter]: 2 }
    const { backend, need, start, holds, release, waitsFor, expectCompleted } = await opened(open, { capacities })
    const ids: TaskId[] = []
    for (const concurrencyKey of ['a', 'b', 'a', 'b']) ids.push(await need([ofDefinition], { concurrencyKey }))
    await start()
    await holds(2)
    for (const id of ids.slice(2)) {
      expect(await waitsFor(id)).toEqual({ kind: 'definition', limiter: long.name, ahead: 0 })
    }
    await backend.limitDefinition(long.name, 3)
    await holds(3)
    release()
    await expectCompleted(ids)
  })

  it('the limits of keys and of permits apply together, and a key that is full holds up nobody at its permits', async () => {
    const keyLimits = { concurrency: 1, keys: {} }
    const { need, start, holds, entered, release, waitsFor, expectCompleted } = await opened(open, { keyLimits })
    const a = [await need([db(1)], { concurrencyKey: 'a' }), await need([db(1)], { concurrencyKey: 'a' })]
    await start()
    await holds(1)
    expect(await waitsFor(a[1] ?? expect.fail())).toEqual({ kind: 'concurrency', ahead: 0 })
    const b = await need([db(2)], { concurrencyKey: 'b' })
    await holds(2)
    expect(entered).toEqual([a[0], b])
    release()
    await expectCompleted([...a, b])
  })

  it('the permits of a cancelled task that has waited first are free for those behind it', async () => {
    const { broker, need, start, holds, release, waitsFor, expectCompleted, reaches } = await opened(open)
    const first = await need([db(2)])
    await start()
    await holds(1)
    const large = await need([db(2)])
    await waitsFor(large)
    const small = await need([db(1)])
    await waitsFor(small)
    expect(await broker.cancel(large, { stoppable: false })).toBe('cancelled')
    await reaches(small, 'active')
    release()
    await expectCompleted([first, small])
  })

  it('the permits of a killed worker come back with its tasks, and a failed attempt gives its permits back', async () => {
    const held = Promise.withResolvers<void>()
    const entered: TaskId[] = []
    const { backend, need, start, expectCompleted } = await opened(open, {
      locks: 'quick',
      async handle({ id, input, fencingToken }) {
        if (entered.push(id) <= 3) await held.promise
        if (fencingToken === 1) throw new TaskError('flaky', 'not now')
        return input
      },
    })
    const ids: TaskId[] = []
    for (let n = 0; n < 5; n++) ids.push(await need([db(1)]))
    await start('test:1')
    await eventually(() => entered.length === 3)
    await start('test:2')
    await backend.kill('test:1', ids.slice(0, 3))
    await expectCompleted(ids)
    held.resolve()
  })
}

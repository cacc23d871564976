// Turns between the concurrency keys of a queue.
import { randomBytes } from 'node:crypto'
import { type CallOptions, defineSchedule, followUp, TaskError, type TaskId } from '@bullpen/contract'
import { createTaskId, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import { retryCopy } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { OpenBackend } from '../backend.ts'
import { openGroups } from '../groups/groups-setup.ts'
import { AFTER, child, gate, long, openSetup, QUEUE, short, WEIGHTS } from '../setup.ts'

/** A task of a random program. Tasks with the key '' have none. */
interface Keyed {
  readonly key: '' | 'a' | 'b' | keyof typeof WEIGHTS
  readonly priority: number
}

const keyed: fc.Arbitrary<Keyed> = fc.record({
  key: fc.constantFrom('', 'a', 'b', 'heavy', 'light'),
  priority: fc.constantFrom(0, 0, 0, 1, 5),
})

/** Returns the order in which tasks start that were all enqueued before the first one starts, as their positions. */
function orderOf(tasks: readonly Keyed[]): number[] {
  const byPriority = tasks.map((task, i) => ({ ...task, i })).sort((a, b) => a.priority - b.priority || a.i - b.i)
  const waiting = Map.groupBy(byPriority, ({ key }) => key)
  const [first] = tasks.filter(({ key }) => key !== '')
  // The others join an eighth of a turn behind the first key.
  const passes = new Map([...waiting.keys()].map((key) => [key, key === first?.key ? 0 : 0.125]))
  passes.delete('')
  let own: number | undefined
  const order: number[] = []
  const start = (key: Keyed['key']): boolean => {
    const next = waiting.get(key)?.shift()
    if (next !== undefined) order.push(next.i)
    return next !== undefined
  }
  while (order.length < tasks.length) {
    const [next] = [...passes].sort(([a, one], [b, other]) => one - other || (a < b ? -1 : 1))
    const hasOthers = (waiting.get('')?.length ?? 0) > 0
    if (next === undefined) {
      start('')
      continue
    }
    const [key, pass] = next
    const ownPass = Math.max(own ?? pass, pass - 1)
    if (hasOthers && ownPass <= pass) {
      own = ownPass + 1
      start('')
    } else if (start(key)) passes.set(key, pass + 1 / (WEIGHTS[key as keyof typeof WEIGHTS] ?? 1))
    else passes.delete(key)
  }
  return order
}

const callOf = ({ key, priority }: Keyed): CallOptions => ({ priority, ...(key !== '' && { concurrencyKey: key }) })

export function turns(open: OpenBackend): void {
  it('the keys of random tasks take turns by their weights, and each key starts its tasks by priority', async () => {
    const run = async (tasks: readonly Keyed[]): Promise<void> => {
      const started: TaskId[] = []
      const { create, broker, start, settled, drain } = await openSetup(open, {
        concurrency: 1,
        handle: ({ id, input }) => {
          started.push(id)
          return input
        },
      })
      const created = tasks.map((task) => create(short, {}, callOf(task)))
      for (const task of created) await broker.enqueue(task)
      await start()
      for (const { id } of created) expect((await settled(id))?.status).toBe('completed')
      expect(started.map((id) => created.findIndex((task) => task.id === id))).toEqual(orderOf(tasks))
      await drain()
    }
    const programs = fc.array(keyed, { minLength: 1, maxLength: 24 })
    const examples: [Keyed[]][] = [
      // A noisy key, two others, and tasks without a key.
      [
        Array.from({ length: 24 }, (_, i) => ({
          key: (['a', 'a', 'a', 'heavy', 'b', ''] as const)[i % 6] ?? '',
          priority: 0,
        })),
      ],
    ]
    await fc.assert(fc.asyncProperty(programs, run), { numRuns: 4, endOnFailure: true, examples })
  })

  it('a waiting task says how many tasks of its key start before it', async () => {
    const { handle, open: release, holds } = gate()
    const { enqueue, find, start, broker, settled } = await openSetup(open, { concurrency: 1, handle })
    const a = { concurrencyKey: 'a' }
    const [first, last, second] = [
      await enqueue(long, {}, a),
      await enqueue(long, {}, { ...a, priority: 2 }),
      await enqueue(long, {}, a),
    ]
    const other = await enqueue(long, {}, { concurrencyKey: 'b' })
    const ahead = async (id: TaskId): Promise<number | undefined> => (await find(id)).waitsFor?.ahead
    expect(await Promise.all([first, second, last, other].map(ahead))).toEqual([0, 1, 2, 0])
    const { tasks } = await broker.list({ queue: QUEUE, status: 'waiting', limit: 10, cursor: undefined })
    expect(tasks.every((task) => task.waitsFor === undefined)).toBe(true)
    await start()
    await holds(1)
    const without = await enqueue(long, {})
    expect(await Promise.all([first, second, last, without].map(ahead))).toEqual([undefined, 0, 1, undefined])
    release()
    expect((await settled(last))?.waitsFor).toBeUndefined()
  })

  it('a task waits for its turn however it was enqueued', async () => {
    const a = { concurrencyKey: 'a' }
    const setup = await openGroups(open, {
      async handle(context) {
        if (context.name !== long.name) throw new TaskError('no', '', { retryable: false })
        await context.enqueue(child, { n: 1 }, a)
        return context.input
      },
    })
    const { broker, catalogue, enqueue, create, start, settled, drain, find, reaches, idsOf, groupOf } = setup
    const parent = await enqueue(long, {}, { onSuccess: [followUp(short, { n: 2 }, a)] })
    const first = await enqueue(short, {}, a)
    await start()
    const dead = await reaches(first, 'dead')
    expect((await settled(parent))?.status).toBe('completed')
    // The child and the follow-up have ended as well. All of them return to their lane.
    const ended = await eventually(async () => {
      const ids = await idsOf('dead')
      return ids.length === 3 && ids
    })
    await drain()
    for (const id of ended) await broker.retry(id, { by: 'ann', request: id })
    const bulk = [create(short, {}, a), create(short, {}, a)]
    await broker.enqueueAll(bulk)
    const { ids: members } = await groupOf([create(long, {}, a)])
    const yearly = defineSchedule({ name: 'yearly', task: short, input: {}, cron: '0 0 1 1 *', ...a })
    await broker.schedules.put(yearly, { source: 'api', by: 'ann' })
    const scheduled = await broker.schedules.run('yearly')
    await broker.schedules.remove('yearly')
    const copy = createTaskId(QUEUE, Date.now(), randomBytes(ID_RANDOM_BYTES))
    const copyTo = (queue: string) =>
      retryCopy(dead, short, { id: copy, queue: catalogue.queue(queue), now: Date.now() })
    // A queue that takes no turns.
    expect(copyTo(AFTER).turn).toBeUndefined()
    await broker.enqueue(copyTo(QUEUE))
    const all = [...ended, ...bulk.map(({ id }) => id), ...members, scheduled.id, copy]
    for (const id of all) {
      await eventually(async () => (await broker.find(id)) !== undefined)
      expect(await find(id)).toMatchObject({ status: 'waiting', concurrencyKey: 'a', waitsFor: { kind: 'turn' } })
    }
    const ahead = await Promise.all(all.map(async (id) => (await find(id)).waitsFor?.ahead))
    expect(ahead.toSorted((x = 0, y = 0) => x - y)).toEqual(all.map((_, i) => i))
  })

  it('tasks that wait for their turns are listed, counted, cancelled and expired', async () => {
    const { broker, enqueue, idsOf, find, reaches } = await openSetup(open, { locks: 'quick' })
    const ids: TaskId[] = []
    for (const key of ['a', 'b', 'a', 'c', 'a', 'b']) {
      ids.push(await enqueue(long, {}, { concurrencyKey: key, priority: ids.length % 2, tags: [key] }))
    }
    const [one = expect.fail(), ...others] = ids
    expect((await idsOf('waiting', 2)).toSorted()).toEqual(ids.toSorted())
    expect((await broker.counts(QUEUE)).waiting).toBe(6)
    expect(await broker.cancel(one, { stoppable: true })).toBe('cancelled')
    expect((await idsOf('waiting', 4)).toSorted()).toEqual(others.toSorted())
    await broker.cancelMany({ queue: QUEUE, tag: 'a', before: Date.now() + 1, reason: 'cancelled' })
    await eventually(async () => (await broker.counts(QUEUE)).waiting === 3)
    for (const [i, id] of ids.entries()) expect((await find(id)).status).toBe(i % 2 === 0 ? 'cancelled' : 'waiting')
    const expiring = await enqueue(long, {}, { concurrencyKey: 'b', queueTimeout: '10ms' })
    await reaches(expiring, 'expired')
    expect((await broker.counts(QUEUE)).waiting).toBe(3)
    expect(await broker.totals(QUEUE)).toMatchObject({ accepted: 7, unaccounted: 0 })
  })

  it('a requeued task is the next one of its key', async () => {
    const { entered, handle, open: release, holds } = gate()
    const { enqueue, pool, settled, find } = await openSetup(open, { concurrency: 1, handle })
    const a = { concurrencyKey: 'a' }
    const [first, second] = [await enqueue(long, {}, a), await enqueue(long, {}, a)]
    const draining = pool('test:1')
    await draining.start()
    await holds(1)
    await draining.drain({ drainMs: 0, graceMs: 1_000 })
    expect((await find(first)).waitsFor?.ahead).toBe(0)
    release()
    await pool('test:2').start()
    for (const id of [first, second]) expect((await settled(id))?.status).toBe('completed')
    expect(entered).toEqual([first, first, second])
  })

  it('a waiting task is replaced by the one that takes its unique key', async () => {
    const { broker, create, find } = await openSetup(open)
    const unique = { key: 'k', onConflict: 'replace' } as const
    const [first, second] = [
      create(long, {}, { concurrencyKey: 'a', unique }),
      create(long, {}, { concurrencyKey: 'b', unique }),
    ]
    await broker.enqueue(first)
    expect(await broker.enqueue(second)).toMatchObject({ action: 'replaced' })
    expect(await broker.find(first.id)).toBeUndefined()
    expect(await find(second.id)).toMatchObject({ concurrencyKey: 'b', waitsFor: { ahead: 0 } })
    expect((await broker.counts(QUEUE)).waiting).toBe(1)
  })
}

// When a task is expected to start.
import { setTimeout as sleep } from 'node:timers/promises'
import type { NewTask } from '@bullpen/engine'
import { idempotencyOf } from '@bullpen/engine/node'
import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import type { OpenBackend } from '../backend.ts'
import { long, openSetup, short } from '../setup.ts'

const HOUR_MS = 3_600_000

/** Returns a time, rounded up to a second. */
const wholeSecond = (ms: number): number => Math.ceil(ms / 1_000) * 1_000

/** A queue with many waiting tasks, of which two slots start about 100 in each second. After `open`, they end at once. */
async function openWithBacklog(open: OpenBackend) {
  let started = 0
  let waits = true
  const setup = await openSetup(open, {
    concurrency: 2,
    async handle({ input }) {
      started++
      if (waits) await sleep(20)
      return input
    },
  })
  const { create, broker } = setup
  for (let i = 0; i < 20; i++) await broker.enqueueAll(Array.from({ length: 50 }, () => create(short, {})))
  return {
    ...setup,
    entered: () => started,
    open(): void {
      waits = false
    },
  }
}

export function expectedStarts(open: OpenBackend): void {
  it('a scheduled task is expected to start when it is due', async () => {
    const { create, broker } = await openSetup(open)
    const task = create(short, {}, { delay: '1h' })
    const { expectedStartAt } = await broker.enqueue(task)
    expect(expectedStartAt).toBe(wholeSecond(task.enqueuedAt + HOUR_MS))
    const others = [create(short, {}, { delay: '2h' }), create(short, {})]
    const [later, now] = await broker.enqueueAll(others)
    expect(later?.expectedStartAt).toBe(wholeSecond((others[0]?.enqueuedAt ?? 0) + 2 * HOUR_MS))
    expect(now?.expectedStartAt).toBeUndefined()
  })

  it('a repeated call gets the expected start of the first call', async () => {
    const { create, broker } = await openSetup(open)
    const idempotency = idempotencyOf({ key: 'k', caller: 'ann', request: 'a', life: 86_400 })
    const call = (delay: '1h' | '2h'): NewTask => ({ ...create(short, {}, { delay }), caller: 'only', idempotency })
    const first = await broker.enqueue(call('1h'))
    expect(first.expectedStartAt).toEqual(expect.any(Number))
    expect(await broker.enqueue(call('2h'))).toEqual({ ...first, replayed: { status: 'scheduled' } })
  })

  it('a task whose start is postponed is expected then, and a task that existed before has no expected start', async () => {
    const { create, broker } = await openSetup(open)
    const call = (onConflict: 'keep' | 'extend', delay: '1h' | '2h'): NewTask => ({
      ...create(long, {}, { delay, unique: { key: 'k', onConflict } }),
      caller: 'only',
    })
    const first = await broker.enqueue(call('keep', '1h'))
    expect(first).toMatchObject({ action: 'created', expectedStartAt: expect.any(Number) })
    const kept = await broker.enqueue(call('keep', '2h'))
    expect(kept).toMatchObject({ id: first.id, action: 'existing' })
    expect(kept.expectedStartAt).toBeUndefined()
    const task = call('extend', '2h')
    const extended = await broker.enqueue(task)
    expect(extended).toMatchObject({ id: first.id, action: 'extended' })
    expect(extended.expectedStartAt).toBe(wholeSecond(task.enqueuedAt + 2 * HOUR_MS))
  })

  it('calls that are refused, repeated or kept from storing a task do not delay the expected start of later tasks', async () => {
    const { create, broker, start, entered, open: release } = await openWithBacklog(open)
    const startsAt = async (): Promise<number | undefined> => {
      const task = create(short, {})
      const { expectedStartAt } = await broker.enqueue(task)
      return expectedStartAt === undefined ? undefined : expectedStartAt - task.enqueuedAt
    }
    await start()
    await eventually(() => entered() >= 100)
    const before = await eventually(startsAt)
    const idempotency = idempotencyOf({ key: 'k', caller: 'ann', request: 'a', life: 86_400 })
    const unique = { key: 'u', until: 'finished', onConflict: 'keep', maxDelayMs: undefined } as const
    const calls: readonly (() => NewTask)[] = [
      () => ({ ...create(short, {}), limits: { maxTasks: 1 } }),
      () => ({ ...create(short, {}), caller: 'only', idempotency }),
      () => ({ ...create(short, {}), caller: 'only', unique }),
    ]
    // These are six times as many as the tasks that wait.
    for (let i = 0; i < 20; i++) {
      await broker.enqueueBulk(calls.flatMap((call) => Array.from({ length: 100 }, call)))
      await broker.enqueueAll([create(short, {}), calls[0]?.() ?? create(short, {})]).catch(() => {})
    }
    // The estimate also grows if the machine becomes busy, so that fewer tasks start in a second.
    expect(await startsAt()).toBeLessThan(3 * before + 30_000)
    release()
  })

  it('a task is expected to start at once if workers start tasks and none is waiting', async () => {
    const { create, broker, start } = await openSetup(open)
    await start()
    // On a busy machine, a task of this test may still be waiting when the queue is read.
    await eventually(async () => {
      const task = create(short, {})
      const { expectedStartAt } = await broker.enqueue(task)
      return expectedStartAt === wholeSecond(task.enqueuedAt)
    })
  })
}

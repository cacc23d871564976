// The model of unique keys: after any sequence of enqueues, starts, ends, cancels, expiries and removals, at most one task has
// each key, and each enqueue has the result that the documentation describes.
import { type CallOptions, isFinal, type OnConflict, TaskError, type TaskId, type TaskRecord } from '@bullpen/contract'
import { eventually } from '@bullpen/testkit'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { amount } from '../../scale.ts'
import type { OpenBackend } from '../backend.ts'
import { long, openSetup, QUEUE } from '../setup.ts'

const KEYS = ['a', 'b', 'c'] as const
const SLOTS = 2

type Until = 'started' | 'finished' | '1h' | '1ms'
type Ending = 'return' | 'fail' | 'retry later'

type Operation =
  | {
      readonly do: 'enqueue'
      readonly key: (typeof KEYS)[number]
      readonly until: Until
      readonly onConflict: OnConflict
      readonly delay: '1h' | '2h' | undefined
      /** Whether the task expires unless it starts at once. */
      readonly expires: boolean
    }
  | { readonly do: Ending | 'cancel'; readonly pick: number }
  | { readonly do: 'cancel all' }

const pick = fc.nat({ max: 99 })
const operation: fc.Arbitrary<Operation> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      do: fc.constant('enqueue'),
      key: fc.constantFrom(...KEYS),
      until: fc.constantFrom<Until[]>('started', 'finished', 'finished', '1h', '1ms'),
      onConflict: fc.constantFrom<OnConflict[]>('keep', 'replace', 'extend', 'error'),
      delay: fc.constantFrom(undefined, undefined, '1h', '2h'),
      expires: fc.nat({ max: 9 }).map((n) => n === 0),
    }),
  },
  { weight: 5, arbitrary: fc.record({ do: fc.constantFrom<Ending[]>('return', 'fail', 'retry later'), pick }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('cancel'), pick }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('cancel all') }) },
)

/** A task that was stored with a key. */
interface Stored {
  readonly id: TaskId
  readonly key: string
  until: Until
  isReplaced: boolean
}

export function uniqueKeysModel(open: OpenBackend): void {
  it('at most one task has each key, whatever happens to the tasks', { timeout: 300_000 }, async () => {
    const programs = fc.array(operation, { minLength: 30, maxLength: 30 })
    const runs = { numRuns: amount({ small: 8, full: 100 }), endOnFailure: true }
    await fc.assert(
      fc.asyncProperty(programs, (operations) => run(open, operations)),
      runs,
    )
  })
}

async function run(open: OpenBackend, operations: readonly Operation[]): Promise<void> {
  const endings = new Map<TaskId, (how: Ending) => void>()
  const { broker, create, start, drain } = await openSetup(open, {
    concurrency: SLOTS,
    locks: 'quick',
    retention: { completed: { count: 1 }, dead: { count: 1 }, cancelled: { count: 1 }, expired: { count: 1 } },
    handle: async ({ id, input, signal }) => {
      const ending = await new Promise<Ending>((resolve, reject) => {
        endings.set(id, resolve)
        signal.addEventListener('abort', () => reject(signal.reason))
      })
      if (ending === 'fail') throw new TaskError('gone', '', { retryable: false })
      if (ending === 'retry later') throw new TaskError('busy', '', { retryAfter: '1h' })
      return input
    },
  })
  await start()
  const stored: Stored[] = []

  const statusOf = async (id: TaskId): Promise<TaskRecord['status'] | undefined> => (await broker.find(id))?.status
  const hasEnded = async (id: TaskId): Promise<boolean> => {
    const status = await statusOf(id)
    return status === undefined || isFinal(status)
  }
  /** Waits until as many tasks run as can. */
  const quiet = () =>
    eventually(async () => {
      const { active, waiting } = await broker.counts(QUEUE)
      return active === Math.min(SLOTS, active + waiting)
    })

  const hasKey = async ({ id, until, isReplaced }: Stored): Promise<boolean> => {
    if (isReplaced || until === '1ms') return false
    if (until === '1h') return true
    const task = await broker.find(id)
    if (task === undefined || isFinal(task.status)) return false
    return until === 'finished' || task.fencingToken === 0
  }
  const ownersOf = async (key: string): Promise<readonly Stored[]> => {
    const tasks = stored.filter((each) => each.key === key)
    const own = await Promise.all(tasks.map(hasKey))
    return tasks.filter((_, i) => own[i])
  }

  const enqueue = async ({ key, until, onConflict, delay, expires }: Operation & { do: 'enqueue' }): Promise<void> => {
    // The keys that some tasks have for a millisecond are free.
    const now = Date.now()
    await eventually(() => Date.now() > now + 2)
    const [owner] = await ownersOf(key)
    const other = owner && (await broker.find(owner.id))
    const start = delay ?? (onConflict === 'extend' ? '1h' : undefined)
    const call: CallOptions = {
      unique: { key, until, onConflict },
      ...(start && { delay: start }),
      ...(expires && start === undefined && { queueTimeout: '1ms' }),
    }
    const task = create(long, {}, call)
    const startsAt = task.enqueuedAt + (task.delayMs ?? 0)
    const answer = broker.enqueue({ ...task, caller: 'only' })
    if (owner !== undefined && onConflict === 'error') {
      await expect(answer).rejects.toMatchObject({ code: 'unique_key_taken', taskId: owner.id })
      return
    }
    const { id, action, status } = await answer
    if (owner === undefined) expect({ id, action }).toEqual({ id: task.id, action: 'created' })
    else {
      const isUnstarted = other?.fencingToken === 0
      const mayReplace = isUnstarted && (other.status === 'waiting' || other.status === 'scheduled')
      const mayExtend = isUnstarted && other.status === 'scheduled' && startsAt > (other.dueAt ?? 0)
      if (onConflict === 'replace' && mayReplace) {
        expect({ id, action }).toEqual({ id: task.id, action: 'replaced' })
        expect(await broker.find(owner.id)).toBeUndefined()
        owner.isReplaced = true
      } else if (onConflict === 'extend' && mayExtend) {
        expect({ id, action, status }).toEqual({ id: owner.id, action: 'extended', status: 'scheduled' })
        expect((await broker.find(id))?.dueAt).toBe(startsAt)
        if (owner.until === '1h' && (until === '1h' || until === '1ms')) owner.until = until
      } else {
        expect({ id, action }).toEqual({ id: owner.id, action: 'existing' })
        // A task that has ended may be deleted at any time, because only one of each status is kept.
        if (status !== undefined || (other !== undefined && !isFinal(other.status))) expect(status).toBe(other?.status)
      }
    }
    if (id === task.id) stored.push({ id, key, until, isReplaced: false })
    if (id === task.id && expires && start === undefined) {
      await eventually(async () => (await statusOf(id)) === 'active' || (await hasEnded(id)))
    }
  }

  const end = async (how: Ending, pick: number): Promise<void> => {
    const running = [...endings.keys()]
    const id = running[pick % Math.max(1, running.length)]
    if (id === undefined) return
    endings.get(id)?.(how)
    endings.delete(id)
    await eventually(async () => (await statusOf(id)) !== 'active')
  }

  const cancel = async (pick: number): Promise<void> => {
    const id = stored[pick % Math.max(1, stored.length)]?.id
    if (id === undefined) return
    await broker.cancel(id, { stoppable: true })
    await eventually(() => hasEnded(id))
    endings.delete(id)
  }

  const cancelAll = async (): Promise<void> => {
    const now = Date.now()
    await broker.cancelMany({ queue: QUEUE, before: now, reason: 'cancelled' })
    for (const { id } of stored) await eventually(() => hasEnded(id))
    endings.clear()
    await eventually(() => Date.now() > now + 1)
  }

  for (const each of operations) {
    if (each.do === 'enqueue') await enqueue(each)
    else if (each.do === 'cancel') await cancel(each.pick)
    else if (each.do === 'cancel all') await cancelAll()
    else await end(each.do, each.pick)
    await quiet()
    for (const key of KEYS) expect((await ownersOf(key)).length).toBeLessThanOrEqual(1)
  }
  expect(await broker.totals(QUEUE)).toMatchObject({ unaccounted: 0, drift: 0 })
  await drain({ drainMs: 0, graceMs: 0 })
}

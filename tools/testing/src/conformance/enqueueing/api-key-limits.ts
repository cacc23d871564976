// What a queue with limits for each API key accepts and refuses.
import { type ApiKeyLimits, type CallOptions, type QueueLimits, TaskError } from '@bullpen/contract'
import type { NewTask } from '@bullpen/engine'
import { idempotencyOf } from '@bullpen/engine/node'
import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import type { OpenBackend } from '../backend.ts'
import { child, gate, long, openSetup, QUEUE } from '../setup.ts'

/** So long that nothing is refilled during a test. */
const HOUR = 3_600_000

async function openLimited(open: OpenBackend, perApiKey: ApiKeyLimits, options: Parameters<typeof openSetup>[1] = {}) {
  const setup = await openSetup(open, options)
  const { broker, create } = setup
  const task = (apiKeyName: string | undefined, call: CallOptions = {}): NewTask => {
    return { ...create(long, {}, call), caller: 'only', apiKeyName, limits: { perApiKey } }
  }
  return {
    ...setup,
    task,
    /** Returns 'created', or the code of the error. */
    enqueueAs: (apiKeyName: string | undefined, call?: CallOptions): Promise<string> =>
      broker.enqueue(task(apiKeyName, call)).then(
        ({ action }) => action,
        ({ code }) => code,
      ),
  }
}

export function apiKeyLimits(open: OpenBackend): void {
  it('an API key enqueues as many tasks as its rate permits, and the next one is refused', async () => {
    const { enqueueAs, broker, task } = await openLimited(open, { enqueueRate: { max: 3, perMs: HOUR } })
    for (const call of [{}, { delay: '1h' }, { priority: 2 }] as const) {
      expect(await enqueueAs('shop', call)).toBe('created')
    }
    const refused = task('shop')
    await expect(broker.enqueue(refused)).rejects.toMatchObject({
      code: 'enqueue_rate_exceeded',
      message: `API key 'shop' has reached its rate of 3 tasks per 1h in queue '${QUEUE}'; nothing was stored, so try again later`,
      reached: { apiKeyName: 'shop', queue: QUEUE, rate: { max: 3, perMs: HOUR } },
    })
    const error = await broker.enqueue(refused).catch((caught) => caught)
    expect(error.reached.retryAfterMs).toBeGreaterThan(HOUR / 3 - 60_000)
    expect(error.reached.retryAfterMs).toBeLessThanOrEqual(HOUR / 3)
    expect(await broker.find(refused.id)).toBeUndefined()
    expect(await broker.totals(QUEUE)).toMatchObject({ accepted: 3, unaccounted: 0 })
  })

  it('each API key has a rate of its own, and tasks without an API key have none', async () => {
    const { enqueueAs } = await openLimited(open, { enqueueRate: { max: 1, perMs: HOUR } })
    const names = ['a', 'b', undefined, undefined, 'a', 'b']
    const results: string[] = []
    for (const name of names) results.push(await enqueueAs(name))
    const refused = 'enqueue_rate_exceeded'
    expect(results).toEqual(['created', 'created', 'created', 'created', refused, refused])
  })

  it('tokens are refilled evenly', async () => {
    const { enqueueAs } = await openLimited(open, { enqueueRate: { max: 2, perMs: 400 } })
    const began = performance.now()
    for (let n = 0; n < 6; n++) await eventually(async () => (await enqueueAs('shop')) === 'created')
    // Two tokens were there at first, and one more comes every 200 ms.
    expect(performance.now() - began).toBeGreaterThanOrEqual(790)
  })

  it('of many concurrent calls, exactly as many are accepted as the rate permits', async () => {
    const { enqueueAs } = await openLimited(open, { enqueueRate: { max: 20, perMs: HOUR } })
    const calls = Array.from({ length: 100 }, (_, i) =>
      enqueueAs('shop', [{}, { delay: '1h' }, { priority: 1 }][i % 3] as CallOptions),
    )
    const results = await Promise.all(calls)
    expect(results.filter((result) => result === 'created')).toHaveLength(20)
    expect(results.filter((result) => result === 'enqueue_rate_exceeded')).toHaveLength(80)
  })

  it('a repeated call takes no token, and gets its first response although there are none left', async () => {
    const { task, broker, enqueueAs } = await openLimited(open, { enqueueRate: { max: 2, perMs: HOUR } })
    const idempotency = idempotencyOf({ key: 'k', caller: 'shop', request: 'a', life: 600 })
    const { id } = await broker.enqueue({ ...task('shop'), idempotency })
    for (let n = 0; n < 3; n++) expect(await broker.enqueue({ ...task('shop'), idempotency })).toMatchObject({ id })
    expect(await enqueueAs('shop')).toBe('created')
    expect(await enqueueAs('shop')).toBe('enqueue_rate_exceeded')
    expect(await broker.enqueue({ ...task('shop'), idempotency })).toMatchObject({
      id,
      replayed: { status: 'waiting' },
    })
  })

  it('a task that another one stands for takes no token', async () => {
    const { enqueueAs } = await openLimited(open, { enqueueRate: { max: 2, perMs: HOUR } })
    const unique = { key: 'k' }
    expect(await enqueueAs('shop', { unique })).toBe('created')
    for (let n = 0; n < 3; n++) expect(await enqueueAs('shop', { unique })).toBe('existing')
    expect(await enqueueAs('shop')).toBe('created')
    expect(await enqueueAs('shop')).toBe('enqueue_rate_exceeded')
  })

  it('a task that the queue refuses takes no token', async () => {
    const perApiKey = { enqueueRate: { max: 2, perMs: HOUR } }
    const { broker, task, enqueueAs } = await openLimited(open, perApiKey)
    expect(await enqueueAs('shop')).toBe('created')
    const full = { ...task('shop'), limits: { perApiKey, maxTasks: 1 } }
    for (let n = 0; n < 3; n++) await expect(broker.enqueue(full)).rejects.toMatchObject({ code: 'queue_full' })
    expect(await enqueueAs('shop')).toBe('created')
  })

  it('tasks that are stored all or none take all of their tokens or none', async () => {
    const { broker, task, enqueueAs } = await openLimited(open, { enqueueRate: { max: 4, perMs: HOUR } })
    const some = (tasks: number) => Array.from({ length: tasks }, () => task('shop'))
    expect(await broker.enqueueAll(some(2))).toHaveLength(2)
    const error = await broker.enqueueAll(some(4)).catch((caught) => caught)
    expect(error).toMatchObject({ code: 'enqueue_rate_exceeded', errors: [] })
    // Two tokens are missing.
    expect(error.reached.retryAfterMs).toBeGreaterThan(HOUR / 2 - 60_000)
    expect(error.reached.retryAfterMs).toBeLessThanOrEqual(HOUR / 2)
    await expect(broker.enqueueAll(some(5))).rejects.toMatchObject({
      code: 'payload_too_large',
      message: expect.stringContaining('permits at most 4 at once'),
    })
    expect(await broker.totals(QUEUE)).toMatchObject({ accepted: 2 })
    expect(await broker.enqueueAll(some(2))).toHaveLength(2)
    expect(await enqueueAs('shop')).toBe('enqueue_rate_exceeded')
  })

  it('each task of a bulk call is accepted or refused separately', async () => {
    const { broker, task } = await openLimited(open, { enqueueRate: { max: 3, perMs: HOUR } })
    const results = await broker.enqueueBulk(Array.from({ length: 5 }, () => task('shop')))
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(3)
    const refused = results.flatMap((result) => (result.status === 'rejected' ? [result.reason.code] : []))
    expect(refused).toEqual(['enqueue_rate_exceeded', 'enqueue_rate_exceeded'])
  })

  it('tokens that are taken before tasks are added are those of the same rate, and may be given back', async () => {
    const enqueueRate = { max: 4, perMs: HOUR }
    const { broker, task, enqueueAs } = await openLimited(open, { enqueueRate })
    const take = async (tokens: number) =>
      broker.takeInQueues('shop', [{ queue: QUEUE, limits: { perApiKey: { enqueueRate } }, tokens }])
    expect(await enqueueAs('shop')).toBe('created')
    const giveBack = await take(3)
    expect(await enqueueAs('shop')).toBe('enqueue_rate_exceeded')
    const error = await take(2).catch((caught) => caught)
    expect(error).toMatchObject({
      code: 'enqueue_rate_exceeded',
      reached: { queue: QUEUE, tokens: { needed: 2, available: 0 } },
    })
    // Two tokens are missing.
    expect(error.reached.retryAfterMs).toBeGreaterThan(HOUR / 2 - 60_000)
    expect(error.reached.retryAfterMs).toBeLessThanOrEqual(HOUR / 2)
    // The token of this task is one of those that were taken.
    expect(await broker.enqueue({ ...task('shop'), hasToken: true })).toMatchObject({ action: 'created' })
    await giveBack?.(new Map([[QUEUE, 2]]))
    expect([await enqueueAs('shop'), await enqueueAs('shop')]).toEqual(['created', 'created'])
    expect(await enqueueAs('shop')).toBe('enqueue_rate_exceeded')
    expect(await enqueueAs('other')).toBe('created')
  })

  it('no tokens are taken of a queue without a rate, and never more than a rate permits at once', async () => {
    const enqueueRate = { max: 2, perMs: HOUR }
    const { broker, enqueueAs } = await openLimited(open, { enqueueRate })
    const take = async (limits: QueueLimits | undefined) =>
      broker.takeInQueues('shop', [{ queue: QUEUE, limits, tokens: 3 }])
    expect(await take(undefined)).toBeUndefined()
    expect(await take({ maxTasks: 1, perApiKey: { maxUnfinishedTasks: 1 } })).toBeUndefined()
    await expect(take({ perApiKey: { enqueueRate } })).rejects.toMatchObject({
      code: 'payload_too_large',
      message: expect.stringContaining('permits at most 2 at once'),
    })
    expect([await enqueueAs('shop'), await enqueueAs('shop')]).toEqual(['created', 'created'])
  })

  it('a child task takes no token', async () => {
    const { enqueueAs, task, broker, start, settled } = await openLimited(
      open,
      { enqueueRate: { max: 1, perMs: HOUR } },
      {
        handle: async (context) => {
          if (context.input.n !== 7) {
            await context.enqueue(child, { n: 7 }, { childKey: '1' })
            await context.enqueue(child, { n: 7 }, { childKey: '2' })
          }
          return context.input
        },
      },
    )
    const parent = task('shop')
    await broker.enqueue(parent)
    await start()
    expect((await settled(parent.id))?.status).toBe('completed')
    expect(await broker.totals(QUEUE)).toMatchObject({ accepted: 3 })
    expect(await enqueueAs('shop')).toBe('enqueue_rate_exceeded')
  })

  it('an API key has as many unfinished tasks in the queue as its limit says, in whatever status', async () => {
    const { handle, open: release, holds } = gate()
    const limited = await openLimited(open, { maxUnfinishedTasks: 3 }, { concurrency: 1, handle })
    const { enqueueAs, task, broker, start, settled, drain } = limited
    const first = task('shop')
    await broker.enqueue(first)
    await start()
    await holds(1)
    expect(await enqueueAs('shop', { delay: '1h' })).toBe('created')
    expect(await enqueueAs('shop', { priority: 3 })).toBe('created')
    await expect(broker.enqueue(task('shop'))).rejects.toMatchObject({
      code: 'queue_full',
      message: `queue '${QUEUE}' is full for API key 'shop': 3 of its tasks have not ended, and maxUnfinishedTasks is 3; the task was not stored, so try again later`,
      reached: { queue: QUEUE, limit: 'maxUnfinishedTasks', apiKeyName: 'shop', max: 3, found: 3 },
    })
    expect(await enqueueAs('other')).toBe('created')
    release()
    await settled(first.id)
    await eventually(async () => (await enqueueAs('shop')) === 'created')
    await drain()
  })

  it.each(['cancelled', 'dead', 'expired'] as const)('a %s task no longer counts', async (status) => {
    const { enqueueAs, task, broker, start, settled } = await openLimited(
      open,
      { maxUnfinishedTasks: 1 },
      {
        locks: 'quick',
        handle: () => {
          throw new TaskError('no', 'never', { retryable: false })
        },
      },
    )
    const first = status === 'expired' ? { ...task('shop'), expiresAt: Date.now() + 1 } : task('shop')
    await broker.enqueue(first)
    // The other task may already have expired.
    if (status !== 'expired') expect(await enqueueAs('shop')).toBe('queue_full')
    if (status === 'cancelled') await broker.cancel(first.id, { stoppable: true })
    if (status === 'dead') await start()
    expect((await settled(first.id))?.status).toBe(status)
    expect(await enqueueAs('shop')).toBe('created')
  })

  it('a retrying task counts, and so does a requeued one', async () => {
    const { handle, holds } = gate()
    const { enqueueAs, task, broker, start, drain, reaches } = await openLimited(
      open,
      { maxUnfinishedTasks: 1 },
      {
        concurrency: 1,
        handle: async (context) => {
          if (context.attempt === 1) throw new TaskError('busy', 'try again', { retryAfter: '20ms' })
          return handle(context)
        },
      },
    )
    const only = task('shop')
    await broker.enqueue(only)
    await start()
    await holds(1)
    expect(await enqueueAs('shop')).toBe('queue_full')
    await drain({ drainMs: 0 })
    await reaches(only.id, 'waiting')
    expect(await enqueueAs('shop')).toBe('queue_full')
  })

  it('a task that replaces another one of the same API key takes its place', async () => {
    const { enqueueAs } = await openLimited(open, { maxUnfinishedTasks: 1 })
    const unique = { key: 'k', onConflict: 'replace' } as const
    expect(await enqueueAs('shop', { unique, delay: '1h' })).toBe('created')
    for (let n = 0; n < 3; n++) expect(await enqueueAs('shop', { unique, delay: '1h' })).toBe('replaced')
    expect(await enqueueAs('shop')).toBe('queue_full')
    // The other key's task takes the place of this one, which is then free.
    expect(await enqueueAs('other', { unique })).toBe('replaced')
    expect(await enqueueAs('shop')).toBe('created')
  })

  it('concurrent and atomic calls together never exceed the number of unfinished tasks', async () => {
    const { enqueueAs, broker, task } = await openLimited(open, { maxUnfinishedTasks: 20 })
    const some = (tasks: number) => Array.from({ length: tasks }, () => task('shop'))
    await expect(broker.enqueueAll(some(21))).rejects.toMatchObject({ code: 'payload_too_large' })
    const atomic = Array.from({ length: 10 }, () =>
      broker.enqueueAll(some(3)).then(
        (stored) => stored.length,
        () => 0,
      ),
    )
    const single = Array.from({ length: 30 }, async () => ((await enqueueAs('shop')) === 'created' ? 1 : 0))
    const stored = await Promise.all([...atomic, ...single])
    expect(stored.reduce<number>((sum, each) => sum + each, 0)).toBe(20)
    expect(await broker.totals(QUEUE)).toMatchObject({ accepted: 20 })
  })

  it('a child task counts for the API key of its parent, and is never refused', async () => {
    const { task, broker, enqueueAs, start, settled } = await openLimited(
      open,
      { maxUnfinishedTasks: 2 },
      {
        handle: async (context) => {
          if (context.input.n === 7) return context.input
          for (const childKey of ['1', '2', '3']) await context.enqueue(child, { n: 7 }, { childKey, delay: '1h' })
          return context.input
        },
      },
    )
    const parent = task('shop')
    await broker.enqueue(parent)
    await start()
    expect((await settled(parent.id))?.status).toBe('completed')
    expect(await broker.counts(QUEUE)).toMatchObject({ scheduled: 3 })
    await expect(broker.enqueue(task('shop'))).rejects.toMatchObject({ reached: { max: 2, found: 3 } })
    expect(await enqueueAs('other')).toBe('created')
  })

  it('the children and grandchildren of a task in a queue without a limit count for its API key', async () => {
    const { task, broker, create, start, settled } = await openLimited(
      open,
      { maxUnfinishedTasks: 3 },
      {
        handle: async (context) => {
          const { n } = context.input
          if (n < 2) await context.enqueue(child, { n: n + 1 }, n === 1 ? { delay: '1h' } : {})
          if (n === 0) await context.enqueue(child, { n: 2 }, { childKey: '2', delay: '1h' })
          return context.input
        },
      },
    )
    const parent = { ...create(long, { n: 0 }), apiKeyName: 'shop', passesOnApiKey: true }
    await broker.enqueue(parent)
    await start()
    expect((await settled(parent.id))?.status).toBe('completed')
    // The child has ended, and its own child and the other child are scheduled.
    await eventually(async () => (await broker.counts(QUEUE)).completed === 2)
    expect(await broker.counts(QUEUE)).toMatchObject({ scheduled: 2 })
    await broker.enqueue({ ...task('shop'), delayMs: HOUR })
    await expect(broker.enqueue(task('shop'))).rejects.toMatchObject({ reached: { max: 3, found: 3 } })
  })
}

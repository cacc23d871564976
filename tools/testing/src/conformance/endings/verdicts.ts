// Tests what happens to a task when its attempt ends.
import { rateLimited, TaskError, type TaskId } from '@bullpen/contract'
import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import type { OpenBackend } from '../backend.ts'
import { child, expectAbout, gate, long, openSetup, QUEUE, short } from '../setup.ts'

export function verdicts(open: OpenBackend): void {
  it('a task with a permanent failure is dead at once', async () => {
    const { enqueue, start, settled } = await openSetup(open, {
      handle: () => {
        throw new TaskError('gone', 'no such thing', { retryable: false })
      },
    })
    await start()
    expect(await settled(await enqueue(long, {}))).toMatchObject({ status: 'dead', fencingToken: 1, attemptsMade: 1 })
  })

  it('an output that the contract refuses is a panic', async () => {
    const { enqueue, start, settled } = await openSetup(open, { handle: () => ({ n: 0.5 }) })
    await start()
    expect(await settled(await enqueue(short, {}))).toMatchObject({
      status: 'dead',
      attempts: [{ reason: 'invalid_output' }, {}, {}],
    })
  })

  it('an input that the contract refuses does not reach the handler', async () => {
    const { create, enqueueTask, start, settled } = await openSetup(open)
    await start()
    const id = await enqueueTask({ ...create(long, {}), input: { n: 'one' } })
    expect(await settled(id)).toMatchObject({ status: 'dead', fencingToken: 1, attempts: [{ code: 'invalid_input' }] })
  })

  it('an attempt that passes its timeout or misses its heartbeat times out and is retried', async () => {
    const { enqueue, start, settled } = await openSetup(open, { handle: gate().handle })
    await start()
    const [slow, still] = await Promise.all([
      enqueue(long, {}, { timeout: '30ms' }),
      enqueue(long, {}, { heartbeatTimeout: '30ms' }),
    ])
    for (const [id, reason] of [
      [slow, 'run_timeout'],
      [still, 'heartbeat_timeout'],
    ] as const) {
      const end = { state: 'TERMINATED_TIMEOUT', reason }
      expect(await settled(id)).toMatchObject({ status: 'dead', attemptsMade: 3, attempts: [end, end, end] })
    }
  })

  it('a total timeout ends a task as expired before its first attempt, and as dead afterwards', async () => {
    const { create, enqueueTask, enqueue, start, settled } = await openSetup(open, { handle: gate().handle })
    await start()
    const late = create(long, {}, { timeout: 'none', totalTimeout: '1m' })
    const unstarted = await enqueueTask({ ...late, enqueuedAt: late.enqueuedAt - 60_001 })
    // Long enough for the task to start on a busy machine.
    const started = await enqueue(long, {}, { timeout: 'none', totalTimeout: '2s' })
    expect(await settled(unstarted)).toMatchObject({
      status: 'expired',
      fencingToken: 0,
      attemptsMade: 0,
      attempts: [{ reason: 'total_timeout', fencingToken: 0, counted: false }],
    })
    expect(await settled(started)).toMatchObject({
      status: 'dead',
      fencingToken: 1,
      attemptsMade: 1,
      attempts: [{ reason: 'total_timeout', fencingToken: 1, counted: true }],
    })
  })

  it('a snoozed task is scheduled, and uses up no attempt', async () => {
    const { enqueue, start, find, reaches, settled } = await openSetup(open, {
      handle: ({ fencingToken: number, snooze, input }) => (number === 1 ? snooze('2s') : input),
    })
    const id = await enqueue(long, {})
    await start()
    const snoozed = await reaches(id, 'scheduled')
    expect(snoozed).toMatchObject({
      fencingToken: 1,
      attemptsMade: 0,
      attempts: [{ state: 'TERMINATED_CTX_CLOSED', reason: 'snoozed', counted: false }],
    })
    expectAbout((snoozed.dueAt ?? 0) - (snoozed.attempts[0]?.endedAt ?? 0), 2_000)
    expect((await settled(id))?.status).toBe('completed')
    expect(await find(id)).toMatchObject({ fencingToken: 2, attemptsMade: 1 })
  })

  it('a task that snoozes after a failed attempt is scheduled, not retrying', async () => {
    const { enqueue, start, reaches } = await openSetup(open, {
      handle: ({ attempt, snooze }) => {
        if (attempt === 1) throw new TaskError('busy', 'not now')
        return snooze('1h')
      },
    })
    const id = await enqueue(long, {})
    await start()
    expect(await reaches(id, 'scheduled')).toMatchObject({ attemptsMade: 1, attempts: [{ code: 'busy' }, {}] })
  })

  it('a rate limit throttles its queue in every worker, uses up no attempt, and ends', async () => {
    const startedAt = new Map<TaskId, number>()
    const { enqueue, start, find, settled } = await openSetup(open, {
      handle: ({ id, fencingToken: number, input }) => {
        if (input.n === 1 && number === 1) throw rateLimited('400ms')
        startedAt.set(id, Date.now())
        return input
      },
    })
    await start('test:1')
    await start('test:2')
    const limited = await enqueue(short, { n: 1 })
    const end = { fencingToken: 1, attempt: 1, counted: false, state: 'TERMINATED_CTX_CLOSED', reason: 'rate_limited' }
    const { attempts: history } = await eventually(async () => {
      const record = await find(limited)
      return record.attempts.length > 0 && record
    })
    expect(history[0]).toMatchObject(end)
    const others = [await enqueue(long, {}), await enqueue(short, {})]
    for (const id of [limited, ...others]) {
      expect(await settled(id)).toMatchObject({ status: 'completed', attemptsMade: 1 })
      expect((startedAt.get(id) ?? 0) - (history[0]?.endedAt ?? 0)).toBeGreaterThanOrEqual(399)
    }
  })

  it('a further rate limit may extend a throttle but never shortens it, and running tasks run on', async () => {
    const throttled = Promise.withResolvers<void>()
    const goesOn = Promise.withResolvers<void>()
    const startedAt: number[] = []
    const { enqueue, start, find, settled } = await openSetup(open, {
      handle: async ({ fencingToken: number, input }) => {
        if (input.n === 0) {
          await goesOn.promise
          return input
        }
        if (number === 1 && input.n === 1) throw rateLimited('600ms')
        await throttled.promise
        if (number === 1) throw rateLimited('50ms')
        startedAt.push(Date.now())
        return input
      },
    })
    await start()
    const [running, first, second] = [
      await enqueue(long, { n: 0 }),
      await enqueue(long, { n: 2 }),
      await enqueue(long, { n: 1 }),
    ]
    const { attempts: history } = await eventually(async () => {
      const record = await find(second)
      return record.attempts.length > 0 && record
    })
    throttled.resolve()
    await eventually(async () => (await find(first)).attempts.length > 0)
    // This worker learns of the throttle only from the queue.
    await start('test:2')
    goesOn.resolve()
    expect(await settled(running)).toMatchObject({ status: 'completed', fencingToken: 1 })
    for (const id of [first, second]) expect(await settled(id)).toMatchObject({ status: 'completed', attemptsMade: 1 })
    expect(Math.min(...startedAt) - (history[0]?.endedAt ?? 0)).toBeGreaterThanOrEqual(599)
  })

  it('a handler that throttles its concurrency key throttles it in every worker for the given time, and uses up no attempt', async () => {
    const startedAt = new Map<TaskId, number>()
    const { enqueue, start, find, settled } = await openSetup(open, {
      handle: ({ id, fencingToken: number, input }) => {
        if (input.n > 0 && number === 1) throw rateLimited(`${input.n}ms`, { of: 'concurrencyKey' })
        startedAt.set(id, Date.now())
        return input
      },
    })
    const limit = async (n: number, concurrencyKey: string) => {
      const id = await enqueue(short, { n }, { concurrencyKey })
      const { attempts } = await eventually(async () => {
        const record = await find(id)
        return record.attempts.length > 0 && record
      })
      return { id, endedAt: attempts[0]?.endedAt ?? 0, attempts }
    }
    await start('test:1')
    await start('test:2')
    const [a, b, other] = [{ concurrencyKey: 'a' }, { concurrencyKey: 'b' }, { concurrencyKey: 'other' }]
    const throttled = await limit(3_600_000, 'a')
    const end = { fencingToken: 1, attempt: 1, counted: false, state: 'TERMINATED_CTX_CLOSED', reason: 'rate_limited' }
    expect(throttled.attempts).toMatchObject([{ ...end, message: 'the handler throttled the concurrency key for 1h' }])
    const later = await enqueue(long, {}, a)
    const { until = 0 } = await eventually(async () => {
      const { waitsFor } = await find(later)
      return waitsFor?.kind === 'rate' && waitsFor
    })
    expect(until - throttled.endedAt).toBeGreaterThan(3_599_000)
    // The other keys go on, and so do tasks without a key. They are throttled on their own.
    const { id, endedAt } = await limit(400, 'b')
    for (const call of [other, {}]) expect((await settled(await enqueue(long, {}, call)))?.status).toBe('completed')
    for (const each of [id, await enqueue(long, {}, b)]) {
      expect(await settled(each)).toMatchObject({ status: 'completed', attemptsMade: 1 })
      expect((startedAt.get(each) ?? 0) - endedAt).toBeGreaterThanOrEqual(399)
    }
    expect((await find(throttled.id)).fencingToken).toBe(1)
    expect((await find(later)).fencingToken).toBe(0)
  })

  it('a handler that throttles the concurrency key of a task without a key throttles the queue', async () => {
    const startedAt = new Map<TaskId, number>()
    const { enqueue, start, find, settled } = await openSetup(open, {
      handle: ({ id, fencingToken: number, input }) => {
        if (input.n === 1 && number === 1) throw rateLimited('400ms', { of: 'concurrencyKey' })
        startedAt.set(id, Date.now())
        return input
      },
    })
    await start()
    const limited = await enqueue(short, { n: 1 })
    const { attempts: history } = await eventually(async () => {
      const record = await find(limited)
      return record.attempts.length > 0 && record
    })
    for (const id of [limited, await enqueue(short, {}, { concurrencyKey: 'a' })]) {
      expect((await settled(id))?.status).toBe('completed')
      expect((startedAt.get(id) ?? 0) - (history[0]?.endedAt ?? 0)).toBeGreaterThanOrEqual(399)
    }
  })

  it('a pool cancels a running long task, and no short one', async () => {
    const { handle, holds, open: release } = gate()
    const { enqueue, start, settled } = await openSetup(open, { handle })
    const [id, brief] = await Promise.all([enqueue(long, {}), enqueue(short, {})])
    const pool = await start()
    await holds(2)
    expect(pool.cancel(id)).toBe('cancelling')
    expect(pool.cancel(brief)).toBe('not_cancellable')
    expect(await settled(id)).toMatchObject({
      status: 'cancelled',
      fencingToken: 1,
      attemptsMade: 1,
      attempts: [{ state: 'TERMINATED_STOP_SIGNAL', reason: 'cancelled', counted: true }],
    })
    expect(pool.cancel(id)).toBe('not_found')
    release()
    expect((await settled(brief))?.status).toBe('completed')
  })

  it('a task whose queue timeout has passed expires when it is fetched', async () => {
    const { create, enqueueTask, start, settled, events } = await openSetup(open)
    const task = create(long, {}, { queueTimeout: '50ms' })
    // The sweep ignores a task without an expiry time, so only a pool can find that it has expired.
    const id = await enqueueTask({ ...task, enqueuedAt: task.enqueuedAt - 51, expiresAt: undefined })
    await start()
    expect(await settled(id)).toMatchObject({
      status: 'expired',
      fencingToken: 0,
      attemptsMade: 0,
      attempts: [{ state: 'TERMINATED_TIMEOUT', reason: 'queue_timeout', fencingToken: 0, attempt: 1 }],
    })
    // The task shows its end before the pool has read the reply that it reports.
    await eventually(() => events.some((event) => event.event === 'attempt.ended' && event.verdict === 'expired'))
  })

  it('a queue timeout does not apply after the first attempt', async () => {
    const { enqueue, start, settled, expired } = await openSetup(open, {
      handle: ({ attempt }) => {
        if (attempt === 1) throw new TaskError('busy', 'not now', { retryAfter: '2500ms' })
        return { n: attempt }
      },
    })
    await start()
    const id = await enqueue(long, {}, { queueTimeout: '2s' })
    expect(await settled(id)).toMatchObject({ status: 'completed', output: { n: 2 } })
    expect(expired).toEqual([])
  })

  it('a task whose queue timeout has passed expires without any pool', async () => {
    const { enqueue, settled, expired, find } = await openSetup(open)
    const id = await enqueue(long, {}, { queueTimeout: '50ms' })
    const scheduled = await enqueue(long, {}, { queueTimeout: '50ms', delay: '1h' })
    const record = await settled(id)
    expect(record).toMatchObject({
      status: 'expired',
      fencingToken: 0,
      attempts: [{ fencingToken: 0, state: 'TERMINATED_TIMEOUT', reason: 'queue_timeout' }],
    })
    expect(expired).toEqual([id])
    expect((await find(scheduled)).status).toBe('scheduled')
  })

  it('a child is enqueued once over all attempts of its parent', async () => {
    const ran: string[] = []
    const { enqueue, start, settled, broker } = await openSetup(open, {
      handle: async ({ id, name, attempt, input, enqueue: born }) => {
        if (String(name) === child.name) {
          ran.push(id)
          return input
        }
        for (const childKey of ['a', 'b']) await born(child, { n: 1 }, { childKey })
        if (attempt === 1) throw new TaskError('busy', 'not now')
        return input
      },
    })
    await start()
    expect(await settled(await enqueue(long, {}))).toMatchObject({ status: 'completed', attemptsMade: 2 })
    await settled(ran[0] as never)
    await expect.poll(() => ran.length).toBe(2)
    await expect.poll(() => broker.counts(QUEUE)).toMatchObject({ completed: 3, waiting: 0, active: 0 })
    expect(new Set(ran).size).toBe(2)
  })
}

// Conformance: what becomes of a task by the end of its attempt.
import { rateLimited, TaskError, type TaskId } from '@bullpen/contract'
import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import type { OpenBackend } from './backend.ts'
import { child, expectAbout, gate, long, openStage, QUEUE, short } from './stage.ts'

export function verdicts(open: OpenBackend): void {
  it('a permanent failure is dead at once', async () => {
    const { enqueue, start, settled } = await openStage(open, {
      handle: () => {
        throw new TaskError('gone', 'no such thing', { retryable: false })
      },
    })
    await start()
    expect(await settled(await enqueue(long, {}))).toMatchObject({ status: 'dead', fencingToken: 1, attemptsMade: 1 })
  })

  it('output that the contract refuses is a panic', async () => {
    const { enqueue, start, settled } = await openStage(open, { handle: () => ({ n: 0.5 }) })
    await start()
    expect(await settled(await enqueue(short, {}))).toMatchObject({
      status: 'dead',
      attempts: [{ reason: 'invalid_output' }, {}, {}],
    })
  })

  it('input that the contract refuses reaches no handler', async () => {
    const { made, put, start, settled } = await openStage(open)
    await start()
    const id = await put({ ...made(long, {}), input: { n: 'one' } })
    expect(await settled(id)).toMatchObject({ status: 'dead', fencingToken: 1, attempts: [{ code: 'invalid_input' }] })
  })

  it('an attempt that runs too long, or shows no sign of life, times out and is tried again', async () => {
    const { enqueue, start, settled } = await openStage(open, { handle: gate().handle })
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
    const { made, put, enqueue, start, settled } = await openStage(open, { handle: gate().handle })
    await start()
    const late = made(long, {}, { timeout: 'none', totalTimeout: '1m' })
    const unstarted = await put({ ...late, enqueuedAt: late.enqueuedAt - 60_001 })
    const started = await enqueue(long, {}, { timeout: 'none', totalTimeout: '60ms' })
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

  it('a snooze is scheduled again, and uses up no attempt', async () => {
    const { enqueue, start, find, reaches, settled } = await openStage(open, {
      handle: ({ start: number, snooze, input }) => (number === 1 ? snooze('150ms') : input),
    })
    const id = await enqueue(long, {})
    await start()
    const snoozed = await reaches(id, 'scheduled')
    expect(snoozed).toMatchObject({
      fencingToken: 1,
      attemptsMade: 0,
      attempts: [{ state: 'TERMINATED_CTX_CLOSED', reason: 'snoozed', counted: false }],
    })
    expectAbout((snoozed.dueAt ?? 0) - (snoozed.attempts[0]?.endedAt ?? 0), 150)
    expect((await settled(id))?.status).toBe('completed')
    expect(await find(id)).toMatchObject({ fencingToken: 2, attemptsMade: 1 })
  })

  it('a snooze after a failed attempt is scheduled, not retrying', async () => {
    const { enqueue, start, reaches } = await openStage(open, {
      handle: ({ attempt, snooze }) => {
        if (attempt === 1) throw new TaskError('busy', 'not now')
        return snooze('1h')
      },
    })
    const id = await enqueue(long, {})
    await start()
    expect(await reaches(id, 'scheduled')).toMatchObject({ attemptsMade: 1, attempts: [{ code: 'busy' }, {}] })
  })

  it('a rate limit holds its queue in every process, uses up no attempt, and lets go within a second', async () => {
    const startedAt = new Map<TaskId, number>()
    const { enqueue, start, find, settled } = await openStage(open, {
      handle: ({ id, start: number, input }) => {
        if (input.n === 1 && number === 1) throw rateLimited('400ms')
        startedAt.set(id, Date.now())
        return input
      },
    })
    await start('test:1')
    await start('test:2')
    const limited = await enqueue(short, { n: 1 })
    const end = { fencingToken: 1, attempt: 1, counted: false, state: 'TERMINATED_CTX_CLOSED', reason: 'rate_limited' }
    const { attempts: history, ...held } = await eventually(async () => {
      const record = await find(limited)
      return record.status === 'waiting' && record.attempts.length === 1 && record
    })
    expect(held).toMatchObject({ fencingToken: 1, attemptsMade: 0 })
    expect(history).toMatchObject([end])
    const others = [await enqueue(long, {}), await enqueue(short, {})]
    for (const id of [limited, ...others]) {
      expect(await settled(id)).toMatchObject({ status: 'completed', attemptsMade: 1 })
      const waitedMs = (startedAt.get(id) ?? 0) - (history[0]?.endedAt ?? 0)
      expect(waitedMs).toBeGreaterThanOrEqual(399)
      expect(waitedMs).toBeLessThan(1_400)
    }
  })

  it('several rate limits extend the hold, and none shortens it; what runs goes on', async () => {
    const held = Promise.withResolvers<void>()
    const goesOn = Promise.withResolvers<void>()
    const startedAt: number[] = []
    const { enqueue, start, find, settled } = await openStage(open, {
      handle: async ({ start: number, input }) => {
        if (input.n === 0) {
          await goesOn.promise
          return input
        }
        if (number === 1 && input.n === 1) throw rateLimited('600ms')
        await held.promise
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
      return record.status === 'waiting' && record.attempts.length === 1 && record
    })
    held.resolve()
    await eventually(async () => (await find(first)).attempts.length === 1)
    // It has heard of no hold but by the queue itself.
    await start('test:2')
    goesOn.resolve()
    expect(await settled(running)).toMatchObject({ status: 'completed', fencingToken: 1 })
    expect(startedAt).toEqual([])
    for (const id of [first, second]) expect(await settled(id)).toMatchObject({ status: 'completed', attemptsMade: 1 })
    expect(Math.min(...startedAt) - (history[0]?.endedAt ?? 0)).toBeGreaterThanOrEqual(599)
  })

  it('a cancel ends a long task where it runs, and no short one', async () => {
    const { handle, holds, open: letGo } = gate()
    const { enqueue, start, settled } = await openStage(open, { handle })
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
    letGo()
    expect((await settled(brief))?.status).toBe('completed')
  })

  it('a queue timeout that has passed is seen when the task is taken', async () => {
    const { made, put, start, settled, events } = await openStage(open)
    const task = made(long, {}, { queueTimeout: '50ms' })
    // Not among those that the sweep looks at, as by a pool's default.
    const id = await put({ ...task, enqueuedAt: task.enqueuedAt - 51, expiresAt: undefined })
    await start()
    expect(await settled(id)).toMatchObject({
      status: 'expired',
      fencingToken: 0,
      attemptsMade: 0,
      attempts: [{ state: 'TERMINATED_TIMEOUT', reason: 'queue_timeout', fencingToken: 0, attempt: 1 }],
    })
    expect(events).toContainEqual(expect.objectContaining({ event: 'attempt.ended', verdict: 'expired' }))
  })

  it('a queue timeout says nothing of a task that has started, and waits for its next attempt', async () => {
    const { enqueue, start, settled, expired } = await openStage(open, {
      handle: ({ attempt }) => {
        if (attempt === 1) throw new TaskError('busy', 'not now', { retryAfter: '2500ms' })
        return { n: attempt }
      },
    })
    await start()
    const id = await enqueue(long, {}, { queueTimeout: '300ms' })
    expect(await settled(id)).toMatchObject({ status: 'completed', output: { n: 2 } })
    expect(expired).toEqual([])
  })

  it('a queue timeout that has passed is seen within 5 s where nobody takes anything', async () => {
    const { enqueue, settled, expired, find } = await openStage(open)
    const began = performance.now()
    const id = await enqueue(long, {}, { queueTimeout: '50ms' })
    const scheduled = await enqueue(long, {}, { queueTimeout: '50ms', delay: '1h' })
    const record = await settled(id)
    expect(performance.now() - began).toBeLessThan(5_000)
    expect(record).toMatchObject({
      status: 'expired',
      fencingToken: 0,
      attempts: [{ fencingToken: 0, state: 'TERMINATED_TIMEOUT', reason: 'queue_timeout' }],
    })
    expect(expired).toEqual([id])
    expect((await find(scheduled)).status).toBe('scheduled')
  })

  it('children are enqueued once, over all attempts of their parent', async () => {
    const ran: string[] = []
    const { enqueue, start, settled, broker } = await openStage(open, {
      handle: async ({ id, name, attempt, input, enqueue: born }) => {
        if (String(name) === child.name) {
          ran.push(id)
          return input
        }
        for (const key of ['a', 'b']) await born(child, { n: 1 }, { key })
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

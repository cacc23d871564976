// Why a task does not run.
import { rateLimited, TaskError, type TaskId, type WaitsFor } from '@bullpen/contract'
import { definitionLimiter, permitsLimiter, type WaitPool } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import type { OpenBackend } from './backend.ts'
import { gate, long, openSetup, type SetupOptions, short } from './setup.ts'

async function opened(open: OpenBackend, options: SetupOptions = {}) {
  const setup = await openSetup(open, { concurrency: 2, ...options })
  const { backend, broker, find, start } = setup
  const reason = async (id: TaskId): Promise<WaitsFor | undefined> => broker.waitsFor(await find(id))
  return {
    ...setup,
    reason,
    /** Returns the reason once it is of this kind. */
    becomes: <K extends WaitsFor['kind']>(id: TaskId, kind: K) =>
      eventually(async () => {
        const wait = await reason(id)
        return wait?.kind === kind && (wait as Extract<WaitsFor, { kind: K }>)
      }),
    /** Starts a worker, and lets the fleet know it. */
    async serve(worker = 'test:1', pool: Partial<WaitPool> = {}) {
      await backend.register?.(worker, { ...IDLE, ...pool })
      return start(worker)
    },
  }
}

const IDLE: WaitPool = { state: 'BG_RUNNING', paused: false, concurrency: 2, busy: 0, notReady: undefined }

export function waits(open: OpenBackend): void {
  it('a task whose queue no worker serves says since when, and a scheduled one that it is not due', async () => {
    const { enqueue, reason, serve, backend, settled } = await opened(open)
    const id = await enqueue(short, { n: 1 })
    expect(await reason(id)).toEqual({ kind: 'no_worker' })
    const { dueAt } = { dueAt: Date.now() + 3_600_000 }
    const scheduled = await reason(await enqueue(short, { n: 2 }, { delay: '1h' }))
    expect(scheduled?.kind === 'scheduled' && scheduled.until).toBeGreaterThanOrEqual(dueAt)
    const pool = await serve()
    expect(await settled(id)).toMatchObject({ status: 'completed' })
    await pool.drain({ drainMs: 1_000, graceMs: 1_000 })
    await backend.register?.('test:1', undefined)
    const next = await reason(await enqueue(short, { n: 3 }))
    expect(next).toMatchObject({ kind: 'no_worker', since: expect.any(Number) })
  })

  it('a task behind others waits for a slot, a running task for nothing, and a task that failed for its next attempt', async () => {
    const { handle, holds, open: release } = gate()
    const { enqueue, reason, serve, becomes, find } = await opened(open, {
      async handle(context) {
        await handle(context)
        if (context.input.n === 1) throw new TaskError('flaky', 'not now', { retryAfter: '1h' })
        return context.input
      },
    })
    const running = [await enqueue(long, { n: 1 }), await enqueue(long, {})]
    await serve('test:1', { busy: 2 })
    await holds(2)
    const behind = [await enqueue(long, {}), await enqueue(long, {}), await enqueue(long, {}, { priority: 3 })]
    for (const [ahead, id] of behind.entries()) {
      expect(await becomes(id, 'slot')).toEqual({ kind: 'slot', slots: 2, busy: 2, ahead })
    }
    for (const id of running) expect(await reason(id)).toBeUndefined()
    release()
    const failed = await becomes(running[0] ?? expect.fail(), 'retry')
    expect(failed).toEqual({
      kind: 'retry',
      until: (await find(running[0] ?? expect.fail())).dueAt,
      attempt: 2,
      maxAttempts: 3,
    })
  })

  it('a task that a worker could not run waits for another worker, and says which worker could not run it, and why', async () => {
    const { enqueue, start, becomes, settled } = await opened(open)
    const id = await enqueue(short, {})
    const old = await start('old:1', [short.name])
    const wait = await becomes(id, 'unsupported')
    expect(wait).toEqual({ kind: 'unsupported', until: expect.any(Number), worker: 'old:1', code: 'unknown_task' })
    await start('new:1')
    await old.drain({ drainMs: 1_000, graceMs: 1_000 })
    expect(await settled(id)).toMatchObject({ status: 'completed' })
  })

  it('a task of a throttled queue waits for the end of the throttle', async () => {
    const { enqueue, serve, becomes, find } = await opened(open, {
      handle({ input }) {
        if (input.n === 1) throw rateLimited('1h')
        return input
      },
    })
    const sent = Date.now()
    const first = await enqueue(short, { n: 1 })
    await serve()
    await eventually(async () => (await find(first)).attempts.length > 0)
    const { until } = await becomes(await enqueue(short, { n: 2 }), 'throttle')
    expect(until).toBeGreaterThan(sent + 3_500_000)
  })

  it('a task that needs permits or a start of its concurrency key waits for them if a worker serves the queue', async () => {
    const { handle, holds } = gate()
    const capacities = { [permitsLimiter('db')]: 1, [definitionLimiter(long.name)]: 9 }
    const keyLimits = { concurrency: 1, keys: {} }
    const { create, enqueueTask, enqueue, serve, becomes, reason } = await opened(open, {
      ...{ handle, capacities, keyLimits, concurrency: 9 },
    })
    const needing = () => enqueueTask({ ...create(long, {}), needs: [{ limiter: permitsLimiter('db'), amount: 1 }] })
    const first = await needing()
    expect(await reason(first)).toEqual({ kind: 'no_worker' })
    await enqueue(long, {}, { concurrencyKey: 'a' })
    await serve()
    await holds(2)
    expect(await becomes(await needing(), 'permits')).toEqual({ kind: 'permits', limiter: 'db', ahead: 0 })
    const second = await enqueue(long, {}, { concurrencyKey: 'a' })
    expect(await becomes(second, 'concurrency')).toEqual({ kind: 'concurrency', ahead: 0 })
  })

  it('a task whose worker was lost waits for the leader', async () => {
    const { handle, holds } = gate()
    const { backend, enqueue, serve, becomes } = await opened(open, { handle })
    const id = await enqueue(long, {})
    await serve()
    await holds(1)
    await backend.kill('test:1', [id])
    expect(await becomes(id, 'recovery')).toEqual({ kind: 'recovery' })
  })

  it('a task that has ended waits for nothing', async () => {
    const { broker, enqueue, serve, settled } = await opened(open)
    await serve()
    const record = (await settled(await enqueue(short, {}))) ?? expect.fail()
    expect(await broker.waitsFor(record)).toBeUndefined()
  })
}

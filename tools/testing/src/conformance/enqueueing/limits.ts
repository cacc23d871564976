// What a queue with limits accepts and refuses.
import { followUp, TaskError, type TaskId } from '@bullpen/contract'
import type { NewTask } from '@bullpen/engine'
import { idempotencyOf } from '@bullpen/engine/node'
import { expect, it } from 'vitest'
import type { OpenBackend } from '../backend.ts'
import { child, gate, long, openSetup, QUEUE, short } from '../setup.ts'

/** The tasks that count, by status. */
const IN_LINE = ['waiting', 'scheduled', 'retrying'] as const

async function openLimited(open: OpenBackend, maxTasks: number, options: Parameters<typeof openSetup>[1] = {}) {
  const setup = await openSetup(open, options)
  const { broker, create } = setup
  const limited = (task: NewTask): NewTask => ({ ...task, caller: 'only', limits: { maxTasks } })
  return {
    ...setup,
    limited,
    fill: async (tasks: number): Promise<readonly TaskId[]> => {
      const accepted: TaskId[] = []
      for (let i = 0; i < tasks; i++) accepted.push((await broker.enqueue(limited(create(long, { n: i })))).id)
      return accepted
    },
    refused: async (task: NewTask = create(long, {})) => {
      const error = await broker.enqueue(limited(task)).catch((caught) => caught)
      return error.reached
    },
    inLine: async (): Promise<number> => {
      const counts = await broker.counts(QUEUE)
      return IN_LINE.reduce((sum, status) => sum + counts[status], 0)
    },
  }
}

export function limits(open: OpenBackend): void {
  it('a queue accepts as many tasks as its limit says, and stores nothing of the next one', async () => {
    const { fill, limited, create, broker, find, inLine } = await openLimited(open, 3)
    const ids = await fill(3)
    const task = limited(create(long, {}))
    await expect(broker.enqueue(task)).rejects.toMatchObject({
      code: 'queue_full',
      message: `queue '${QUEUE}' is full: 3 tasks are waiting or scheduled, and maxTasks is 3; the task was not stored, so try again later`,
      reached: { queue: QUEUE, limit: 'maxTasks', max: 3, found: 3 },
    })
    expect(await broker.find(task.id)).toBeUndefined()
    expect(await broker.totals(QUEUE)).toMatchObject({ accepted: 3, unaccounted: 0 })
    expect(await inLine()).toBe(3)
    for (const id of ids) expect((await find(id)).status).toBe('waiting')
  })

  it('scheduled and prioritized tasks count, and are refused like others', async () => {
    const { create, limited, broker, refused } = await openLimited(open, 3)
    await broker.enqueue(limited(create(long, {}, { delay: '1h' })))
    await broker.enqueue(limited(create(long, {}, { priority: 3 })))
    await broker.enqueue(limited(create(short, {})))
    expect(await refused(create(long, {}, { delay: '1h' }))).toMatchObject({ found: 3 })
    expect(await refused(create(long, {}, { priority: 3 }))).toMatchObject({ found: 3 })
    expect(await refused(create(short, {}))).toMatchObject({ found: 3 })
  })

  it('there is room again when a task has been started, cancelled or ended', async () => {
    const { handle, open: release, holds } = gate()
    const { fill, refused, start, broker, drain, settled } = await openLimited(open, 2, { concurrency: 1, handle })
    const [first, second] = (await fill(2)) as [TaskId, TaskId]
    expect(await refused()).toMatchObject({ found: 2 })
    await start()
    await holds(1)
    const [third] = (await fill(1)) as [TaskId]
    expect(await refused()).toMatchObject({ found: 2 })
    await broker.cancel(second, { stoppable: true })
    await fill(1)
    expect(await refused()).toMatchObject({ found: 2 })
    release()
    for (const id of [first, third]) expect((await settled(id))?.status).toBe('completed')
    await drain()
  })

  it('a call for an existing task only returns that task, stores nothing, and is otherwise refused', async () => {
    const { fill, limited, create, broker, inLine } = await openLimited(open, 10)
    await fill(1)
    const idempotency = idempotencyOf({ key: 'k', caller: 'c', request: 'r', life: 600 })
    const [fresh, repeated, unique] = [
      limited(create(long, {})),
      { ...limited(create(long, {})), idempotency },
      limited(create(long, {}, { unique: { key: 'u', onConflict: 'keep' } })),
    ] as const
    const look = (task: NewTask) => broker.enqueue({ ...task, onlyExisting: true })
    for (const task of [fresh, repeated, unique]) {
      await expect(look(task)).rejects.toMatchObject({ code: 'queue_full' })
      expect(await broker.find(task.id)).toBeUndefined()
    }
    for (const task of [fresh, repeated, unique]) await broker.enqueue(task)
    expect(await look(fresh)).toMatchObject({ id: fresh.id })
    const again = { ...limited(create(long, {})), idempotency }
    expect(await look(again)).toMatchObject({ id: repeated.id, replayed: { status: 'waiting' } })
    const other = limited(create(long, {}, { unique: { key: 'u', onConflict: 'keep' } }))
    expect(await look(other)).toMatchObject({ id: unique.id, action: 'existing' })
    const replacing = limited(create(long, {}, { unique: { key: 'u', onConflict: 'replace' } }))
    await expect(look(replacing)).rejects.toMatchObject({ code: 'queue_full' })
    expect(await inLine()).toBe(4)
  })

  it('a task without limits is never refused, but it counts', async () => {
    const { fill, create, broker, refused } = await openLimited(open, 2)
    await fill(2)
    await broker.enqueue(create(long, {}))
    expect(await refused()).toMatchObject({ found: 3, max: 2 })
  })

  it('a child task is never refused', async () => {
    const { fill, refused, start, settled, inLine } = await openLimited(open, 1, {
      concurrency: 1,
      handle: async (context) => {
        if (context.input.n === 7) return context.input
        const children = [1, 2, 3].map((n) => context.enqueue(child, { n: 7 }, { childKey: `${n}`, delay: '1h' }))
        await Promise.all(children)
        return context.input
      },
    })
    const [parent] = (await fill(1)) as [TaskId]
    await start()
    expect((await settled(parent))?.status).toBe('completed')
    expect(await inLine()).toBe(3)
    expect(await refused()).toMatchObject({ found: 3, max: 1 })
  })

  it('a retry is never refused, but it counts', async () => {
    const { handle, open: release, holds } = gate()
    const { fill, refused, start, reaches } = await openLimited(open, 1, {
      concurrency: 1,
      handle: async (context) => {
        await handle(context)
        throw new TaskError('busy', 'try again later', { retryAfter: '1h' })
      },
    })
    const [first] = (await fill(1)) as [TaskId]
    await start()
    await holds(1)
    const [second] = (await fill(1)) as [TaskId]
    release()
    for (const id of [first, second]) await reaches(id, 'retrying')
    expect(await refused()).toMatchObject({ found: 2, max: 1 })
  })

  it('a requeued task is never refused, but it counts', async () => {
    const { handle, holds } = gate()
    const { fill, refused, start, drain, reaches } = await openLimited(open, 1, { concurrency: 1, handle })
    const [first] = (await fill(1)) as [TaskId]
    await start()
    await holds(1)
    await fill(1)
    await drain({ drainMs: 0 })
    await reaches(first, 'waiting')
    expect(await refused()).toMatchObject({ found: 2, max: 1 })
  })

  it.each([{}, { priority: 2 }])(
    'a limit of age refuses tasks while the next one waits for too long: %j',
    async (call) => {
      const { create, broker } = await openSetup(open)
      const limited = (maxAgeMs: number): NewTask => ({ ...create(long, {}, call), limits: { maxAgeMs } })
      const old = { ...create(long, {}, call), enqueuedAt: Date.now() - 90_000 }
      await broker.enqueue(old)
      await expect(broker.enqueue(limited(60_000))).rejects.toMatchObject({
        code: 'queue_full',
        message: expect.stringMatching(
          /is full: the next task has been waiting for 9\d+m?s, and maxAge is 1m; the task/,
        ),
        reached: { queue: QUEUE, limit: 'maxAge', max: 60_000 },
      })
      expect(await broker.enqueue(limited(600_000))).toMatchObject({ action: 'created' })
      await broker.cancel(old.id, { stoppable: true })
      expect(await broker.enqueue(limited(60_000))).toMatchObject({ action: 'created' })
    },
  )

  it('a limit of age does not look at scheduled tasks', async () => {
    const { create, broker } = await openSetup(open)
    await broker.enqueue({ ...create(long, {}, { delay: '1h' }), enqueuedAt: Date.now() - 90_000 })
    expect(await broker.enqueue({ ...create(long, {}), limits: { maxAgeMs: 60_000 } })).toMatchObject({
      action: 'created',
    })
  })

  it('a task that has been started before does not count as one that waits too long', async () => {
    const { handle, holds } = gate()
    const { create, broker, start, drain, reaches } = await openSetup(open, { concurrency: 1, handle })
    const old = { ...create(long, {}), enqueuedAt: Date.now() - 90_000 }
    await broker.enqueue(old)
    await start()
    await holds(1)
    await drain({ drainMs: 0 })
    await reaches(old.id, 'waiting')
    const next = { ...create(long, {}), limits: { maxAgeMs: 60_000 } }
    expect(await broker.enqueue(next)).toMatchObject({ action: 'created' })
  })

  it('a queue accepts tasks as long as they and the new one are within its limit of bytes', async () => {
    const { create, broker } = await openSetup(open)
    const sized = (maxBytes: number, n = 0): NewTask => ({ ...create(long, { n }), limits: { maxBytes } })
    await broker.enqueue(sized(10_000))
    const { bytes: one } = await broker.totals(QUEUE)
    // The stored string, which contains at least the input and the name of the task, and what the store keeps beside the string.
    expect(one).toBeGreaterThan(512 + 20)
    await broker.enqueue(sized(2 * one))
    await expect(broker.enqueue(sized(3 * one - 1))).rejects.toMatchObject({
      code: 'queue_full',
      message: `queue '${QUEUE}' is full: its unfinished tasks take ${2 * one} bytes, and this task would exceed maxBytes, which is ${3 * one - 1} bytes; the task was not stored, so try again later`,
      reached: { queue: QUEUE, limit: 'maxBytes', max: 3 * one - 1, found: 2 * one },
    })
    await broker.enqueue(sized(3 * one))
    await expect(broker.enqueue(sized(4 * one, 10))).rejects.toMatchObject({ reached: { found: 3 * one } })
    expect(await broker.totals(QUEUE)).toMatchObject({ bytes: 3 * one, accepted: 3, unaccounted: 0 })
  })

  it('scheduled and running tasks take bytes, and ended ones do not', async () => {
    const { handle, open: release, holds } = gate()
    const { create, broker, start, settled } = await openSetup(open, { concurrency: 1, handle })
    const bytes = async (): Promise<number> => (await broker.totals(QUEUE)).bytes
    const running = create(long, {})
    await broker.enqueue(running)
    const one = await bytes()
    await start()
    await holds(1)
    const scheduled = create(long, {}, { delay: '1h' })
    const expiring = { ...create(long, {}), enqueuedAt: Date.now() - 1_000, queueMs: 1, expiresAt: Date.now() - 999 }
    await broker.enqueue(scheduled)
    expect(await bytes()).toBe(2 * one)
    await broker.enqueue(expiring)
    expect((await settled(expiring.id))?.status).toBe('expired')
    expect(await bytes()).toBe(2 * one)
    await broker.cancel(scheduled.id, { stoppable: true })
    expect(await bytes()).toBe(one)
    release()
    expect((await settled(running.id))?.status).toBe('completed')
    expect(await bytes()).toBe(0)
  })

  it('retrying and requeued tasks take bytes, and dead ones do not', async () => {
    const { handle, holds } = gate()
    const { create, broker, start, drain, settled, reaches } = await openSetup(open, {
      handle: async (context) => {
        if (context.input.n === 1) throw new TaskError('gone', 'no', { retryable: false })
        if (context.input.n === 2) throw new TaskError('busy', 'try again later', { retryAfter: '1h' })
        return handle(context)
      },
    })
    const [dead, retrying, requeued] = [create(long, { n: 1 }), create(long, { n: 2 }), create(long, { n: 3 })]
    for (const task of [dead, retrying, requeued]) await broker.enqueue(task)
    const { bytes } = await broker.totals(QUEUE)
    await start()
    await settled(dead.id)
    await reaches(retrying.id, 'retrying')
    await holds(1)
    await drain({ drainMs: 0 })
    await reaches(requeued.id, 'waiting')
    expect((await broker.totals(QUEUE)).bytes).toBe((2 * bytes) / 3)
  })

  it('the follow-ups of a task are within the limit of bytes, too', async () => {
    const { create, broker } = await openSetup(open)
    const cancelled = async (task: NewTask): Promise<number> => {
      await broker.enqueue(task)
      const { bytes } = await broker.totals(QUEUE)
      await broker.cancel(task.id, { stoppable: true })
      return bytes
    }
    const plain = await cancelled(create(long, {}))
    const followed = () => create(long, {}, { onSuccess: [followUp(short, { n: 1 })] })
    const bytes = await cancelled(followed())
    expect(bytes).toBeGreaterThan(plain)
    const limited = (maxBytes: number): NewTask => ({ ...followed(), limits: { maxBytes } })
    const tooLarge = { code: 'payload_too_large', message: expect.stringContaining(`the call needs ${bytes} bytes`) }
    await expect(broker.enqueue(limited(bytes - 1))).rejects.toMatchObject(tooLarge)
    await broker.enqueue(limited(bytes))
    const full = { code: 'queue_full', reached: { limit: 'maxBytes', found: bytes } }
    await expect(broker.enqueue(limited(2 * bytes - 1))).rejects.toMatchObject(full)
    const pair = (maxBytes: number) => broker.enqueueAll([limited(maxBytes), limited(maxBytes)])
    await expect(pair(3 * bytes - 1)).rejects.toMatchObject(full)
    await expect(pair(2 * bytes - 1)).rejects.toMatchObject({
      ...tooLarge,
      message: expect.stringContaining(`the call needs ${2 * bytes} bytes`),
    })
    await pair(3 * bytes)
    expect(await broker.totals(QUEUE)).toMatchObject({ bytes: 3 * bytes, unaccounted: 0 })
  })

  it('a task that replaces another one with follow-ups takes the bytes of both', async () => {
    const { create, broker } = await openSetup(open)
    const unique = { key: 'k', onConflict: 'replace' } as const
    const call = () => create(long, {}, { unique, onSuccess: [followUp(short, { n: 1 })] })
    await broker.enqueue(call())
    const { bytes: maxBytes } = await broker.totals(QUEUE)
    expect(await broker.enqueue({ ...call(), limits: { maxBytes } })).toMatchObject({ action: 'replaced' })
    expect(await broker.totals(QUEUE)).toMatchObject({ bytes: maxBytes })
  })

  it('a task that replaces another one takes its bytes', async () => {
    const { create, broker } = await openSetup(open)
    const unique = { key: 'k', onConflict: 'replace' } as const
    await broker.enqueue(create(long, {}, { unique }))
    const { bytes: maxBytes } = await broker.totals(QUEUE)
    const next = { ...create(long, {}, { unique }), limits: { maxBytes } }
    expect(await broker.enqueue(next)).toMatchObject({ action: 'replaced' })
    expect(await broker.totals(QUEUE)).toMatchObject({ bytes: maxBytes, accepted: 2, removed: 1 })
  })

  it('a task that is larger than the limit of bytes is rejected for good, although the queue is empty', async () => {
    const { create, broker } = await openSetup(open)
    const task = { ...create(long, {}), limits: { maxBytes: 520 } }
    await expect(broker.enqueue(task)).rejects.toMatchObject({
      code: 'payload_too_large',
      message: expect.stringMatching(
        /^the call needs \d+ bytes, but all tasks of queue '.*' together may take 520 bytes \(maxBytes\)/,
      ),
    })
    expect(await broker.totals(QUEUE)).toMatchObject({ bytes: 0, accepted: 0 })
  })

  it('a repeated call gets its first response, although the queue is full by now', async () => {
    const { create, limited, broker, refused } = await openLimited(open, 1)
    const idempotency = idempotencyOf({ key: 'k', caller: 'ann', request: 'a', life: 600 })
    const call = (): NewTask => limited({ ...create(long, {}), idempotency })
    const first = call()
    const { id } = await broker.enqueue(first)
    expect(await refused()).toMatchObject({ found: 1 })
    expect(await broker.enqueue(call())).toMatchObject({ id, replayed: { status: 'waiting' } })
    expect(await broker.enqueue(first)).toEqual({ id, action: 'created' })
  })

  it('a refused call is not remembered, so that a repeated one is accepted once there is room', async () => {
    const { fill, create, limited, broker } = await openLimited(open, 1)
    const [only] = (await fill(1)) as [TaskId]
    const idempotency = idempotencyOf({ key: 'k', caller: 'ann', request: 'a', life: 600 })
    const call = (): NewTask => limited({ ...create(long, {}), idempotency })
    await expect(broker.enqueue(call())).rejects.toMatchObject({ code: 'queue_full' })
    await broker.cancel(only, { stoppable: true })
    const task = call()
    expect(await broker.enqueue(task)).toEqual({ id: task.id, action: 'created' })
  })

  it('of many concurrent calls, exactly as many are accepted as the limit says', async () => {
    const { create, limited, broker, inLine } = await openLimited(open, 20)
    const calls = Array.from({ length: 100 }, (_, i) => {
      const option = [{}, { delay: '1h' }, { priority: 1 }][i % 3]
      return broker.enqueue(limited(create(long, {}, option as object)))
    })
    const answers = await Promise.allSettled(calls)
    expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(20)
    expect(await inLine()).toBe(20)
  })
}

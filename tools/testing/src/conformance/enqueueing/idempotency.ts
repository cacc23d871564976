// Enqueueing with an idempotency key.
import type { Idempotency, NewTask } from '@bullpen/engine'
import { idempotencyOf } from '@bullpen/engine/node'
import { expect, it } from 'vitest'
import type { OpenBackend } from '../backend.ts'
import { long, openSetup, QUEUE, short } from '../setup.ts'

const DAY_S = 86_400

const idempotency = (key: string, request = 'a', caller = 'ann', life = DAY_S): Idempotency =>
  idempotencyOf({ key, caller, request, life })

export function idempotencyKeys(open: OpenBackend): void {
  it('the same key and request get the id and the action of the first call, before, during and after the run', async () => {
    const over = Promise.withResolvers<void>()
    const { create, broker, start, settled, reaches } = await openSetup(open, {
      handle: async ({ input }) => {
        await over.promise
        return input
      },
    })
    const enqueue = () => broker.enqueue({ ...create(long, {}), caller: 'only', idempotency: idempotency('k') })
    const first = await enqueue()
    expect(first).toEqual({ id: first.id, action: 'created' })
    const again = { id: first.id, action: 'created', replayed: { status: 'waiting' } }
    expect(await enqueue()).toEqual(again)
    await start()
    await reaches(first.id, 'active')
    expect(await enqueue()).toEqual(again)
    over.resolve()
    await settled(first.id)
    expect(await enqueue()).toEqual(again)
    const { waiting, completed } = await broker.counts(QUEUE)
    expect({ waiting, completed }).toEqual({ waiting: 0, completed: 1 })
  })

  it('a repeated call learns that the task was scheduled at first', async () => {
    const { create, broker } = await openSetup(open)
    const enqueue = () => broker.enqueue({ ...create(short, {}, { delay: '1h' }), idempotency: idempotency('k') })
    const { id } = await enqueue()
    expect(await enqueue()).toMatchObject({ id, action: 'created', replayed: { status: 'scheduled' } })
  })

  it('the same key with a different request is rejected, and nothing is stored', async () => {
    const { create, broker } = await openSetup(open)
    await broker.enqueue({ ...create(short, {}), idempotency: idempotency('k', 'a') })
    await expect(broker.enqueue({ ...create(short, {}), idempotency: idempotency('k', 'b') })).rejects.toMatchObject({
      code: 'idempotency_key_reused',
    })
    expect(await broker.totals(QUEUE)).toMatchObject({ accepted: 1, unaccounted: 0 })
  })

  it('the same key of another caller is another key', async () => {
    const { create, broker } = await openSetup(open)
    const ids = new Set<string>()
    for (const caller of ['ann', 'bob', 'annx']) {
      ids.add((await broker.enqueue({ ...create(short, {}), idempotency: idempotency('k', 'a', caller) })).id)
    }
    expect(ids.size).toBe(3)
  })

  it('of many concurrent calls with the same key, one creates the task, and all get its id', async () => {
    const { create, broker } = await openSetup(open)
    const call = (): Promise<{ id: string; replayed?: unknown }> =>
      broker.enqueue({ ...create(short, {}), caller: 'only', idempotency: idempotency('k') })
    const answers = await Promise.all(Array.from({ length: 50 }, call))
    expect(new Set(answers.map(({ id }) => id)).size).toBe(1)
    expect(answers.filter(({ replayed }) => replayed === undefined)).toHaveLength(1)
    expect(await broker.totals(QUEUE)).toMatchObject({ accepted: 1 })
  })

  it('a call that is sent again with its own id does not count as repeated', async () => {
    const { create, broker } = await openSetup(open)
    const task: NewTask = { ...create(short, {}), caller: 'only', idempotency: idempotency('k') }
    expect(await broker.enqueue(task)).toEqual({ id: task.id, action: 'created' })
    expect(await broker.enqueue(task)).toEqual({ id: task.id, action: 'created' })
  })

  it('a call that is refused is not remembered', async () => {
    const { create, broker } = await openSetup(open)
    const call = { caller: 'only', idempotency: idempotency('k') } as const
    const tooLarge = { ...create(long, {}, { meta: { x: 'y'.repeat(20_000) } }), ...call }
    await expect(broker.enqueue(tooLarge)).rejects.toMatchObject({ code: 'payload_too_large' })
    const task = { ...create(long, {}), ...call }
    expect(await broker.enqueue(task)).toEqual({ id: task.id, action: 'created' })
  })
}

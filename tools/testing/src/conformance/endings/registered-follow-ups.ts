// Tests that every broker keeps the follow-ups that a handler registers for a failure or for any end, whichever attempt or process ends
// the task.
import { TaskError, type TaskId } from '@bullpen/contract'
import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import type { OpenBackend } from '../backend.ts'
import { after, type Context, child, gate, long, QUEUE, short } from '../setup.ts'
import { fatal } from './compensation.ts'
import { ONE_OF_EACH, openFollowed } from './follow-ups.ts'

/** Registers a follow-up for each kind of end. Their inputs tell them apart. */
async function registerAll({ onSuccess, onFailure, onEnd }: Context): Promise<void> {
  onSuccess(after, { n: 10 })
  await onFailure(after, { n: 20 })
  await onEnd(after, { n: 30 })
}

export function registeredFollowUps(open: OpenBackend): void {
  it('an end releases what the handler has registered for it, besides the follow-ups of the call', async () => {
    const { enqueue, start, settled, followed, find, broker } = await openFollowed(open, {
      async handle(context) {
        await registerAll(context)
        if (context.input.n === 13) throw fatal()
        return context.input
      },
    })
    await start()
    for (const definition of [short, long]) {
      const [lives, dies] = [await enqueue(definition, {}, ONE_OF_EACH), await enqueue(definition, { n: 13 })]
      expect((await settled(lives))?.status).toBe('completed')
      expect((await settled(dies))?.status).toBe('dead')
      expect(await followed(lives)).toEqual([1, 10, 3, 30])
      expect(await followed(dies)).toEqual([20, 30])
      expect(await find(lives)).not.toHaveProperty('followUps')
    }
    expect((await broker.totals(QUEUE)).bytes).toBe(0)
  })

  it('a running task shows what it has registered, and a cancel releases only the follow-up of any end', async () => {
    const { handle, holds } = gate()
    const { enqueue, start, settled, followed, find, broker } = await openFollowed(open, {
      async handle(context) {
        await registerAll(context)
        return handle(context)
      },
    })
    await start()
    const id = await enqueue(long, {})
    await holds(1)
    expect((await find(id)).followUps).toMatchObject([{ on: 'failure' }, { on: 'end' }])
    await broker.cancel(id, { stoppable: true })
    expect((await settled(id))?.status).toBe('cancelled')
    expect(await followed(id)).toEqual([30])
  })

  it('a registration with the same definition and key counts once for each kind, also in a later attempt', async () => {
    const { enqueue, start, settled, followed } = await openFollowed(open, {
      async handle({ attempt, input, onFailure, onEnd }) {
        for (const n of [attempt, 10 * attempt]) {
          await onFailure(after, { n })
          await onEnd(after, { n: 2 * n })
        }
        if (attempt === 1) await onEnd(after, { n: 5 }, { key: 'first' })
        if (attempt < 3) throw new TaskError('busy', 'not yet')
        if (input.n === 13) throw fatal()
        return input
      },
    })
    await start()
    const [dies, lives] = [await enqueue(long, { n: 13 }), await enqueue(long, { n: 1 }, ONE_OF_EACH)]
    expect(await settled(dies)).toMatchObject({ status: 'dead', attemptsMade: 3 })
    expect((await settled(lives))?.status).toBe('completed')
    expect(await followed(dies)).toEqual([30, 5, 60])
    expect(await followed(lives)).toEqual([1, 3, 5, 60])
  })

  it('a follow-up that a killed worker has registered is released by the end in another one', async () => {
    const { handle, holds } = gate()
    const { enqueue, start, settled, followed, backend } = await openFollowed(open, {
      async handle(context) {
        if (context.fencingToken > 1) throw fatal()
        await registerAll(context)
        return handle(context)
      },
    })
    const id = await enqueue(long, {})
    await start('gone')
    await holds(1)
    await backend.kill('gone', [id])
    await start('other')
    expect((await settled(id))?.status).toBe('dead')
    expect(await followed(id)).toEqual([20, 30])
  })

  it('a dead task that is retried releases again what it has registered, and registering it again counts once', async () => {
    const { enqueue, start, settled, followed, followUpsOf, broker } = await openFollowed(open, {
      async handle(context) {
        await registerAll(context)
        throw fatal()
      },
    })
    await start()
    const id = await enqueue(long, {})
    expect((await settled(id))?.status).toBe('dead')
    expect(await followed(id)).toEqual([20, 30])
    await broker.retry(id, { request: 'r1', by: 'ann' })
    await eventually(async () => (await followUpsOf(id)).length === 4)
    expect(await followed(id)).toEqual([20, 20, 30, 30])
  })

  it('a compensation that registers a follow-up is still followed by the compensation before it', async () => {
    const order: number[] = []
    const ids: TaskId[] = []
    const { enqueue, start, settled, followed } = await openFollowed(open, {
      async handle({ id, name, input, compensate, onEnd }) {
        if (String(name) !== child.name) {
          for (const n of [1, 2, 3]) await compensate(child, { n }, { key: `${n}` })
          throw fatal()
        }
        await onEnd(after, { n: 10 * input.n })
        order.push(input.n)
        ids.push(id)
        return input
      },
    })
    await start()
    await settled(await enqueue(long, {}))
    await eventually(() => order.length === 3)
    expect(order).toEqual([3, 2, 1])
    for (const [i, id] of ids.entries()) {
      await settled(id)
      expect(await followed(id)).toEqual([30 - 10 * i])
    }
  })

  it('more than 16 follow-ups are refused, and so is one by an attempt that has lost its lock', async () => {
    const lost = Promise.withResolvers<void>()
    const errors: unknown[] = []
    const { enqueue, start, settled, followed, backend } = await openFollowed(open, {
      async handle({ fencingToken, onFailure, onEnd, input }) {
        if (fencingToken > 1) return input
        // The call has three.
        for (let n = 100; n < 114; n++) {
          await onEnd(after, { n }, { key: `${n}` }).catch((error: unknown) => errors.push(error))
        }
        await onFailure(after, { n: 1 }, { key: 'not valid' }).catch((error: unknown) => errors.push(error))
        await lost.promise
        await onFailure(after, { n: 1 }).catch((error: unknown) => errors.push(error))
        throw new Error('the lock is lost')
      },
    })
    await start()
    const id = await enqueue(long, {}, ONE_OF_EACH)
    await eventually(() => errors.length === 2)
    expect(errors).toMatchObject([{ code: 'payload_too_large' }, { code: 'invalid_request' }])
    await backend.loseLock(id)
    lost.resolve()
    await eventually(() => errors.length === 3)
    expect(errors[2]).toMatchObject({ code: expect.stringMatching(/^(lock_lost|wrong_state)$/) })
    expect((await settled(id))?.status).toBe('completed')
    const ends = Array.from({ length: 13 }, (_, i) => 100 + i)
    expect((await followed(id)).toSorted((a, b) => a - b)).toEqual([1, 3, ...ends])
  })
}

// Tests that every broker enqueues the follow-ups that a definition has for each of its tasks, however the task was enqueued.
import { defineSchedule, followUp, type TaskId } from '@bullpen/contract'
import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import type { OpenBackend } from '../backend.ts'
import { AFTER, after, countdown, long, nesting, QUEUE, ruled } from '../setup.ts'
import { fatal } from './compensation.ts'
import { openFollowed } from './follow-ups.ts'

const ONE_OF_EACH = { n: 0, success: 1, failure: 1, end: 1 }

export function definedFollowUps(open: OpenBackend): void {
  it('a task has the follow-ups that its definition creates from its input and output, and those that its call names', async () => {
    const { enqueue, start, settled, followed, find } = await openFollowed(open, {
      handle({ input }) {
        if (input.n === 13) throw fatal()
        return { n: input.n + 1 }
      },
    })
    const call = { onSuccess: [followUp(after, { n: 1 })], onFailure: [followUp(after, { n: 2 })] }
    const [lives, dies] = [
      await enqueue(ruled, { ...ONE_OF_EACH, n: 5 }, call),
      await enqueue(ruled, { ...ONE_OF_EACH, n: 13 }, call),
    ]
    expect((await find(lives)).followUps?.map(({ on }) => on)).toEqual(['failure', 'end', 'success', 'failure'])
    await start()
    expect((await settled(lives))?.status).toBe('completed')
    expect((await settled(dies))?.status).toBe('dead')
    expect(await followed(lives)).toEqual([1, 100 + 10 * 11, 300 + 10 * 5])
    expect(await followed(dies)).toEqual([2, 200 + 10 * 13, 300 + 10 * 13].toSorted())
  })

  it('the record of a task has the queues of the follow-ups that its call has named, at any depth, and none of definitions', async () => {
    const { enqueue, start, settled, find } = await openFollowed(open, {
      handle() {
        throw fatal()
      },
    })
    const call = {
      onSuccess: [followUp(after, { n: 1 }, { onEnd: [followUp(ruled, ONE_OF_EACH)] }), followUp(after, { n: 2 })],
    }
    const id = await enqueue(ruled, { ...ONE_OF_EACH, n: 13 }, call)
    expect((await find(id)).followUpQueues).toEqual([AFTER, QUEUE, AFTER])
    expect((await find(await enqueue(ruled, ONE_OF_EACH))).followUpQueues).toEqual([])
    expect((await find(await enqueue(long, {}))).followUpQueues).toBeUndefined()
    await start()
    expect(await settled(id)).toMatchObject({ status: 'dead', followUpQueues: [AFTER, QUEUE, AFTER] })
  })

  it('the follow-ups of a follow-up are stored with it', async () => {
    const { enqueue, start, settled, followed, broker } = await openFollowed(open, {
      handle() {
        throw fatal()
      },
    })
    await start()
    const id = await enqueue(nesting, { n: 7 })
    await settled(id)
    const nested = await eventually(async () => {
      const { tasks } = await broker.list({ queue: QUEUE, status: 'scheduled', limit: 10, cursor: undefined })
      return tasks[0]
    })
    expect(nested).toMatchObject({ task: ruled.name, followUpOf: id, tags: ['nested'] })
    expect(nested.followUps).toEqual([
      { on: 'failure', task: after.name, queue: AFTER },
      { on: 'end', task: after.name, queue: AFTER },
    ])
    expect(await broker.cancel(nested.id, { stoppable: true })).toBe('cancelled')
    await settled(nested.id)
    expect(await followed(nested.id)).toEqual([300 + 10 * 7])
  })

  it('a child task has the follow-ups of its call and of its definition', async () => {
    const children: TaskId[] = []
    const { enqueue, start, settled, followed } = await openFollowed(open, {
      async handle({ input, name, enqueue: enqueueChild }) {
        if (String(name) === ruled.name) return input
        const call = { onSuccess: [followUp(after, { n: 1 })], onEnd: [followUp(after, { n: 3 })] }
        children.push((await enqueueChild(ruled, ONE_OF_EACH, call)).id)
        return input
      },
    })
    await start()
    await settled(await enqueue(long, {}))
    const [childId] = children as [TaskId]
    expect((await settled(childId))?.status).toBe('completed')
    expect(await followed(childId)).toEqual([1, 100, 3, 300])
  })

  it('a task of a schedule has the follow-ups of its definition', async () => {
    const { start, settled, followed, broker } = await openFollowed(open)
    await start()
    const definition = defineSchedule({
      name: 'ruled',
      cron: '0 0 1 1 *',
      task: ruled,
      input: { ...ONE_OF_EACH, n: 4 },
    })
    await broker.schedules.put(definition, { source: 'api', by: 'ann' })
    const { id } = await broker.schedules.run('ruled')
    await settled(id)
    expect(await followed(id)).toEqual([180, 340])
  })

  it('follow-ups of a success may continue one another, but at most 32 in a row', async () => {
    const { enqueue, start, settled, broker, events } = await openFollowed(open, { handle: ({ input }) => input })
    await start()
    const ended = () => events.flatMap((event) => (event.event === 'attempt.ended' ? [event] : []))
    await settled(await enqueue(countdown, { n: 3 }))
    await eventually(() => ended().length === 4)
    await settled(await enqueue(countdown, { n: 100 }))
    await eventually(() => ended().length === 4 + 33)
    const last = ended().at(-1)
    expect(last).toMatchObject({ state: 'RECOVER_ERR', reason: 'invalid_follow_up' })
    expect((await settled(last?.id as TaskId))?.status).toBe('dead')
    await eventually(async () => (await broker.totals(QUEUE)).outbox.entries === 0)
    expect((await broker.counts(AFTER)).waiting).toBe(0)
  })
}

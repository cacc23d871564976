// Tests that every broker cancels by filter: by queue, task name, tag and age.
import { TaskError } from '@bullpen/contract'
import type { CancelFilter } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import type { OpenBackend } from '../backend.ts'
import { gate, long, openSetup, QUEUE, short } from '../setup.ts'

const all = (more: Partial<CancelFilter> = {}): CancelFilter => ({
  queue: QUEUE,
  before: Date.now(),
  reason: 'cancelled',
  ...more,
})

const NEVER_STARTED = {
  status: 'cancelled',
  fencingToken: 0,
  attemptsMade: 0,
  dueAt: undefined,
  attempts: [{ fencingToken: 0, attempt: 1, state: 'TERMINATED_STOP_SIGNAL', reason: 'cancelled' }],
}

export function filteredCancels(open: OpenBackend): void {
  it('it cancels every waiting and scheduled task at once, and no task that is enqueued later', async () => {
    const called: string[] = []
    const { enqueue, start, find, settled, broker, idsOf } = await openSetup(open, {
      handle: ({ id, input }) => {
        called.push(id)
        return input
      },
    })
    const covered = [await enqueue(long, {}), await enqueue(short, {}), await enqueue(short, {}, { delay: '1h' })]
    const { id } = await broker.cancelMany(all())
    for (const task of covered) expect(await find(task)).toMatchObject(NEVER_STARTED)
    expect(await idsOf('waiting')).toEqual([])
    expect(await idsOf('scheduled')).toEqual([])
    const later = await enqueue(long, { n: 7 })
    await start()
    expect((await settled(later))?.output).toEqual({ n: 7 })
    await eventually(async () => (await broker.cancelProgress(id))?.doneAt !== undefined)
    expect(await broker.cancelProgress(id)).toMatchObject({ rule: { id, queue: QUEUE }, ended: 3 })
    // The records do not change when a worker encounters the cancelled tasks.
    for (const task of covered) expect(await find(task)).toMatchObject(NEVER_STARTED)
    expect((await idsOf('cancelled')).toSorted()).toEqual(covered.toSorted())
    expect(called).toEqual([later])
  })

  it('with queue_shutdown it cancels tasks that are not running; a running one is cancelled only if it is requeued', async () => {
    const { handle, holds, open: release } = gate()
    const { enqueue, start, find, settled, broker } = await openSetup(open, { handle, concurrency: 2 })
    const pool = await start()
    const [finishes, goesBack] = [await enqueue(long, { n: 3 }), await enqueue(long, {})]
    await holds(2)
    const waits = await enqueue(long, {})
    const { id } = await broker.cancelMany(all({ reason: 'queue_shutdown' }))
    const ended = { status: 'cancelled', attempts: [{ fencingToken: 0, reason: 'queue_shutdown' }] }
    expect(await settled(waits)).toMatchObject(ended)
    expect((await find(finishes)).status).toBe('active')
    const worker = pool.slots().find(({ task }) => task?.id === goesBack)?.slot ?? 0
    pool.stopSlot(worker, 'hard')
    expect(await settled(goesBack)).toMatchObject({
      status: 'cancelled',
      fencingToken: 1,
      attempts: [{ reason: 'slot_stopped' }, { fencingToken: 0, reason: 'queue_shutdown' }],
    })
    release()
    expect(await settled(finishes)).toMatchObject({ status: 'completed', output: { n: 3 } })
    await eventually(async () => (await broker.cancelProgress(id))?.doneAt !== undefined)
  })

  it('it covers tasks that match all of its conditions: name, tag and age', async () => {
    const { enqueue, start, find, settled, broker, enqueueTask, create } = await openSetup(open)
    const tags = ['batch:7', 'x']
    const old = { ...create(long, {}, { tags }), enqueuedAt: Date.now() - 60_000 }
    const hit = await enqueueTask(old)
    const others = [
      await enqueueTask({ ...create(short, { n: 1 }, { tags }), enqueuedAt: old.enqueuedAt }),
      await enqueueTask({ ...create(long, { n: 1 }, { tags: ['batch:77', 'batch'] }), enqueuedAt: old.enqueuedAt }),
      await enqueueTask({ ...create(long, { n: 1 }), enqueuedAt: old.enqueuedAt }),
      await enqueue(long, { n: 1 }, { tags }),
    ]
    const { id } = await broker.cancelMany(
      all({ task: 'conformance.long', tag: 'batch:7', before: Date.now() - 30_000 }),
    )
    expect(await find(hit)).toMatchObject({ ...NEVER_STARTED, tags })
    await start()
    for (const other of others) expect(await settled(other)).toMatchObject({ status: 'completed' })
    await eventually(async () => (await broker.cancelProgress(id))?.doneAt !== undefined)
    expect(await broker.cancelProgress(id)).toMatchObject({ ended: 1 })
    expect(await find(hit)).toMatchObject(NEVER_STARTED)
  })

  it('it cancels a retrying task, which keeps the records of its attempts', async () => {
    const { enqueue, start, find, reaches, broker } = await openSetup(open, {
      handle: () => {
        throw new TaskError('busy', 'not now', { retryAfter: '1h' })
      },
    })
    await start()
    const id = await enqueue(long, {})
    await reaches(id, 'retrying')
    await broker.cancelMany(all())
    expect(await find(id)).toMatchObject({
      status: 'cancelled',
      fencingToken: 1,
      attemptsMade: 1,
      attempts: [
        { fencingToken: 1, state: 'DONE_ERROR', code: 'busy' },
        { fencingToken: 0, attempt: 2, reason: 'cancelled' },
      ],
    })
  })

  it('it stops running long tasks in every worker', async () => {
    const { handle, holds } = gate()
    const { enqueue, start, settled, broker } = await openSetup(open, { handle, concurrency: 1 })
    await start('one')
    await start('two')
    const ids = [await enqueue(long, {}), await enqueue(long, {})]
    await holds(2)
    await broker.cancelMany(all())
    for (const task of ids) {
      expect(await settled(task)).toMatchObject({
        status: 'cancelled',
        fencingToken: 1,
        attempts: [{ fencingToken: 1, state: 'TERMINATED_STOP_SIGNAL', reason: 'cancelled' }],
      })
    }
  })

  it('it lets a running short task finish, cancels its retry, and is done only then', async () => {
    const fails = Promise.withResolvers<never>()
    const calls: number[] = []
    const handle = ({ input: { n } }: { readonly input: { readonly n: number } }) => {
      calls.push(n)
      return n === 0 ? fails.promise : { n }
    }
    const { enqueue, start, settled, broker } = await openSetup(open, { handle })
    await start()
    const id = await enqueue(short, {})
    await eventually(() => calls.length === 1)
    const { id: cancel } = await broker.cancelMany(all())
    expect((await broker.cancelProgress(cancel))?.doneAt).toBe(undefined)
    fails.reject(new TaskError('busy', 'not now'))
    expect(await settled(id)).toMatchObject({
      status: 'cancelled',
      fencingToken: 1,
      attemptsMade: 1,
      attempts: [
        { fencingToken: 1, code: 'busy' },
        { fencingToken: 0, attempt: 2, reason: 'cancelled' },
      ],
    })
    const other = await enqueue(short, { n: 1 })
    expect(await settled(other)).toMatchObject({ status: 'completed' })
    await eventually(async () => (await broker.cancelProgress(cancel))?.doneAt !== undefined)
    expect(calls).toEqual([0, 1])
  })

  it('it records the reason and the author of the cancel', async () => {
    const { enqueue, settled, broker } = await openSetup(open)
    const id = await enqueue(long, {})
    await broker.cancelMany(all({ reason: 'queue_shutdown', by: 'drain:7' }))
    expect(await settled(id)).toMatchObject({
      status: 'cancelled',
      attempts: [{ state: 'TERMINATED_STOP_SIGNAL', reason: 'queue_shutdown', by: 'drain:7' }],
    })
  })

  it('it is refused for an unknown queue, and not found by an unknown id', async () => {
    const { broker, create } = await openSetup(open)
    await expect(broker.cancelMany(all({ queue: 'nowhere' }))).rejects.toMatchObject({ code: 'queue_not_found' })
    expect(await broker.cancelProgress(create(long, {}).id)).toBe(undefined)
    expect(await broker.cancelProgress('nowhere-1')).toBe(undefined)
  })
}

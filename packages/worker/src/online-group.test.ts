// Tests worker processes that run one group, take no other tasks, and exit when the group has ended.
import { randomBytes, randomUUID } from 'node:crypto'
import { defineHandler, type GroupId, type TaskId } from '@bullpen/contract'
import { type CommandSpec, createGroupId, createTaskId, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import type { NewTask } from '@bullpen/engine'
import { newGroup, newTask } from '@bullpen/engine/internal'
import { spawnProgram } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { describe, expect, inject, it, onTestFinished, vi } from 'vitest'
import { createWorker } from './create-worker.ts'
import { batchCatalogue, cover, page } from './online-group-worker.fixture.ts'
import { openPatientBroker, openPatientFleet } from './patient-connections.fixture.ts'
import { runUntilSignalled } from './run-until-signalled.ts'

/** A namespace with 5 tasks that belong to no group. */
async function openWorld() {
  const [redisUrl, namespace] = [inject('redisUrl'), `t-${randomUUID().slice(0, 12)}`]
  // The worker leads, also if it is the only process with a pool.
  const common = { redisUrl, namespace, queues: batchCatalogue.queues, leads: false }
  const broker = openPatientBroker(common)
  const fleet = openPatientFleet({ redisUrl, namespace, queues: batchCatalogue.queues })
  onTestFinished(async () => {
    await fleet.close()
    await Promise.allSettled(broker.boardQueues.map((queue) => queue.obliterate({ force: true })))
    await broker.close()
  })
  await eventually(() => broker.ping().then(() => true))
  const create = (definition: typeof page | typeof cover, ms = 0): NewTask => {
    const id = createTaskId(definition.queue, Date.now(), randomBytes(ID_RANDOM_BYTES))
    return newTask(definition, { ms }, {}, { id, enqueuedAt: Date.now(), correlationId: undefined })
  }
  const others = [page, cover, page, cover, page].map((definition) => create(definition))
  for (const task of others) await broker.enqueue(task)
  const statuses = (ids: readonly TaskId[]) => Promise.all(ids.map(async (id) => (await broker.find(id))?.status))
  const newId = (): GroupId => createGroupId(Date.now(), randomBytes(ID_RANDOM_BYTES))
  return {
    ...{ broker, fleet, create, newId },
    async groupOf(tasks: readonly NewTask[], seal = true): Promise<{ id: GroupId; ids: readonly TaskId[] }> {
      const id = newId()
      await broker.groups.create(newGroup(id, {}, 'ann'))
      const { ids } = await broker.groups.add(id, { key: 'all', digest: '', tasks, seal })
      // Members are enqueued after the reply, and waitUntilFinished returns at once for a task that does not exist yet.
      await eventually(async () => !(await statuses(ids)).includes(undefined))
      return { id, ids }
    },
    statuses,
    async expectOthersWaiting(): Promise<void> {
      for (const { id } of others) {
        expect(await broker.find(id)).toMatchObject({ status: 'waiting', fencingToken: 0 })
      }
    },
    start: (...args: readonly string[]) =>
      spawnProgram(new URL('online-group-worker.fixture.ts', import.meta.url).pathname, [
        '--redis-url',
        redisUrl,
        '--namespace',
        namespace,
        '--pools',
        'pages=4,covers=2',
        ...args,
      ]),
    /** A worker in this process, whose pools are `pools`. */
    worker: (pools: Readonly<Record<string, number>>, group?: string) =>
      createWorker({
        catalogue: batchCatalogue,
        handlers: {
          'batch.page': defineHandler(page, import.meta.url, () => ({})),
          'batch.cover': defineHandler(cover, import.meta.url, () => ({})),
        },
        config: { redisUrl, namespace, pools, port: 0, logLevel: 'silent', ...(group && { group }) },
      }),
  }
}

describe('a worker process with --group', () => {
  it('runs the members in all queues, leaves other tasks waiting, and exits with 0 when the group has ended', async () => {
    const { create, groupOf, start, broker, expectOthersWaiting, worker: another } = await openWorld()
    const { id } = await groupOf(Array.from({ length: 20 }, (_, n) => create(n % 3 === 0 ? cover : page)))
    const worker = start('--group', id)
    expect(await worker.exited).toBe(0)
    expect(await broker.groups.find(id)).toMatchObject({ state: 'ended', ends: { completed: 20 } })
    expect(worker.output()).toContain('running one group')
    await expectOthersWaiting()
    // A group that has ended gives the next worker nothing to do.
    expect(await runUntilSignalled(another({ pages: 2, covers: 2 }, id))).toBe(0)
    await expectOthersWaiting()
  })

  it('requeues what runs on SIGTERM and exits with 1, and its successor finishes the group', async () => {
    const { create, groupOf, start, broker, statuses, expectOthersWaiting } = await openWorld()
    const { id, ids } = await groupOf([create(page, 60_000), create(cover), create(cover)])
    const worker = start('--group', id, '--drain-timeout', '50ms')
    await eventually(async () => (await statuses(ids)).join() === 'active,completed,completed')
    worker.child.kill('SIGTERM')
    expect(await worker.exited).toBe(1)
    expect(worker.output()).toMatch(new RegExp(`"id":"${id}".*group has not ended`))
    expect(await broker.find(ids[0] as TaskId)).toMatchObject({ status: 'waiting', attemptsMade: 0 })
    await broker.cancel(ids[0] as TaskId, { stoppable: true, by: 'ann' })
    expect(await start('--group', id).exited).toBe(0)
    await expectOthersWaiting()
  })
})

describe('a worker for one group', () => {
  it('does not start if there is no such group, or if it has no pool for a queue of the group', async () => {
    const { create, groupOf, worker, newId } = await openWorld()
    expect(await runUntilSignalled(worker({ pages: 2 }), { group: newId() })).toBe(2)
    const { id } = await groupOf([create(page), create(cover)])
    await expect(worker({ pages: 2 }).online({ group: id })).rejects.toMatchObject({ code: 'queue_not_found' })
  })

  it('runs members in a queue that the group did not have before', async () => {
    const { create, groupOf, worker, broker, expectOthersWaiting } = await openWorld()
    const { id, ids } = await groupOf([create(page)], false)
    const online = worker({ pages: 2, covers: 2 }).online({ group: id })
    await broker.waitUntilFinished(ids[0] as TaskId, AbortSignal.timeout(120_000))
    await broker.groups.add(id, { key: 'more', digest: '', tasks: [create(cover)], seal: true })
    expect((await online).group).toMatchObject({ state: 'ended', queues: ['pages', 'covers'] })
    await expectOthersWaiting()
  })

  it('drains and exits with 1 when members are added in a queue for which it has no pool', async () => {
    const { create, groupOf, worker, broker } = await openWorld()
    const { id, ids } = await groupOf([create(page)], false)
    const code = runUntilSignalled(worker({ pages: 2 }), { group: id })
    await broker.waitUntilFinished(ids[0] as TaskId, AbortSignal.timeout(120_000))
    await broker.groups.add(id, { key: 'more', digest: '', tasks: [create(cover)], seal: true })
    expect(await code).toBe(1)
  })

  it('still takes no other tasks when a command has drained and resumed one of its pools', async () => {
    const { create, groupOf, worker, broker, fleet, expectOthersWaiting } = await openWorld()
    const { id, ids } = await groupOf([create(page)], false)
    const online = worker({ pages: 2 }).online({ group: id })
    await broker.waitUntilFinished(ids[0] as TaskId, AbortSignal.timeout(120_000))
    const send = (spec: CommandSpec) => fleet.send({ id: randomUUID(), spec, by: 'ann' })
    await send({ action: 'drain', queue: 'pages', mode: 'soft' })
    await eventually(async () => (await fleet.workers()).workers[0]?.pools[0]?.state === 'INCOMPLETE_DONE')
    await send({ action: 'resume', queue: 'pages' })
    await broker.groups.add(id, { key: 'more', digest: '', tasks: [create(page)], seal: true })
    expect((await online).group).toMatchObject({ state: 'ended', statuses: { completed: 2 } })
    await expectOthersWaiting()
  })

  it('that its settings name is not started for all tasks, or for given ones', async () => {
    const { worker, newId, expectOthersWaiting } = await openWorld()
    const id = newId()
    const printed = vi.spyOn(console, 'error').mockImplementation(() => {})
    onTestFinished(() => printed.mockRestore())
    await expect(worker({ pages: 2 }, id).start()).rejects.toMatchObject({ code: 'invalid_configuration' })
    expect(await runUntilSignalled(worker({ pages: 2 }, id), { only: [] })).toBe(2)
    await expectOthersWaiting()
  })
})

// A task of a pipeline run that is completed, or cancelled with its run, is deleted by the script that ends it. Whatever is
// sent twice finds that the task has ended.
import { randomBytes, randomUUID } from 'node:crypto'
import { createRunId, createTaskId, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import { memberTemplate, newTask, runTask, runToken } from '@bullpen/engine/internal'
import { sha256 } from '@bullpen/engine/node'
import { eventually } from '@bullpen/testkit'
import { expect, inject, it, onTestFinished } from 'vitest'
import { violations } from '../internals/index-model/full-scan.fixture.ts'
import { endAs, scriptProxy } from '../internals/index-model/script-proxy.fixture.ts'
import { QUEUE, task } from '../internals/index-model/worker.fixture.ts'
import { openWorld } from '../internals/index-model/world.fixture.ts'
import { createTargetQueues } from '../outbox/target-queues.ts'

/** The leader would forward what the end of a task has stored. */
const NOT_LEADING = { leads: false }

/** A queue with a task of a run, and a world behind a proxy that has fetched the task. */
async function withRunningTask() {
  const redisUrl = inject('redisUrl')
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const proxy = await scriptProxy(redisUrl)
  const world = await openWorld(redisUrl, namespace, NOT_LEADING)
  const faulty = await openWorld(proxy.url, namespace, NOT_LEADING)
  const targets = createTargetQueues(world.redis, namespace)
  onTestFinished(async () => {
    await faulty.close()
    await world.queue.obliterate({ force: true })
    await world.close()
    proxy.close()
  })
  const random = randomBytes(ID_RANDOM_BYTES)
  const run = { id: createRunId(Date.now(), random), incarnation: 'one' }
  const place = { run, stage: 1, position: 7 }
  const origin = { id: createTaskId(QUEUE, Date.now(), random), enqueuedAt: Date.now(), correlationId: undefined }
  const template = memberTemplate({ ...newTask(task, { n: 1 }, {}, origin), input: undefined }, undefined)
  const made = runTask(place, '{"n":1}', template, false, Date.now(), sha256)
  const group = `${runToken(run, false)} ${place.stage}.${place.position}`
  const add = () => targets.of(QUEUE)(made.task, { data: made.data, followUps: made.lines, group })
  await eventually(() => world.broker.ping().then(() => true))
  await add()
  expect(await faulty.fetch('bullpen')).toBe(true)
  return {
    ...world,
    proxy,
    faulty,
    add,
    complete: () =>
      faulty.end(
        1,
        () => ({ kind: 'completed', output: { n: 2 } }),
        async () => undefined,
      ),
    /** Ends the task as cancelled, after its run has been stopped. */
    async cancel() {
      await world.redis.set(world.keys.cancelledGroup(runToken(run, false)), 'rule', 'EX', 60)
      await faulty.end(
        1,
        () => ({ kind: 'cancelled' }),
        async () => undefined,
      )
    },
    find: () => world.broker.find(made.task.id),
    entries: () => world.redis.xrange(world.keys.outbox, '-', '+'),
    check: async () => expect(await violations(world.redis, world.keys, world.broker, QUEUE, new Set())).toEqual([]),
  }
}

it.each([
  { end: 'complete', when: 'before' },
  { end: 'complete', when: 'after' },
  { end: 'cancel', when: 'before' },
  { end: 'cancel', when: 'after' },
] as const)(
  'the end of a task of a run is confirmed and reported once if the connection is lost $when its script ($end)',
  async ({ end, when }) => {
    const { proxy, faulty, find, entries, check, ...task } = await withRunningTask()
    const cut = Promise.withResolvers<void>()
    proxy.arm({ ...endAs(end === 'complete' ? 'completed' : 'cancelled'), when, onFault: cut.resolve })
    const ended = task[end]()
    await cut.promise
    await ended
    expect(faulty.settled).toEqual(['confirmed'])
    expect(await find()).toBeUndefined()
    expect((await entries()).length).toBe(1)
    await check()
  },
)

it('a task of a run that has ended is not added again by a process that delivers the same entry', async () => {
  const { add, complete, find, check } = await withRunningTask()
  await complete()
  expect(await add()).toBe('stored')
  expect(await find()).toBeUndefined()
  await check()
})

it("BullMQ's event of the end does not keep the output of a task of a run", async () => {
  const { complete, redis, keys, entries } = await withRunningTask()
  await complete()
  const events = (await redis.xrange(keys.events, '-', '+')).map(([, fields]) => fields)
  expect(events.filter((fields) => fields.includes('completed'))).toEqual([
    ['event', 'completed', 'jobId', expect.any(String), 'returnvalue', 'null', 'prev', 'active'],
  ])
  expect((await entries())[0]?.[1][1]).toContain('{"output":{"n":2}')
})

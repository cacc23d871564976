// Requests to retry and delete dead tasks by filter, while processes are killed and while several of them believe that they lead.
import { spawn } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import type { TaskId } from '@bullpen/contract'
import { createTaskId } from '@bullpen/contract/internal'
import { newTask } from '@bullpen/engine/internal'
import { programEnv } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { expect, inject, it, onTestFinished } from 'vitest'
import { openPatientBroker } from '../broker/patient-broker.fixture.ts'
import { queueKeys } from '../keys.ts'
import { silent } from '../setup.fixture.ts'
import { changeDeadTasks } from './dead-task-changer.ts'
import { KINDS, QUEUE, task } from './dead-tasks-process.fixture.ts'

const FIXTURE = new URL('./dead-tasks-process.fixture.ts', import.meta.url).pathname

async function openGraves() {
  const [redisUrl, namespace] = [inject('redisUrl'), `t-${randomUUID().slice(0, 12)}`]
  const redis = new Redis(redisUrl)
  const broker = openPatientBroker({
    redisUrl,
    namespace,
    queues: [QUEUE],
    sizeLimit: 10_000,
    log: silent,
    leads: false,
  })
  onTestFinished(async () => {
    await Promise.allSettled(broker.boardQueues.map((queue) => queue.obliterate({ force: true })))
    await broker.close()
    redis.disconnect()
  })
  await eventually(() => broker.ping().then(() => true))
  const enqueue = async (kind: number, n: number): Promise<TaskId> => {
    const now = Date.now()
    const id = createTaskId(QUEUE, now, randomBytes(10))
    await broker.enqueue(newTask(task, { kind, n }, {}, { id, enqueuedAt: now, correlationId: undefined }))
    return id
  }
  const start = () => {
    const env = programEnv()
    const child = spawn(process.execPath, [FIXTURE, redisUrl, namespace], {
      env,
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    return child
  }
  const change = (action: 'retry' | 'delete', filter: { readonly code?: string }, rate: number) =>
    broker.changeDead({
      ...{ action, rate, by: 'ann', filter: { queue: QUEUE, ...filter } },
      counted: { matching: 0, exact: true },
    })
  return { redis, broker, keys: queueKeys(namespace, QUEUE), enqueue, start, change }
}

it('one of several kinds of dead tasks is retried, each task once, while the queue works and every process is killed', async () => {
  const { broker, enqueue, start, change } = await openGraves()
  const PER_KIND = 150
  const byKind = await Promise.all(
    KINDS.map((_, kind) => Promise.all(Array.from({ length: PER_KIND }, (_each, n) => enqueue(kind, n)))),
  )
  const [gone = [], ...others] = byKind
  let processes = [start(), start()]
  await eventually(async () => (await broker.counts(QUEUE)).dead === KINDS.length * PER_KIND)

  const { id } = await change('retry', { code: 'gone' }, 60)
  const changed = async () => (await broker.deadProgress(id))?.changed ?? 0
  const later: TaskId[] = []
  for (const from of [40, 80, 120]) {
    await eventually(async () => (await changed()) >= from)
    for (let n = 0; n < 20; n++) later.push(await enqueue(-1, n))
    // The leader is one of them.
    for (const child of processes) child.kill('SIGKILL')
    processes = [start(), start()]
  }
  await eventually(async () => (await broker.deadProgress(id))?.doneAt !== undefined)
  expect(await changed()).toBe(PER_KIND)
  await eventually(async () => {
    const { completed, dead } = await broker.counts(QUEUE)
    return completed === PER_KIND + later.length && dead === 2 * PER_KIND
  })
  for (const each of gone) {
    expect(await broker.find(each)).toMatchObject({ status: 'completed', attemptsMade: 1, retries: [{ by: 'ann' }] })
  }
  for (const each of others.flat()) expect(await broker.find(each)).not.toHaveProperty('retries')
  expect(await broker.countDead(QUEUE)).toMatchObject([{ count: PER_KIND }, { count: PER_KIND }])
  expect(await broker.totals(QUEUE)).toMatchObject({
    ...{ bytes: 0, accepted: KINDS.length * PER_KIND + later.length, removed: 0, drift: 0, unaccounted: 0 },
  })
})

it('several leaders at once retry each task once, and an older leader does nothing', async () => {
  const { redis, broker, keys, enqueue, start, change } = await openGraves()
  const ids = await Promise.all(Array.from({ length: 120 }, (_, n) => enqueue(0, n)))
  const child = start()
  await eventually(async () => (await broker.counts(QUEUE)).dead === ids.length)
  child.kill('SIGKILL')
  const newest = Number(await redis.get(keys.leader)) + 1_000
  const term = (fencing: number) => ({ fencing, isOver: () => false })
  const { id } = await change('retry', {}, 10_000)
  await redis.set(keys.leader, newest)
  await changeDeadTasks(redis, keys, term(newest - 1))
  expect(await broker.deadProgress(id)).toMatchObject({ changed: 0, doneAt: undefined })
  await Promise.all([newest, newest, newest].map((fencing) => changeDeadTasks(redis, keys, term(fencing))))
  expect(await broker.deadProgress(id)).toMatchObject({ changed: ids.length, doneAt: expect.any(Number) })
  const waiting = await redis.lrange(keys.wait, 0, -1)
  expect(waiting.toSorted()).toEqual([...ids].sort())
  // The request is done, so tasks that die from now on are not retried.
  await changeDeadTasks(redis, keys, term(newest))
  expect(await redis.exists(keys.deadRequests)).toBe(0)
})

it('a queue has at most 100 unfinished requests', async () => {
  const { redis, keys, change } = await openGraves()
  for (let n = 0; n < 100; n++) await redis.hset(keys.deadRequests, `request-${n}`, '{}')
  await expect(change('delete', {}, 1)).rejects.toMatchObject({ code: 'too_many_dead_task_requests' })
  expect(await redis.hlen(keys.deadRequests)).toBe(100)
})

// Tests that concurrent producers never exceed a queue's limit together, also if replies are lost.
import { randomBytes, randomUUID } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { CallOptions, TaskId } from '@bullpen/contract'
import { createTaskId } from '@bullpen/contract/internal'
import type { NewTask } from '@bullpen/engine'
import { newTask } from '@bullpen/engine/internal'
import { eventually, faultProxy } from '@bullpen/testkit'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { type BullmqBroker, openBroker } from '../broker.ts'
import { long, short, silent } from '../setup.fixture.ts'

const QUEUE = 'rig'
const PRODUCERS = 4
const WRITERS = 64

/** Opens brokers of one namespace, as several API processes would. No worker fetches their tasks. */
async function openProducers(maxTasks: number, redisUrl = inject('redisUrl')) {
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const options = { namespace, queues: [QUEUE], sizeLimit: 10_000, log: silent }
  const direct = openBroker({ ...options, redisUrl: inject('redisUrl') })
  const producers = Array.from({ length: PRODUCERS }, () => openBroker({ ...options, redisUrl, leads: false }))
  onTestFinished(async () => {
    await Promise.allSettled(direct.boardQueues.map((queue) => queue.obliterate({ force: true })))
    await Promise.all([direct, ...producers].map((broker) => broker.close()))
  })
  await Promise.all([direct, ...producers].map((broker) => eventually(() => broker.ping().then(() => true))))
  const create = (n: number): NewTask => {
    const enqueuedAt = Date.now()
    const id = createTaskId(QUEUE, enqueuedAt, randomBytes(10))
    const origin = { id, enqueuedAt, correlationId: undefined, caller: 'only', limits: { maxTasks } } as const
    return newTask(n % 2 === 0 ? long : short, { n }, CALLS[n % CALLS.length] ?? {}, origin)
  }
  return {
    direct,
    producers,
    create,
    async inLine(): Promise<number> {
      const { waiting, scheduled, retrying } = await direct.counts(QUEUE)
      return waiting + scheduled + retrying
    },
  }
}

const CALLS = [{}, { delay: '1h' }, { priority: 3 }, { priority: 3, delay: '1h' }] as const satisfies CallOptions[]

type Answer = 'accepted' | 'refused' | 'unknown'

/** Enqueues with many writers at once until `isOver`, and returns what each task's caller learned. */
async function writeUntil(
  producers: readonly BullmqBroker[],
  create: (n: number) => NewTask,
  isOver: (answers: ReadonlyMap<TaskId, Answer>) => boolean,
): Promise<ReadonlyMap<TaskId, Answer>> {
  const answers = new Map<TaskId, Answer>()
  let n = 0
  const write = async (broker: BullmqBroker): Promise<void> => {
    while (!isOver(answers)) {
      const task = create(n++)
      const answer = await broker.enqueue(task).then(
        () => 'accepted' as const,
        ({ code }) => (code === 'queue_full' ? 'refused' : 'unknown'),
      )
      answers.set(task.id, answer)
      // Without a connection, calls are rejected at once, and the connection could not be opened in between.
      if (answer === 'unknown') await nextTurn()
    }
  }
  await Promise.all(producers.flatMap((broker) => Array.from({ length: WRITERS }, () => write(broker))))
  return answers
}

const idsOf = (answers: ReadonlyMap<TaskId, Answer>, answer: Answer): TaskId[] =>
  [...answers].flatMap(([id, each]) => (each === answer ? [id] : []))

describe('a limit of 1,000 tasks', () => {
  it('lets 4 producers with 64 writers each store exactly 1,000 tasks, waiting, prioritized and scheduled', async () => {
    const { producers, create, inLine, direct } = await openProducers(1_000)
    const answers = await writeUntil(producers, create, (all) => idsOf(all, 'refused').length >= 1_000)
    expect(idsOf(answers, 'accepted')).toHaveLength(1_000)
    expect(idsOf(answers, 'unknown')).toEqual([])
    expect(await inLine()).toBe(1_000)
    expect(await direct.totals(QUEUE)).toMatchObject({ accepted: 1_000, unaccounted: 0 })
  })
})

describe('a limit of 300 tasks, with lost replies', () => {
  it('holds, and every stored task was answered as accepted or unknown', async () => {
    const proxy = await faultProxy(inject('redisUrl'))
    onTestFinished(() => proxy.close())
    const { producers, create, inLine, direct } = await openProducers(300, proxy.url)
    let isFull = false
    const writing = writeUntil(producers, create, () => isFull)
    // Each time, the replies of all commands under way are lost, and the commands are sent again.
    for (const stored of [20, 80, 160, 300]) {
      await eventually(async () => (await inLine()) >= stored)
      proxy.cutAnswers()
      proxy.reset()
    }
    await eventually(() => Promise.all(producers.map((broker) => broker.ping())).then(() => true))
    isFull = true
    const answers = await writing
    expect(await inLine()).toBe(300)
    const found = await Promise.all([...answers.keys()].map(async (id) => ((await direct.find(id)) ? id : undefined)))
    const stored = new Set(found.filter((id) => id !== undefined))
    expect(stored.size).toBe(300)
    expect(idsOf(answers, 'accepted').filter((id) => !stored.has(id))).toEqual([])
    expect(idsOf(answers, 'refused').filter((id) => stored.has(id))).toEqual([])
  })
})

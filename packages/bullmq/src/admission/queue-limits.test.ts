// Tests that concurrent producers never exceed a queue's limit together, also if replies are lost.
import { randomBytes, randomUUID } from 'node:crypto'
import type { CallOptions, TaskId } from '@bullpen/contract'
import { createTaskId } from '@bullpen/contract/internal'
import type { NewTask } from '@bullpen/engine'
import { newTask } from '@bullpen/engine/internal'
import { eventually, faultProxy } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import type { BullmqBroker } from '../broker/broker-options.ts'
import { openPatientBroker } from '../broker/patient-broker.fixture.ts'
import { queueKeys } from '../keys.ts'
import { long, short, silent } from '../setup.fixture.ts'

const QUEUE = 'rig'
const PRODUCERS = 4
const WRITERS = 64

/** Opens brokers of one namespace, as several API processes would. No worker fetches their tasks. */
async function openProducers(maxTasks: number, redisUrl = inject('redisUrl')) {
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const options = { namespace, queues: [QUEUE], sizeLimit: 10_000, log: silent }
  const direct = openPatientBroker({ ...options, redisUrl: inject('redisUrl') })
  const redis = new Redis(inject('redisUrl'))
  const keys = queueKeys(namespace, QUEUE)
  const producers = Array.from({ length: PRODUCERS }, () => openPatientBroker({ ...options, redisUrl, leads: false }))
  onTestFinished(async () => {
    await Promise.allSettled(direct.boardQueues.map((queue) => queue.obliterate({ force: true })))
    await Promise.all([direct, ...producers].map((broker) => broker.close()))
    redis.disconnect()
  })
  await Promise.all([direct, ...producers].map(isConnected))
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
    /** How many tasks are waiting or scheduled. Unlike a broker, this client waits for as long as a busy Redis takes. */
    inLine: async (): Promise<number> =>
      (await redis.llen(keys.wait)) + (await redis.zcard(keys.prioritized)) + (await redis.zcard(keys.delayed)),
    storedOf: async (ids: readonly TaskId[]): Promise<ReadonlySet<TaskId>> => {
      const found = await Promise.all(ids.map((id) => redis.exists(keys.job(id))))
      return new Set(ids.filter((_, i) => found[i] === 1))
    },
  }
}

const CALLS = [{}, { delay: '1h' }, { priority: 3 }, { priority: 3, delay: '1h' }] as const satisfies CallOptions[]

type Answer = 'accepted' | 'refused' | 'unknown'

/** Enqueues with many writers at once until `isOver`, and returns what each task's caller learned. */
async function writeUntil(
  producers: readonly BullmqBroker[],
  create: (n: number) => NewTask,
  isOver: (refused: number) => boolean,
): Promise<ReadonlyMap<TaskId, Answer>> {
  const answers = new Map<TaskId, Answer>()
  let n = 0
  let refused = 0
  const write = async (broker: BullmqBroker, connected: () => Promise<true>): Promise<void> => {
    while (!isOver(refused)) {
      const task = create(n++)
      const answer = await broker.enqueue(task).then(
        () => 'accepted' as const,
        ({ code }) => (code === 'queue_full' ? 'refused' : 'unknown'),
      )
      answers.set(task.id, answer)
      if (answer === 'refused') refused++
      // Without a connection, calls are rejected at once, and would keep this process from opening the connection.
      if (answer === 'unknown') await connected()
    }
  }
  await Promise.all(
    producers.flatMap((broker) => {
      // All writers of a broker wait together, so that they do not load the process, either.
      let connecting: Promise<true> | undefined
      const connected = () => (connecting ??= isConnected(broker).finally(() => (connecting = undefined)))
      return Array.from({ length: WRITERS }, () => write(broker, connected))
    }),
  )
  return answers
}

const isConnected = (broker: BullmqBroker) => eventually(() => broker.ping().then(() => true))

const idsOf = (answers: ReadonlyMap<TaskId, Answer>, answer: Answer): TaskId[] =>
  [...answers].flatMap(([id, each]) => (each === answer ? [id] : []))

type Producers = Awaited<ReturnType<typeof openProducers>>

/** Every task that a caller saw accepted is stored, none that it saw refused, and as many as the limit says. */
async function expectFull({ inLine, storedOf }: Producers, answers: ReadonlyMap<TaskId, Answer>, maxTasks: number) {
  expect(await inLine()).toBe(maxTasks)
  const stored = await storedOf([...answers.keys()])
  expect(stored.size).toBe(maxTasks)
  expect(idsOf(answers, 'accepted').filter((id) => !stored.has(id))).toEqual([])
  expect(idsOf(answers, 'refused').filter((id) => stored.has(id))).toEqual([])
}

describe('4 producers with 64 writers each', () => {
  it('store exactly as many tasks as a limit of 1,000 says, waiting, prioritized and scheduled', async () => {
    const open = await openProducers(1_000)
    const { producers, create } = open
    const answers = await writeUntil(producers, create, (refused) => refused >= 1_000)
    await expectFull(open, answers, 1_000)
  })

  it('store as many tasks as fit within a limit of bytes, and never more', async () => {
    const { direct, producers, create, storedOf } = await openProducers(1)
    const maxBytes = 300_000
    const sized = (n: number): NewTask => ({ ...create(n), limits: { maxBytes } })
    const answers = await writeUntil(producers, sized, (refused) => refused >= 1_000)
    const { bytes, accepted } = await direct.totals(QUEUE)
    expect(bytes).toBeLessThanOrEqual(maxBytes)
    expect(bytes).toBeGreaterThan(maxBytes - 2 * (bytes / accepted))
    const stored = await storedOf([...answers.keys()])
    expect(stored).toEqual(new Set(idsOf(answers, 'accepted')))
    expect(stored.size).toBe(accepted)
  })

  it('store exactly as many as a limit of 300 says while replies are lost', async () => {
    const proxy = await faultProxy(inject('redisUrl'))
    onTestFinished(() => proxy.close())
    const open = await openProducers(300, proxy.url)
    const { producers, create, inLine } = open
    let isFull = false
    const writing = writeUntil(producers, create, () => isFull)
    // Each time, the replies of all commands under way are lost, and the commands are sent again.
    for (const stored of [20, 80, 160, 300]) {
      await eventually(async () => (await inLine()) >= stored)
      proxy.cutAnswers()
      proxy.reset()
    }
    await Promise.all(producers.map(isConnected))
    isFull = true
    await expectFull(open, await writing, 300)
  })
})

describe('a limit of age', () => {
  it('counts the time since a scheduled task was due', async () => {
    const { direct, create } = await openProducers(10)
    const limits = { maxAgeMs: 60_000 }
    const [queue] = direct.boardQueues
    const addDue = async (waitedMs: number): Promise<TaskId> => {
      const task = { ...create(0), enqueuedAt: Date.now() - 3_600_000 - waitedMs, delayMs: 3_600_000 }
      await direct.enqueue(task)
      await (await queue?.getJob(task.id))?.promote()
      return task.id
    }
    const young = await addDue(1_000)
    expect(await direct.enqueue({ ...create(0), limits })).toMatchObject({ action: 'created' })
    await direct.cancel(young, { stoppable: true })
    await queue?.drain()
    await addDue(70_000)
    await expect(direct.enqueue({ ...create(0), limits })).rejects.toMatchObject({ reached: { limit: 'maxAge' } })
  })
})

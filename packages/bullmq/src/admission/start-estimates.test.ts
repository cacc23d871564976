// Tests the estimates on real queues, whose tasks take a known time.
import { randomBytes } from 'node:crypto'
import { type CommandSpec, createTaskId } from '@bullpen/contract/internal'
import type { NewTask } from '@bullpen/engine'
import { newTask } from '@bullpen/engine/internal'
import { privateRedis } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished } from 'vitest'
import { fleetRig } from '../fleet/fleet.fixture.ts'
import { prefixOf, queueKeys } from '../keys.ts'
import { monitorCommands } from '../redis/command-monitor.fixture.ts'
import { type SetupOptions, setup, short } from '../setup.fixture.ts'
import { bullpenBackend } from '../store/bullpen-backend.ts'
import { openStartEstimates } from './start-estimates.ts'

const EVERY_MS = 200

const task = (call: Parameters<typeof newTask>[2] = {}): NewTask => {
  const now = Date.now()
  const origin = { id: createTaskId('rig', now, randomBytes(10)), enqueuedAt: now, correlationId: undefined }
  return newTask(short, {}, call, origin)
}

async function openQueue(options: SetupOptions = {}) {
  const queue = await setup({ readBacklogEveryMs: EVERY_MS, leads: false, ...options })
  return {
    ...queue,
    /** Enqueues a task and returns when it is expected to start, in ms from now. */
    async expectedMs(call: Parameters<typeof newTask>[2] = {}): Promise<number | undefined> {
      const next = task(call)
      const { expectedStartAt } = await queue.broker.enqueue(next)
      return expectedStartAt === undefined ? undefined : expectedStartAt - next.enqueuedAt
    },
  }
}

/** A queue whose tasks start when the test says so, and estimates on a clock that the test moves. */
async function openSteps() {
  const { broker, namespace, redisUrl } = await setup({ leads: false })
  const redis = new Redis(redisUrl, { maxRetriesPerRequest: null })
  const options = { connection: redis, prefix: prefixOf(namespace, 'rig'), autorun: false, skipStalledCheck: true }
  const worker = new Worker('rig', async () => 1, options, bullpenBackend())
  let at = 0
  const estimates = openStartEstimates({ redis, namespace, everyMs: 50, now: () => at })
  onTestFinished(async () => {
    estimates.close()
    await worker.close()
    redis.disconnect()
  })
  /** Returns when a task that is not stored would be expected to start, in ms from its enqueue. */
  const expectedMs = (call: Parameters<typeof newTask>[2] = {}): number | undefined => {
    const probe = { ...task(call), enqueuedAt: 0 }
    const { at: startAt, withdraw } = estimates.expect(probe)
    withdraw()
    return startAt
  }
  return {
    enqueue: (count: number) => broker.enqueueAll(Array.from({ length: count }, () => task())),
    expectedMs,
    /** Starts and completes the next tasks. */
    async complete(count: number): Promise<void> {
      for (let i = 0; i < count; i++) {
        const job = await worker.getNextJob(`token-${i}`)
        await job?.moveToCompleted(1, `token-${i}`, false)
      }
    },
    /** Moves the clock, so that a reading is due. */
    pass(ms: number): void {
      at += ms
    },
  }
}

describe('the expected start of a task', () => {
  it('is the number of tasks before it, divided by the rate at which tasks have started', async () => {
    const { enqueue, expectedMs, complete, pass } = await openSteps()
    await enqueue(100)
    // Without a reading, a scheduled task is expected when it is due. After the first reading, the rate is not known yet.
    await eventually(() => expectedMs({ delay: '5s' }) === undefined)
    await complete(40)
    pass(4_000)
    // 40 tasks have started in 4 s, and 60 are left.
    await eventually(() => expectedMs() === 6_000)
    await complete(20)
    pass(2_000)
    await eventually(() => expectedMs() === 4_000)
    await enqueue(50)
    await complete(20)
    pass(2_000)
    await eventually(() => expectedMs() === 7_000)
    expect(expectedMs({ delay: '1h' })).toBe(3_600_000)
  })

  it('is at once if no tasks are waiting', async () => {
    const { startPool, expectedMs } = await openQueue()
    await startPool()
    // The time is rounded up to a second.
    await eventually(async () => ((await expectedMs()) ?? Number.POSITIVE_INFINITY) <= 1_000)
  })

  it('becomes unknown if the queue is paused', async () => {
    const { startPool, expectedMs, namespace, redisUrl } = await openQueue()
    const { fleet } = await fleetRig({ namespace, queues: ['rig'], redisUrl })
    const send = (spec: CommandSpec) => fleet.send({ id: spec.action, spec, by: 'me' })
    await startPool()
    await eventually(async () => (await expectedMs()) !== undefined)
    await send({ action: 'pause', queue: 'rig' })
    await eventually(async () => (await expectedMs()) === undefined)
    expect(await expectedMs({ delay: '1h' })).toBeUndefined()
    await send({ action: 'resume', queue: 'rig' })
    await eventually(async () => (await expectedMs()) !== undefined)
  })

  it('is unknown if tasks are waiting and no workers start them', async () => {
    const { expectedMs } = await openQueue()
    expect(await expectedMs({ delay: '1h' })).toBeGreaterThanOrEqual(3_600_000)
    for (let i = 0; i < 5; i++) expect(await expectedMs()).toBeUndefined()
    await eventually(async () => (await expectedMs({ delay: '1h' })) === undefined)
  })

  it('is not taken from tasks that are cancelled while they are waiting', async () => {
    const { broker, expectedMs } = await openQueue({ readBacklogEveryMs: 20 })
    const tasks = Array.from({ length: 200 }, () => task())
    await broker.enqueueAll(tasks)
    for (const { id } of tasks) {
      expect(await expectedMs()).toBeUndefined()
      await broker.cancel(id, { stoppable: true })
    }
  })
})

describe('the readings of a queue', () => {
  it('are not made for each task, and end when no tasks are enqueued anymore', async () => {
    const server = await privateRedis()
    await server.start()
    const everyMs = 20
    const { expectedMs, redis, namespace } = await opened(server.url, everyMs)
    const { prioritized } = queueKeys(namespace, 'rig')
    let readings = 0
    let lastAt = performance.now()
    const monitor = await monitorCommands(redis, (words, source) => {
      if (source === 'lua' || words[0]?.toLowerCase() !== 'evalsha' || !words.includes('paused')) return
      if (!words.includes(prioritized)) return
      readings++
      lastAt = performance.now()
    })
    onTestFinished(monitor.close)
    const beganAt = performance.now()
    for (let i = 0; i < 1_000; i++) await expectedMs()
    expect(readings).toBeGreaterThan(0)
    // Two readings are at least half of that time apart.
    expect(readings).toBeLessThanOrEqual(1 + (performance.now() - beganAt) / (everyMs / 2))
    // There would be a reading every 20 ms.
    await eventually(() => performance.now() - lastAt > 500)
    const before = readings
    await expectedMs()
    await eventually(() => readings > before)
  })
})

async function opened(redisUrl: string, readBacklogEveryMs: number) {
  const queue = await openQueue({ redisUrl, readBacklogEveryMs })
  const { redis } = await fleetRig({ namespace: queue.namespace, queues: ['rig'], redisUrl })
  return { ...queue, redis }
}

// Tests the estimates on real queues, whose tasks take a known time.
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { type CommandSpec, createTaskId } from '@bullpen/contract/internal'
import type { NewTask } from '@bullpen/engine'
import { newTask } from '@bullpen/engine/internal'
import { privateRedis } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { describe, expect, it, onTestFinished } from 'vitest'
import { fleetRig } from '../fleet/fleet.fixture.ts'
import { queueKeys } from '../keys.ts'
import { type SetupOptions, setup, short } from '../setup.fixture.ts'

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

/** Four slots whose attempts take about 20 ms, so that about 200 tasks start in each second. */
function slowHandler() {
  let started = 0
  const options: SetupOptions = {
    concurrency: 4,
    async handle({ input }) {
      started++
      await sleep(20)
      return input
    },
  }
  return { options, hasStarted: (tasks: number) => eventually(() => started >= tasks, 30_000) }
}

describe('the expected start of a task', () => {
  it('is mostly within a factor of two of what happens', async () => {
    const { options, hasStarted } = slowHandler()
    const { broker, startPool, settled } = await openQueue(options)
    for (let i = 0; i < 4; i++) await broker.enqueueAll(Array.from({ length: 200 }, () => task()))
    await startPool()
    const probes: { readonly task: NewTask; readonly expectedStartAt: number }[] = []
    for (const started of [200, 240, 280, 320, 360, 400, 440]) {
      await hasStarted(started)
      const probe = task()
      const { expectedStartAt = Number.NaN } = await broker.enqueue(probe)
      probes.push({ task: probe, expectedStartAt })
    }
    const ratios: number[] = []
    for (const { task: probe, expectedStartAt } of probes) {
      const { startedAt = Number.NaN } = (await settled(probe.id)) ?? {}
      // The estimate is rounded up to a second.
      ratios.push((expectedStartAt - 500 - probe.enqueuedAt) / (startedAt - probe.enqueuedAt))
    }
    expect(ratios.filter((ratio) => ratio > 0.5 && ratio < 2).length).toBeGreaterThanOrEqual(4)
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
    const monitor = await redis.monitor()
    onTestFinished(() => monitor.disconnect())
    monitor.on('monitor', (_time: string, words: string[], source: string) => {
      if (source === 'lua' || words[0]?.toLowerCase() !== 'evalsha' || !words.includes('paused')) return
      if (!words.includes(prioritized)) return
      readings++
      lastAt = performance.now()
    })
    const sent = 1_000
    for (let i = 0; i < sent; i++) await expectedMs()
    expect(readings).toBeGreaterThan(0)
    expect(readings).toBeLessThan(sent / 2)
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

// Tests that a worker starts once, drains once, and does not leave anything open, whenever it is drained.
import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { defineCatalogue, defineHandler, defineTask } from '@bullpen/contract'
import { createTaskId } from '@bullpen/contract/internal'
import { HEARTBEAT_INTERVAL_MS, newTask } from '@bullpen/engine/internal'
import { systemClock } from '@bullpen/engine/node'
import { eventually } from '@bullpen/testkit'
import { describe, expect, inject, it, onTestFinished, vi } from 'vitest'
import { z } from 'zod'
import { createWorker } from './create-worker.ts'
import type { ResourceOpeners } from './index.ts'
import { openPatientBroker, openPatientFleet } from './patient-connections.fixture.ts'
import { runUntilSignalled } from './run-until-signalled.ts'

const task = defineTask({ name: 'life.task', queue: 'life', input: z.object({}), output: z.object({}) })
const handlers = { 'life.task': defineHandler(task, import.meta.url, () => ({})) }

interface Resources {
  readonly door: { readonly open: boolean }
}

function worker(parent?: AbortSignal, namespace = `t-${randomUUID().slice(0, 12)}`) {
  const opening = Promise.withResolvers<void>()
  const seen = { opened: 0, closed: 0 }
  const resources: ResourceOpeners<Resources> = {
    door: {
      async open() {
        await opening.promise
        seen.opened++
        return { open: true }
      },
      close: () => void seen.closed++,
    },
  }
  const made = createWorker<ReturnType<typeof defineCatalogue<[typeof task]>>, Resources>({
    catalogue: defineCatalogue(task),
    handlers,
    resources,
    ...(parent && { parent }),
    config: { redisUrl: inject('redisUrl'), namespace, port: 0, logLevel: 'silent' },
  })
  return { ...made, seen, letOpen: () => opening.resolve() }
}

/** Sends one command to the tests' Redis, and waits for the answer. */
async function sendToRedis(command: string): Promise<void> {
  const { hostname, port } = new URL(inject('redisUrl'))
  const socket = connect(Number(port), hostname)
  socket.write(`${command}\r\n`)
  await once(socket, 'data')
  socket.destroy()
}

const wrongState = { code: 'wrong_state' }

describe('a worker', () => {
  it('starts once, and not after it has drained', async () => {
    const { start, online, drain, letOpen, seen } = worker()
    letOpen()
    await start()
    await expect(start()).rejects.toMatchObject(wrongState)
    await expect(online([])).rejects.toMatchObject(wrongState)
    await drain()
    await expect(start()).rejects.toMatchObject(wrongState)
    expect(seen).toEqual({ opened: 1, closed: 1 })
  })

  it('does not start when it has been drained', async () => {
    const { start, drain, ended } = worker()
    const nothing = { finished: 0, requeued: 0, failed: 0, abandoned: [], unconfirmed: [], slowestTaskMs: 0 }
    expect(await drain()).toEqual(nothing)
    expect(await ended).toEqual(nothing)
    await expect(start()).rejects.toMatchObject(wrongState)
  })

  it('closes its resources when it is drained while they open, and fetches no task', async () => {
    const { start, drain, letOpen, seen } = worker()
    const starting = expect(start()).rejects.toMatchObject(wrongState)
    const drained = drain()
    letOpen()
    await starting
    await drained
    expect(seen).toEqual({ opened: 1, closed: 1 })
  })

  it('does not start when it is drained while it waits for Redis', async () => {
    const { start, state, drain } = createWorker({
      catalogue: defineCatalogue(task),
      handlers,
      // No Redis listens on this port.
      config: { redisUrl: 'redis://127.0.0.1:1', port: 0, logLevel: 'silent' },
    })
    const started = expect(start()).rejects.toMatchObject(wrongState)
    await eventually(() => state() === 'running')
    await drain()
    await started
  })

  it('does not start when its parent has closed, and the program exits with 0', async () => {
    const { letOpen, ...made } = worker(AbortSignal.abort())
    letOpen()
    expect(await runUntilSignalled(made)).toBe(0)
    expect(made.seen.opened).toBe(0)
  })

  it('closes in order when its parent closes while it starts', async () => {
    const parent = new AbortController()
    const { letOpen, ...made } = worker(parent.signal)
    const code = runUntilSignalled(made)
    parent.abort()
    letOpen()
    expect(await code).toBe(0)
    expect(made.seen).toEqual({ opened: 1, closed: 1 })
  })

  it('interrupts its attempts with the reason parent_closed when its parent closes', async () => {
    const [parent, namespace, redisUrl] = [new AbortController(), `t-${randomUUID().slice(0, 12)}`, inject('redisUrl')]
    const endless = defineTask({
      name: 'life.endless',
      queue: 'life',
      input: z.null(),
      output: z.null(),
      timeout: '1m',
    })
    const catalogue = defineCatalogue(endless)
    const begun = Promise.withResolvers<void>()
    const handler = defineHandler(endless, import.meta.url, async ({ signal }) => {
      begun.resolve()
      await once(signal, 'abort')
      throw signal.reason
    })
    const broker = openPatientBroker({ redisUrl, namespace, queues: catalogue.queues })
    const { start, ended } = createWorker({
      catalogue,
      handlers: { 'life.endless': handler },
      parent: parent.signal,
      config: { redisUrl, namespace, port: 0, logLevel: 'silent' },
    })
    await start()
    const id = createTaskId('life', Date.now(), randomBytes(10))
    await broker.enqueue(newTask(endless, null, {}, { id, enqueuedAt: Date.now(), correlationId: undefined }))
    await begun.promise
    parent.abort()
    expect(await ended).toMatchObject({ requeued: 1, abandoned: [] })
    const [attempt] = (await broker.find(id))?.attempts ?? []
    expect(attempt).toMatchObject({ state: 'TERMINATED_CTX_CLOSED', reason: 'parent_closed', counted: false })
    await broker.close()
  })

  it('tells the fleet that it serves its queue when its pool has started, and not with its next regular heartbeat', async () => {
    const { after } = systemClock
    // No heartbeat is regular.
    const clock = vi
      .spyOn(systemClock, 'after')
      .mockImplementation((ms, run) => (ms === HEARTBEAT_INTERVAL_MS ? () => {} : after(ms, run)))
    onTestFinished(() => clock.mockRestore())
    const [namespace, redisUrl] = [`t-${randomUUID().slice(0, 12)}`, inject('redisUrl')]
    const { start, drain, letOpen } = worker(undefined, namespace)
    letOpen()
    await start()
    const fleet = openPatientFleet({ redisUrl, namespace, queues: ['life'] })
    onTestFinished(() => fleet.close())
    await eventually(async () => (await fleet.workers()).workers[0]?.pools[0]?.state === 'BG_RUNNING')
    await drain()
  })

  it('does not start in a namespace that Bullpen 0.1.0 wrote', async () => {
    const namespace = `t-${randomUUID().slice(0, 12)}`
    // Only 0.1.0 wrote this key.
    await sendToRedis(`ZADD {${namespace}}:fleet:beats 1 w`)
    const { start, letOpen, seen } = worker(undefined, namespace)
    letOpen()
    await expect(start()).rejects.toMatchObject({
      code: 'incompatible_schema',
      message: expect.stringContaining('was written by Bullpen 0.1.0'),
    })
    expect(seen).toEqual({ opened: 1, closed: 1 })
  })

  it.each([
    ['works that queue as well', { life: 1, other: 1 }],
    ['works only other queues', { other: 1 }],
  ])('does not start when Bullpen 0.1.0 wrote one queue of its catalogue, and it %s', async (_, pools) => {
    const namespace = `t-${randomUUID().slice(0, 12)}`
    // Only 0.1.0 wrote this key.
    await sendToRedis(`HSET {${namespace}.life}:life:switches drain {}`)
    const other = defineTask({ name: 'other.task', queue: 'other', input: z.object({}), output: z.object({}) })
    // The second start shows that the first one has not marked the namespace as its own.
    for (let i = 0; i < 2; i++) {
      const { start } = createWorker({
        catalogue: defineCatalogue(task, other),
        handlers: { ...handlers, 'other.task': defineHandler(other, import.meta.url, () => ({})) },
        config: { redisUrl: inject('redisUrl'), namespace, pools, port: 0, logLevel: 'silent' },
      })
      await expect(start()).rejects.toMatchObject({ code: 'incompatible_schema' })
    }
  })
})

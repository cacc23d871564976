// Circuit breakers of a queue: which tasks wait while a service fails, and how tasks probe it.
import { randomBytes } from 'node:crypto'
import {
  type BreakerMode,
  type CallOptions,
  defineCatalogue,
  defineHandler,
  defineQueue,
  defineSchedule,
  defineTask,
  type FollowUps,
  followUp,
  type TaskContext,
  type TaskDefinition,
  TaskError,
  type TaskId,
  type TaskStatus,
} from '@bullpen/contract'
import { createTaskId, ID_RANDOM_BYTES, toHandlers } from '@bullpen/contract/internal'
import {
  createRegistry,
  DEFAULT_TIMEOUTS,
  newTask,
  permitsLimiter,
  planFollowUps,
  retryCopy,
} from '@bullpen/engine/internal'
import { systemClock } from '@bullpen/engine/node'
import { eventually } from '@bullpen/testkit'
import { testPool } from '@bullpen/testkit/internal'
import { expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import type { OpenBackend } from './backend.ts'
import { untilStopped } from './setup.ts'

const QUEUE = 'breakers'
const queue = defineQueue({
  name: QUEUE,
  fairness: true,
  limits: { permits: { db: 3 } },
  breakers: {
    // A breaker is open for at least a second, so most tests set it by hand.
    smtp: { minimumCalls: 3, openFor: '1s', maxOpenFor: '1s' },
    crm: { minimumCalls: 3, openFor: '1s', probes: 2 },
  },
})
const common = {
  queue,
  input: z.object({}),
  retry: { maxAttempts: 5, backoff: { initialDelay: '1ms', jitter: 0 } },
} as const
const send = defineTask({ ...common, name: 'breakers.send', dependsOn: ['smtp'] })
const sendOnce = defineTask({ ...common, name: 'breakers.once', dependsOn: ['smtp'], retry: { maxAttempts: 1 } })
const sync = defineTask({ ...common, name: 'breakers.sync', dependsOn: ['smtp', 'crm'] })
const other = defineTask({ ...common, name: 'breakers.other' })
const hold = defineTask({ ...common, name: 'breakers.hold', permits: { db: 2 } })
const sendLarge = defineTask({ ...common, name: 'breakers.large', permits: { db: 2 }, dependsOn: ['smtp'] })
const otherSmall = defineTask({ ...common, name: 'breakers.small', permits: { db: 1 } })
const catalogue = defineCatalogue(send, sendOnce, sync, other, hold, sendLarge, otherSmall)
const { breakers: defined = {} } = queue

const CAPACITIES = { [permitsLimiter('db')]: 3 }

interface Service {
  /** Whether calls of the service fail. */
  isDown: boolean
  /** While this is set, calls don't end. */
  hangs: PromiseWithResolvers<void> | undefined
}

/** Returns how many times a breaker may have let tasks probe the service since a time in ms since 1970. Clocks differ slightly. */
const periodsSince = (at: number): number => Math.floor((Date.now() - at + 10) / 1_000)

async function openService(open: OpenBackend) {
  const options = { sizeLimit: 10_000, onExpired: () => {}, locks: 'quick', clock: systemClock } as const
  const backend = await open({ ...options, queues: catalogue.queues, breakers: defined })
  const { broker, breakers } = backend
  const service: Service = { isDown: false, hangs: undefined }
  /** The tasks whose handlers have been started. */
  const started: TaskId[] = []
  /** When the calls of the service began, in ms since 1970. */
  const calls: number[] = []
  const handle = async ({ id, name, signal }: Pick<TaskContext, 'id' | 'name' | 'signal'>): Promise<void> => {
    started.push(id)
    if (name === other.name || name === otherSmall.name) return
    calls.push(Date.now())
    await Promise.race([service.hangs?.promise, untilStopped({ signal })])
    if (service.isDown) throw new TaskError('smtp_421', 'the service is not available')
  }
  const handlers = toHandlers(
    catalogue,
    Object.fromEntries(
      catalogue.definitions.map((task) => [task.name, defineHandler(task, import.meta.url, handle as never)]),
    ),
  )
  const registry = createRegistry(catalogue, handlers, { timeouts: DEFAULT_TIMEOUTS })
  const pools: ReturnType<typeof testPool>[] = []
  onTestFinished(async () => {
    service.hangs?.resolve()
    await Promise.all(pools.map((pool) => pool.drain({ drainMs: 0, graceMs: 100 })))
    await backend.close()
  })
  const settled = async (id: TaskId) =>
    (await broker.waitUntilFinished(id, AbortSignal.timeout(120_000))) ?? expect.fail(`task ${id} not found`)
  const enqueue = async (definition: TaskDefinition, call: CallOptions & FollowUps = {}): Promise<TaskId> => {
    const now = Date.now()
    const id = createTaskId(QUEUE, now, randomBytes(ID_RANDOM_BYTES))
    const origin = { id, enqueuedAt: now, correlationId: undefined }
    const followUps = planFollowUps(call, { catalogue, ...origin, traceContext: undefined })
    await broker.enqueue(newTask(definition, {}, call, { ...origin, followUps }))
    return id
  }
  return {
    ...backend,
    service,
    started,
    calls,
    settled,
    enqueue,
    async start(worker = 'test:1', concurrency = 4) {
      const settings = { clock: systemClock, queue: QUEUE, concurrency, worker, random: Math.random }
      const pool = testPool(
        broker,
        registry,
        backend.consumer({ concurrency, worker, capacities: CAPACITIES }),
        settings,
      )
      pools.push(pool)
      await pool.start()
    },
    /** Runs eight tasks that depend on no service, so that the workers have fetched since the last change. */
    async passBy(): Promise<void> {
      const ids: TaskId[] = []
      for (let i = 0; i < 8; i++) ids.push(await enqueue(other))
      for (const id of ids) expect((await settled(id)).status).toBe('completed')
    },
    async status(name: string) {
      const all = await breakers.list(QUEUE, defined)
      return all.find(({ service: each }) => each === name) ?? expect.fail(`breaker ${name} not found`)
    },
    set: (name: keyof typeof defined & string, mode: BreakerMode, by = 'ann') =>
      breakers.set({ queue: QUEUE, service: name, mode, by, settings: defined[name] ?? expect.fail(name) }),
    async statuses(ids: readonly TaskId[]): Promise<(TaskStatus | undefined)[]> {
      return Promise.all(ids.map(async (id) => (await broker.find(id))?.status))
    },
  }
}

export function breakers(open: OpenBackend): void {
  it('while a service is down, its tasks wait without using attempts, and one in each period probes it', async () => {
    const { broker, service, calls, enqueue, start, passBy, settled, status } = await openService(open)
    service.isDown = true
    const ids: TaskId[] = []
    for (let i = 0; i < 6; i++) ids.push(await enqueue(send))
    await start('test:1', 1)
    await eventually(async () => (await status('smtp')).state === 'open')
    // Each of the calls that opened the breaker was one attempt.
    const third = calls[2] ?? expect.fail()
    expect(calls.length).toBeLessThanOrEqual(3 + periodsSince(third))
    const { since: openedAt = 0, ...opened } = await status('smtp')
    expect(opened).toMatchObject({ mode: 'auto', setBy: undefined })
    await passBy()
    expect(calls.length).toBeLessThanOrEqual(3 + periodsSince(third))
    const [last = expect.fail()] = ids.slice(-1)
    const waitsFor = await eventually(async () => (await broker.find(last))?.waitsFor)
    expect(waitsFor).toMatchObject({ kind: 'breaker', service: 'smtp' })
    // The failed probe opens the breaker again.
    await eventually(async () => {
      const { state, since = 0 } = await status('smtp')
      return state === 'open' && since >= openedAt + 1_000
    })
    expect(calls.length).toBeGreaterThanOrEqual(4)
    expect(calls.length).toBeLessThanOrEqual(3 + periodsSince(third))
    service.isDown = false
    const attempts = await Promise.all(ids.map(async (id) => (await settled(id)).attemptsMade))
    expect(attempts.reduce((sum, each) => sum + each, 0)).toBe(calls.length)
    expect(await status('smtp')).toMatchObject({ state: 'closed', startsAt: undefined, failures: 0 })
  })

  it('a half-open breaker lets only its probes start, and all others when they have succeeded', async () => {
    const { service, calls, enqueue, start, passBy, settled, set, status } = await openService(open)
    await set('smtp', 'open')
    await set('smtp', 'auto')
    expect(await status('smtp')).toMatchObject({ state: 'half_open', startsAt: undefined })
    service.hangs = Promise.withResolvers()
    const ids: TaskId[] = []
    for (let i = 0; i < 6; i++) ids.push(await enqueue(send, i % 2 === 0 ? {} : { concurrencyKey: 'a', priority: i }))
    await Promise.all([start('test:1'), start('test:2')])
    await eventually(() => calls.length > 0)
    await passBy()
    expect(calls.length).toBeLessThanOrEqual(1 + periodsSince(calls[0] ?? 0))
    service.hangs.resolve()
    service.hangs = undefined
    for (const id of ids) expect((await settled(id)).status).toBe('completed')
    expect((await status('smtp')).state).toBe('closed')
  })

  it('a task starts when the breakers of all services that it depends on allow it', async () => {
    const { enqueue, start, passBy, settled, set, status, statuses } = await openService(open)
    await set('crm', 'open')
    const both = [await enqueue(sync), await enqueue(sync)]
    const one = await enqueue(send)
    await start()
    expect((await settled(one)).status).toBe('completed')
    await passBy()
    expect(await statuses(both)).toEqual(['waiting', 'waiting'])
    await set('crm', 'auto')
    for (const id of both) expect((await settled(id)).status).toBe('completed')
    // Both probes have succeeded.
    expect((await status('crm')).state).toBe('closed')
    expect((await status('smtp')).calls).toBe(3)
    await set('smtp', 'open')
    const last = await enqueue(sync)
    await passBy()
    expect(await statuses([last])).toEqual(['waiting'])
    await set('smtp', 'closed')
    expect((await settled(last)).status).toBe('completed')
  })

  it('a task that waits for permits does not delay others while a breaker lets it start nothing', async () => {
    const { broker, service, started, enqueue, start, passBy, settled, set, statuses } = await openService(open)
    service.hangs = Promise.withResolvers()
    await start()
    const holder = await enqueue(hold)
    await eventually(() => started.includes(holder))
    const large = await enqueue(sendLarge)
    await eventually(async () => (await broker.find(large))?.waitsFor?.kind === 'permits')
    // One permit is free, but the task that needs two came first.
    const small = await enqueue(otherSmall)
    await passBy()
    expect(await statuses([large, small])).toEqual(['waiting', 'waiting'])
    await set('smtp', 'open')
    expect((await settled(small)).status).toBe('completed')
    expect((await broker.find(large))?.waitsFor).toMatchObject({ kind: 'breaker', service: 'smtp' })
    await set('smtp', 'closed')
    service.hangs.resolve()
    for (const id of [holder, large]) expect((await settled(id)).status).toBe('completed')
  })

  it('a breaker that a person has opened lets no task start until it is set again', async () => {
    const { broker, enqueue, start, passBy, settled, set, status, statuses } = await openService(open)
    expect(await status('smtp')).toEqual({
      ...{ service: 'smtp', state: 'closed', mode: 'auto', since: undefined, startsAt: undefined, setBy: undefined },
      ...{ calls: 0, failures: 0, slow: 0 },
    })
    const before = await set('smtp', 'open')
    expect(before).toMatchObject({ state: 'open', mode: 'open', startsAt: undefined, setBy: { by: 'ann' } })
    // The same mode again changes nothing.
    expect(await set('smtp', 'open', 'bob')).toEqual(before)
    const a = { concurrencyKey: 'a' }
    const ids = [await enqueue(send), await enqueue(send, a), await enqueue(send, { priority: 3 })]
    await start()
    // A task with the same concurrency key is not held up.
    expect((await settled(await enqueue(other, a))).status).toBe('completed')
    await passBy()
    expect(await statuses(ids)).toEqual(['waiting', 'waiting', 'waiting'])
    expect((await broker.counts(QUEUE)).waiting).toBe(3)
    const [first = expect.fail()] = ids
    expect((await broker.find(first))?.waitsFor).toEqual({ kind: 'breaker', service: 'smtp', ahead: 0 })
    const { tasks } = await broker.list({ queue: QUEUE, status: 'waiting', limit: 10, cursor: undefined })
    expect(tasks.map(({ id }) => id).toSorted()).toEqual(ids.toSorted())
    const [cancelled = expect.fail(), ...rest] = ids
    expect(await broker.cancel(cancelled, { stoppable: true })).toBe('cancelled')
    await set('smtp', 'closed')
    for (const id of rest) expect(await settled(id)).toMatchObject({ status: 'completed', attemptsMade: 1 })
  })

  it('a breaker that a person has closed counts failures, but does not open', async () => {
    const { service, enqueue, start, settled, set, status } = await openService(open)
    await set('smtp', 'closed')
    service.isDown = true
    await start()
    const ids = [await enqueue(send), await enqueue(send)]
    for (const id of ids) expect(await settled(id)).toMatchObject({ status: 'dead', attemptsMade: 5 })
    expect(await status('smtp')).toMatchObject({ state: 'closed', mode: 'closed', calls: 10, failures: 10 })
  })

  it('the attempts that were running when a breaker opened do not change it when they end', async () => {
    const { service, enqueue, start, settled, started, set, status } = await openService(open)
    service.hangs = Promise.withResolvers()
    service.isDown = true
    await start()
    const ids = [await enqueue(sendOnce), await enqueue(sendOnce), await enqueue(sendOnce)]
    await eventually(() => started.length === 3)
    await set('smtp', 'open')
    await set('smtp', 'auto')
    service.hangs.resolve()
    for (const id of ids) expect((await settled(id)).status).toBe('dead')
    expect((await status('smtp')).state).toBe('half_open')
  })

  it('a cancelled attempt is not counted as a call', async () => {
    const { broker, service, enqueue, start, settled, started, set, status } = await openService(open)
    await set('smtp', 'open')
    await set('smtp', 'auto')
    service.hangs = Promise.withResolvers()
    await start()
    const probe = await enqueue(send)
    await eventually(() => started.length === 1)
    await broker.cancel(probe, { stoppable: true })
    expect((await settled(probe)).status).toBe('cancelled')
    expect((await status('smtp')).state).toBe('half_open')
  })

  it('a task depends on its services however it was enqueued, and after a requested retry', async () => {
    const { broker, service, enqueue, start, settled, started, set, statuses } = await openService(open)
    service.isDown = true
    await start()
    const dead = await enqueue(sendOnce)
    expect((await settled(dead)).status).toBe('dead')
    await set('smtp', 'open')
    const source = await enqueue(other, { onSuccess: [followUp(send, {})] })
    await settled(source)
    await broker.retry(dead, { by: 'ann', request: dead })
    const yearly = defineSchedule({ name: 'yearly', task: send, input: {}, cron: '0 0 1 1 *' })
    await broker.schedules.put(yearly, { source: 'api', by: 'ann' })
    const scheduled = await broker.schedules.run('yearly')
    await broker.schedules.remove('yearly')
    const waiting = await eventually(async () => {
      const { tasks } = await broker.list({ queue: QUEUE, status: 'waiting', limit: 10, cursor: undefined })
      return tasks.length === 3 && tasks.map(({ id }) => id)
    })
    expect(waiting).toEqual(expect.arrayContaining([dead, scheduled.id]))
    for (const id of waiting) expect((await broker.find(id))?.waitsFor?.kind).toBe('breaker')
    const copied = await broker.find(dead)
    const copyTo = (queueOf: string) =>
      retryCopy(copied ?? expect.fail(), sendOnce, { id: dead, queue: catalogue.queue(queueOf), now: Date.now() })
    expect([copyTo(QUEUE).services, copyTo('elsewhere').services]).toEqual([['smtp'], undefined])
    expect(started.filter((id) => waiting.includes(id))).toEqual([dead])
    service.isDown = false
    await set('smtp', 'auto')
    for (const id of waiting) expect((await settled(id)).status).toBe('completed')
    expect(await statuses(waiting)).toEqual(['completed', 'completed', 'completed'])
  })

  it('if the worker of a probe dies, another task probes in the next period', async () => {
    const { service, enqueue, start, settled, started, set, kill, status } = await openService(open)
    await set('smtp', 'open')
    await set('smtp', 'auto')
    service.hangs = Promise.withResolvers()
    const probe = await enqueue(send)
    await start('test:1', 1)
    await eventually(() => started.length === 1)
    await kill('test:1', [probe])
    service.hangs.resolve()
    const next = await enqueue(send)
    await start('test:2')
    for (const id of [probe, next]) expect((await settled(id)).status).toBe('completed')
    expect((await status('smtp')).state).toBe('closed')
  })
}

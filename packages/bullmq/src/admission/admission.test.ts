// Admission: a queue whose fleet drains accepts no tasks, and an open one costs no round trip.
import { randomBytes } from 'node:crypto'
import type { QueueLimits } from '@bullpen/contract'
import { type CommandSpec, createTaskId } from '@bullpen/contract/internal'
import { newTask } from '@bullpen/engine/internal'
import { privateRedis } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openPatientBroker } from '../broker/patient-broker.fixture.ts'
import { fleetRig } from '../fleet/fleet.fixture.ts'
import { queueKeys } from '../keys.ts'
import { monitorCommands } from '../redis/command-monitor.fixture.ts'
import type { Commander } from '../scripts/script.ts'
import { setup, short, silent } from '../setup.fixture.ts'
import { openAdmission } from './admission.ts'

const DRAIN: CommandSpec = { action: 'drain', mode: 'light', queue: 'rig' }
const RESUME: CommandSpec = { action: 'resume', queue: 'rig' }

async function drained(redisUrl?: string) {
  const pools = await setup({ ...(redisUrl && { redisUrl }) })
  const members = await fleetRig({ namespace: pools.namespace, queues: ['rig'], ...(redisUrl && { redisUrl }) })
  let sent = 0
  const command = (order: CommandSpec) => members.fleet.send({ id: `c${++sent}`, spec: order, by: 'me' })
  const isRefused = () =>
    pools.enqueue(short).then(
      () => false,
      (error: { code?: string }) => error.code === 'queue_draining',
    )
  return { ...pools, ...members, command, isRefused }
}

describe('the admission of a queue', () => {
  it('is refused while its fleet drains: soon by a running broker, at once by a new one', async () => {
    const { command, isRefused, enqueue, namespace, redisUrl, broker } = await drained()
    await enqueue(short)
    await command(DRAIN)
    await eventually(isRefused)
    await expect(enqueue(short)).rejects.toMatchObject({
      code: 'queue_draining',
      message: expect.stringMatching(
        /^queue 'rig' is not accepting tasks: command c1 started to drain the queue's fleet \(light\) at .*$/,
      ),
    })
    const waiting = (await broker.counts('rig')).waiting
    const other = await rigBroker({ redisUrl, namespace })
    await expect(other.enqueue(aTask())).rejects.toMatchObject({ code: 'queue_draining' })
    expect((await broker.counts('rig')).waiting).toBe(waiting)
    await command(RESUME)
    await eventually(async () => !(await isRefused()))
  })

  it('is read from Redis by a broker that does not know it', async () => {
    const { command, namespace, redisUrl, redis } = await drained()
    await command(DRAIN)
    const admission = openAdmission({
      redis,
      redisUrl,
      namespace,
      queues: ['rig'],
      checkSchema: () => undefined,
      log: silent,
    })
    onTestFinished(() => admission.close())
    await expect(admission.admit('rig')).rejects.toMatchObject({ code: 'queue_draining' })
  })

  it('stays open for child tasks of running handlers', async () => {
    const { command, namespace, redisUrl, isRefused } = await drained()
    await command(DRAIN)
    await eventually(isRefused)
    const workers = await rigBroker({ redisUrl, namespace, admission: 'open' })
    const task = aTask()
    await workers.enqueue(task)
    expect((await workers.find(task.id))?.status).toBe('waiting')
  })

  it('costs no round trip while it is known', async () => {
    const server = await privateRedis()
    await server.start()
    const { enqueue, redis, namespace } = await drained(server.url)
    await enqueue(short)
    const asked: string[] = []
    const monitor = await monitorCommands(redis, ([name = '', key = ''], source) => {
      if (source !== 'lua') asked.push(`${name.toLowerCase()} ${key}`)
    })
    onTestFinished(monitor.close)
    // On a busy machine, Redis may not respond in time.
    for (let i = 0; i < 200; i++) await eventually(() => enqueue(short))
    await redis.publish('over', '')
    await eventually(() => asked.includes('publish over'))
    // The settings are also read after the connection is opened and by the check every two seconds.
    const settingsKey = queueKeys(namespace, 'rig').settings
    expect(asked.filter((command) => command === `hgetall ${settingsKey}`).length).toBeLessThan(50)
  })

  it('applies the limit that it read last while the settings are read again', async () => {
    const { command, namespace, redisUrl, redis } = await drained()
    await command({ action: 'limit', queue: 'rig', maxTasks: 1 })
    let answering = Promise.resolve()
    const hgetall = async (key: string) => {
      await answering
      return redis.hgetall(key)
    }
    // The admission uses only these commands.
    const slow = { get: redis.get.bind(redis), hgetall } as unknown as Commander
    const options = { redis: slow, redisUrl, namespace, queues: ['rig'], checkSchema: () => undefined, log: silent }
    const admission = openAdmission(options)
    onTestFinished(() => admission.close())
    await eventually(() => admission.admit('rig') === undefined)
    const answers = Promise.withResolvers<void>()
    answering = answers.promise
    await command({ action: 'limit', queue: 'rig', maxTasks: 2 })
    await eventually(() => admission.admit('rig') !== undefined)
    expect(admission.limitsOf('rig', undefined, undefined)).toEqual({ maxTasks: 1 })
    answers.resolve()
    await admission.admit('rig')
    expect(admission.limitsOf('rig', undefined, undefined)).toEqual({ maxTasks: 2 })
  })

  it('is found out by the maintenance if a notification was lost', async () => {
    const { fleet, redis, namespace, isRefused, enqueue } = await drained()
    await enqueue(short)
    await redis.hset(
      queueKeys(namespace, 'rig').settings,
      'drain',
      JSON.stringify({ mode: 'soft', since: Date.now(), command: 'x' }),
    )
    await eventually(isRefused)
    expect((await fleet.queueSettings('rig')).drain).toMatchObject({ mode: 'soft' })
  })
})

describe('a limit that a command has set', () => {
  it('replaces that of the definition, until another command removes it', async () => {
    const { command, namespace, redisUrl, broker } = await drained()
    const limits = { maxTasks: 3 }
    const isAccepted = (others = broker) =>
      others.enqueue(aTask(limits)).then(
        () => true,
        ({ code }: { code?: string }) => code !== 'queue_full',
      )
    for (let i = 0; i < 3; i++) expect(await isAccepted()).toBe(true)
    expect(await isAccepted()).toBe(false)
    await command({ action: 'limit', queue: 'rig', maxTasks: 5 })
    await eventually(() => isAccepted())
    await expect(broker.enqueue(aTask(limits))).resolves.toMatchObject({ action: 'created' })
    expect(broker.limitsOf('rig', limits)).toMatchObject({ maxTasks: 5, maxBytes: expect.any(Number) })
    await expect(broker.enqueue(aTask(limits))).rejects.toMatchObject({ reached: { max: 5, found: 5 } })
    // A new process reads the limit before its first task.
    const other = await rigBroker({ redisUrl, namespace })
    await expect(other.enqueue(aTask(limits))).rejects.toMatchObject({ reached: { max: 5 } })
    await command({ action: 'limit', queue: 'rig', maxTasks: 'none' })
    await eventually(async () => {
      const error = await broker.enqueue(aTask(limits)).catch((caught) => caught)
      return error.reached?.max === 3
    })
    expect((await broker.counts('rig')).waiting).toBe(5)
  })

  it('replaces only the limit that the command names, and applies to bytes and to the age as well', async () => {
    const { command, broker } = await drained()
    const limits = { maxTasks: 3, maxBytes: 100_000, maxAgeMs: 60_000 }
    await broker.enqueue({ ...aTask(limits), enqueuedAt: Date.now() - 30_000 })
    await command({ action: 'limit', queue: 'rig', maxAge: '10s' })
    const reached = () =>
      broker.enqueue(aTask(limits)).then(
        () => undefined,
        ({ reached }) => `${reached.limit} ${reached.max}`,
      )
    await eventually(async () => (await reached()) === 'maxAge 10000')
    await command({ action: 'limit', queue: 'rig', maxAge: 'none', maxBytes: 1_000 })
    await eventually(async () => (await reached()) === 'maxBytes 1000')
    await command({ action: 'limit', queue: 'rig', maxBytes: 'none', maxTasks: 1 })
    await eventually(async () => (await reached()) === 'maxTasks 1')
  })

  it('applies to a queue whose definition has none, but not to child tasks', async () => {
    const { command, namespace, redisUrl, broker } = await drained()
    await command({ action: 'limit', queue: 'rig', maxTasks: 1 })
    await eventually(async () => (await broker.enqueue(aTask()).catch((error) => error)).reached?.max === 1)
    const workers = await rigBroker({ redisUrl, namespace, admission: 'open' })
    expect(await workers.enqueue(aTask())).toMatchObject({ action: 'created' })
  })

  it('replaces the rate of one API key in the queue, until another command removes it', async () => {
    const { command, namespace, redisUrl, broker } = await drained()
    const limits = { perApiKey: { enqueueRate: { max: 1, perMs: 3_600_000 } } }
    const enqueueAs = (apiKeyName: string, others = broker) =>
      others.enqueue({ ...aTask(limits), apiKeyName }).then(
        () => 'created',
        ({ code }: { code?: string }) => code,
      )
    expect([await enqueueAs('shop'), await enqueueAs('shop')]).toEqual(['created', 'enqueue_rate_exceeded'])
    const enqueueRate = { max: 1_000, per: '1s' }
    await command({ action: 'limit', queue: 'rig', apiKeyName: 'shop', enqueueRate })
    await eventually(async () => (await enqueueAs('shop')) === 'created')
    const other = await rigBroker({ redisUrl, namespace })
    expect([await enqueueAs('other', other), await enqueueAs('other', other)]).toEqual([
      'created',
      'enqueue_rate_exceeded',
    ])
    await eventually(async () => (await enqueueAs('shop', other)) === 'created')
    await command({ action: 'limit', queue: 'rig', apiKeyName: 'shop', enqueueRate: 'none' })
    await eventually(async () => (await enqueueAs('shop')) === 'enqueue_rate_exceeded')
  })

  it('limits an API key in a queue whose definition has no limits', async () => {
    const { command, broker } = await drained()
    const enqueueRate = { max: 1, per: '1h' }
    await command({ action: 'limit', queue: 'rig', apiKeyName: 'shop', enqueueRate })
    await eventually(async () => {
      const error = await broker.enqueue({ ...aTask(), apiKeyName: 'shop' }).catch((caught) => caught)
      expect(error.reached).toMatchObject({ apiKeyName: 'shop', queue: 'rig', rate: { max: 1, perMs: 3_600_000 } })
      return true
    })
    expect(await broker.enqueue({ ...aTask(), apiKeyName: 'other' })).toMatchObject({ action: 'created' })
    expect(await broker.enqueue(aTask())).toMatchObject({ action: 'created' })
  })
})

function aTask(limits?: QueueLimits) {
  const now = Date.now()
  const id = createTaskId('rig', now, randomBytes(10))
  return newTask(short, {}, {}, { id, enqueuedAt: now, correlationId: undefined, limits })
}

async function rigBroker(options: { redisUrl: string; namespace: string; admission?: 'open' }) {
  const broker = openPatientBroker({ ...options, queues: ['rig'], sizeLimit: 10_000, log: silent })
  onTestFinished(() => broker.close())
  await eventually(() => broker.ping().then(() => true))
  return broker
}

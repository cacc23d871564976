// Admission by Redis's memory: producers stop at the watermark, so that Redis never refuses a write of theirs.
import { randomBytes } from 'node:crypto'
import type { QueueLimits } from '@bullpen/contract'
import { createTaskId, MAX_ATOMIC_TASKS } from '@bullpen/contract/internal'
import { newTask } from '@bullpen/engine/internal'
import { privateRedis } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { BrokerOptions, BullmqBroker } from '../broker/broker-options.ts'
import { openPatientBroker } from '../broker/patient-broker.fixture.ts'
import { producersKey, queueKeys } from '../keys.ts'
import { monitorCommands } from '../redis/command-monitor.fixture.ts'
import { short, silent } from '../setup.fixture.ts'
import { parseMemory } from './memory-meter.ts'

const NAMESPACE = 'memory'
const QUEUE = short.queue

async function server() {
  const owned = await privateRedis()
  await owned.start()
  const redis = new Redis(owned.url)
  onTestFinished(() => redis.disconnect())
  const memory = async () => parseMemory(await redis.info('memory')) ?? expect.fail('no memory')
  return {
    redis,
    url: owned.url,
    usedShare: async () => {
      const { usedBytes, limitBytes } = await memory()
      return usedBytes / limitBytes
    },
    /** Sets `maxmemory` so that Redis uses this share of it now, mostly for data, because its connections also use some. */
    async limitTo(share: number) {
      await redis.setrange('ballast', 20_000_000, 'end')
      await redis.config('SET', 'maxmemory', Math.round((await memory()).usedBytes / share))
    },
    async open(options: Partial<BrokerOptions> = {}, redisUrl = owned.url) {
      const broker = openPatientBroker({
        redisUrl,
        namespace: NAMESPACE,
        queues: [QUEUE],
        sizeLimit: 100_000,
        log: silent,
        leads: false,
        ...options,
      })
      onTestFinished(() => broker.close())
      await eventually(() => broker.ping().then(() => true))
      return broker
    },
  }
}

function create(dataBytes = 100, limits?: QueueLimits) {
  const now = Date.now()
  const origin = { id: createTaskId(QUEUE, now, randomBytes(10)), enqueuedAt: now, correlationId: undefined, limits }
  return newTask(short, { text: randomBytes(dataBytes / 2).toString('hex') }, {}, origin)
}

const enqueue = (broker: BullmqBroker, dataBytes?: number, limits?: QueueLimits) =>
  broker.enqueue(create(dataBytes, limits))

/** Calls `store` until it rejects, and returns what it resolved to, and the error. */
async function fillUp<T>(store: () => Promise<T>): Promise<readonly [stored: readonly T[], error: unknown]> {
  const stored: T[] = []
  for (;;) {
    try {
      stored.push(await store())
    } catch (error) {
      return [stored, error]
    }
  }
}

const isRefused = (code: string) => (broker: BullmqBroker) =>
  enqueue(broker).then(
    () => false,
    (error: { code?: string }) => error.code === code,
  )
const isFull = isRefused('redis_full')

describe('producers', () => {
  it('stop at the watermark, and Redis refuses no write, while many of them store tasks as fast as they can', async () => {
    const { redis, usedShare, open } = await server()
    await redis.config('SET', 'maxmemory', '30mb')
    const producers = await Promise.all(Array.from({ length: 4 }, () => open({ queueMemoryShare: 100 })))
    let accepted = 0
    const highest: number[] = []
    await Promise.all(
      producers.flatMap((broker) =>
        Array.from({ length: 16 }, async () => {
          for (;;) {
            try {
              await enqueue(broker, 20_000)
              accepted++
            } catch (error) {
              expect(error).toMatchObject({ code: 'redis_full' })
              highest.push(await usedShare())
              return
            }
          }
        }),
      ),
    )
    expect(Math.max(...highest)).toBeLessThan(0.85)
    expect(await usedShare()).toBeGreaterThan(0.7)
    expect(await redis.llen(queueKeys(NAMESPACE, QUEUE).wait)).toBe(accepted)
    expect(await redis.info('errorstats')).not.toContain('errorstat_OOM')
    expect(await redis.zcard(producersKey(NAMESPACE))).toBe(4)
  })

  it('get an error that says how much memory is used and what to do, and nothing is sent to Redis', async () => {
    const { redis, open, limitTo } = await server()
    const refused: unknown[] = []
    const broker = await open({ onRefused: (each) => refused.push(each) })
    await enqueue(broker)
    await limitTo(0.9)
    await eventually(() => isFull(broker))
    const { wait } = queueKeys(NAMESPACE, QUEUE)
    const before = await redis.llen(wait)
    expect(broker.memory()?.usedBytes).toBeGreaterThan(0.8 * (broker.memory()?.limitBytes ?? 0))
    const asked = await commandsDuring(redis, async () => {
      await expect(enqueue(broker)).rejects.toMatchObject({
        code: 'redis_full',
        message: expect.stringMatching(
          /^the task was not accepted: Redis at redis:\S+ uses [89]\d\.\d% of its memory \(\d+ of \d+ MB\), and the limit for new tasks is 80%; retry /,
        ),
      })
    })
    expect(asked.filter(storesTask)).toEqual([])
    expect(await redis.llen(wait)).toBe(before)
    expect(refused).toContainEqual({ queue: QUEUE, code: 'redis_full' })
  })

  it('refuse tasks of a queue that has taken its share of the memory, unless a limit of its own replaces the share', async () => {
    const { redis, open } = await server()
    await redis.config('SET', 'maxmemory', '100mb')
    const broker = await open({ queueMemoryShare: 1 })
    const max = 2 ** 20
    const [{ length: accepted }, error] = await fillUp(() => enqueue(broker, 50_000))
    expect(error).toMatchObject({ code: 'queue_full', reached: { limit: 'maxBytes', max } })
    expect(accepted).toBe(20)
    expect((await broker.totals(QUEUE)).bytes).toBeGreaterThan(max - 51_000)
    expect(await enqueue(broker, 50_000, { maxBytes: 2 * max })).toMatchObject({ action: 'created' })
    await expect(enqueue(broker, 100, { maxTasks: 1_000 })).rejects.toMatchObject({ reached: { limit: 'maxBytes' } })
    // Handlers enqueue child tasks through such a broker.
    expect(await enqueue(await open({ admission: 'open' }), 50_000)).toMatchObject({ action: 'created' })
    const other = await open()
    expect(await enqueue(other, 50_000)).toMatchObject({ action: 'created' })
  })

  it('stop before the watermark if tasks that are stored together have no room, although each of them has', async () => {
    const { open, limitTo } = await server()
    const refused: unknown[] = []
    const broker = await open({ onRefused: (each) => refused.push(each) })
    await enqueue(broker)
    // The room is about 150 kB. Each of the tasks costs more than 1 kB, nearly all of it apart from its data.
    await limitTo(0.7945)
    await enqueue(broker)
    await eventually(async () => (broker.memory()?.limitBytes ?? Number.POSITIVE_INFINITY) < 100_000_000)
    const together = Array.from({ length: MAX_ATOMIC_TASKS }, () => create(2))
    await expect(broker.enqueueAll(together)).rejects.toMatchObject({
      code: 'redis_full',
      message: expect.stringMatching(/^the task was not accepted: more is being enqueued than may be stored before /),
    })
    expect(refused).toHaveLength(MAX_ATOMIC_TASKS)
    expect(await broker.enqueueAll(together.slice(0, 10))).toHaveLength(10)
  })

  it('accept tasks again soon after room is made', async () => {
    const { open, limitTo } = await server()
    const broker = await open()
    await limitTo(0.9)
    await eventually(() => isFull(broker))
    await limitTo(0.5)
    await eventually(async () => !(await isFull(broker)))
  })

  it('have the watermark that they were opened with', async () => {
    const { open, limitTo } = await server()
    await limitTo(0.5)
    await eventually(async () => isFull(await open({ memoryWatermark: 40 })))
    expect(await isFull(await open({ memoryWatermark: 60 }))).toBe(false)
  })

  it('store a task in one round trip, and read the memory apart from it', async () => {
    const { redis, open } = await server()
    const broker = await open()
    await enqueue(broker)
    const asked = await commandsDuring(redis, async () => {
      for (let i = 0; i < 300; i++) await enqueue(broker)
    })
    expect(asked.filter(storesTask)).toHaveLength(300)
    // The readings depend on time, and on a busy machine these tasks take longer.
    expect(asked.filter((command) => command.includes(producersKey(NAMESPACE))).length).toBeLessThan(150)
  })

  it('accept tasks if they may not run INFO, and log so once', async () => {
    const { redis, url, open } = await server()
    await redis.acl('SETUSER', 'producer', 'on', '>secret', '~*', '&*', '+@all', '-info')
    const lines: string[] = []
    const log = { ...silent, info: (_fields: unknown, line?: string) => void lines.push(line ?? '') }
    const broker = await open({ log }, url.replace('redis://', 'redis://producer:secret@'))
    await enqueue(broker)
    await enqueue(broker)
    expect(broker.memory()).toBeUndefined()
    expect(lines.filter((line) => line.includes('does not report its memory'))).toHaveLength(1)
  })
})

describe('child tasks of workers', () => {
  it('are not refused at the watermark', async () => {
    const { redis, open, limitTo } = await server()
    const [producer, worker] = [await open(), await open({ admission: 'open' })]
    await limitTo(0.9)
    await eventually(() => isFull(producer))
    await enqueue(worker)
    expect(await redis.llen(queueKeys(NAMESPACE, QUEUE).wait)).toBeGreaterThan(0)
    expect(await redis.zcard(producersKey(NAMESPACE))).toBe(1)
  })
})

describe('a server that evicts', () => {
  it('gets no task, unless that is allowed', async () => {
    const { redis, open } = await server()
    await redis.config('SET', 'maxmemory-policy', 'allkeys-lru')
    const broker = await open()
    const message = expect.stringMatching(
      /^Redis at redis:\S+ may delete tasks because its .* is allkeys-lru; set the policy to noeviction, /,
    )
    await expect(enqueue(broker)).rejects.toMatchObject({ code: 'unsafe_redis', message })
    await expect(broker.checkServer()).rejects.toMatchObject({ code: 'unsafe_redis' })
    expect(await redis.llen(queueKeys(NAMESPACE, QUEUE).wait)).toBe(0)
    const allowed = await open({ allowEviction: true })
    await allowed.checkServer()
    await enqueue(allowed)
  })

  it('is noticed while tasks are enqueued', async () => {
    const { redis, open } = await server()
    const broker = await open()
    await enqueue(broker)
    await redis.config('SET', 'maxmemory-policy', 'volatile-ttl')
    await eventually(() => isRefused('unsafe_redis')(broker))
    await redis.config('SET', 'maxmemory-policy', 'noeviction')
    await eventually(async () => !(await isRefused('unsafe_redis')(broker)))
  })
})

describe('the output of INFO memory', () => {
  it('gives what Redis compares with its limit, and the machine’s memory if there is no limit', () => {
    const info = (maxmemory: number) =>
      `# Memory\r\nused_memory:900\r\nused_memory_human:900B\r\ntotal_system_memory:8000\r\nmaxmemory:${maxmemory}\r\nmaxmemory_policy:noeviction\r\nmem_not_counted_for_evict:100\r\n`
    expect(parseMemory(info(1_000))).toEqual({ usedBytes: 800, limitBytes: 1_000, policy: 'noeviction' })
    expect(parseMemory(info(0))).toEqual({ usedBytes: 800, limitBytes: 8_000, policy: 'noeviction' })
    expect(parseMemory('')).toBeUndefined()
  })
})

/** Returns whether a command is an add. The backlog is read apart from adds, and its key is also read. */
function storesTask(command: string): boolean {
  return command.includes(queueKeys(NAMESPACE, QUEUE).wait) && !command.includes('LLEN')
}

/** Returns the commands that clients send while `act` runs, each as a line. */
async function commandsDuring(redis: Redis, act: () => Promise<void>): Promise<readonly string[]> {
  const commands: string[] = []
  const monitor = await monitorCommands(redis, (words, source) => {
    if (source !== 'lua') commands.push(words.join(' '))
  })
  onTestFinished(monitor.close)
  await act()
  await redis.publish('over', '')
  await eventually(() => commands.some((command) => command.startsWith('publish ')))
  return commands
}

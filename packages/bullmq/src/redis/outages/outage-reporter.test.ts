// What a process logs when its Redis goes away and comes back.
import { randomUUID } from 'node:crypto'
import { EventEmitter } from 'node:events'
import type { Log } from '@bullpen/contract'
import { privateRedis } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished } from 'vitest'
import { bareConsumer } from '../../bare-consumer.fixture.ts'
import { openBroker } from '../../broker/broker.ts'
import { openFleet } from '../../fleet/fleet.ts'
import { addressOf, outageReporter } from './outage-reporter.ts'

interface Line {
  readonly level: keyof Log
  readonly message: string
  readonly fields: object
}

function recordingLog(): { readonly log: Log; readonly logs: readonly Line[] } {
  const logs: Line[] = []
  const at = (level: keyof Log) => (fields: object, message: string) => void logs.push({ level, message, fields })
  return { logs, log: { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') } }
}

/** A broker, a fleet and two consumers on a Redis of their own, which log into one log, as in a worker process. */
async function setup(queues = ['one', 'two']) {
  const server = await privateRedis()
  await server.start()
  const { log, logs } = recordingLog()
  // Repeats its line sooner than the default's 30 s. Keep a connection, so that the reporter is the process's own.
  const redis = new Redis(server.url)
  outageReporter(server.url, log, 200).follow(redis)
  const common = { redisUrl: server.url, namespace: `t-${randomUUID().slice(0, 12)}`, log }
  const broker = openBroker({ ...common, queues, sizeLimit: 10_000 })
  const fleet = openFleet({ ...common, queues })
  const stopListening = fleet.listen('w', () => {})
  const consumers = queues.map((queue) => bareConsumer({ ...common, queue }))
  onTestFinished(async () => {
    stopListening()
    await fleet.close()
    await broker.close()
    await Promise.all(consumers.map((consumer) => consumer.stop()))
    redis.disconnect()
  })
  await Promise.all(consumers.map((consumer) => consumer.open()))
  for (const consumer of consumers) void consumer.run()
  await eventually(() => Promise.all([broker.ping(), fleet.commands(1)]).then(() => true))
  // The server's settings are also checked.
  const lines = () => logs.filter(({ level, fields }) => level !== 'debug' && !('check' in fields))
  return {
    server,
    broker,
    lines,
    count: (message: string) => lines().filter((line) => line.message === message).length,
  }
}

describe('a process whose Redis goes away', () => {
  it('logs one line when it goes, one at each interval with the failures, and one when it is back', async () => {
    const { server, broker, lines, count } = await setup()
    expect(lines()).toEqual([])
    await server.crash()
    await eventually(() => count('redis still not reachable') >= 3)
    await server.start()
    await eventually(() => count('redis connection restored') === 1)
    await eventually(() => broker.ping().then(() => true))
    const redis = server.url
    const [first, ...others] = lines()
    expect(first).toEqual({ level: 'warn', message: 'redis connection lost', fields: { redis } })
    expect(others.at(-1)).toEqual({
      level: 'info',
      message: 'redis connection restored',
      fields: { redis, unreachableMs: expect.any(Number) },
    })
    const repeated = others.slice(0, -1)
    expect(new Set(repeated.map(({ message }) => message))).toEqual(new Set(['redis still not reachable']))
    // Nine connections failed again and again, and were counted and not logged.
    const fields = repeated.at(-1)?.fields as { readonly failures: number }
    expect(fields).toEqual({ redis, unreachableMs: expect.any(Number), failures: expect.any(Number) })
    expect(fields.failures).toBeGreaterThan(repeated.length)
  })

  it('logs that it is back if the last connection that was down is closed on purpose meanwhile', async () => {
    const redisUrl = 'redis://not-used:1'
    const { log, logs } = recordingLog()
    const reporter = outageReporter(redisUrl, log)
    // The reporter only listens to events and reads the status.
    const connection = () => Object.assign(new EventEmitter(), { status: 'connecting' }) as unknown as Redis
    const [stays, closes] = [connection(), connection()]
    for (const each of [stays, closes]) {
      reporter.follow(each)
      each.emit('reconnecting')
    }
    stays.status = 'ready'
    stays.emit('ready')
    closes.emit('end')
    expect(logs.map(({ message }) => message)).toEqual(['redis not reachable', 'redis connection restored'])
    stays.emit('end')
  })

  it('answers callers with the address, and without the words of the Redis client', async () => {
    const { server, broker } = await setup()
    await server.crash()
    const error = await eventually(() =>
      broker.ping().then(
        () => undefined,
        (thrown: unknown) => thrown,
      ),
    )
    expect(error).toMatchObject({ code: 'redis_unavailable', message: `Redis is not reachable at ${server.url}` })
    // A consumer closes its connections in order only when Redis answers.
    await server.start()
    await eventually(() => broker.ping().then(() => true))
  })
})

describe('the address of a Redis', () => {
  it.each([
    ['redis://ann:secret@db.example:6380/2', 'redis://db.example:6380/2'],
    ['rediss://db.example?ca=ca.pem', 'rediss://db.example:6379'],
    ['redis://[::1]:7000', 'redis://[::1]:7000'],
    ['redis+cluster://ann:secret@a:7000,b:7001', 'redis+cluster://a:7000,b:7001'],
    ['not a URL', 'the configured address'],
  ])('%s is shown as %s', (url, shown) => {
    expect(addressOf(url)).toBe(shown)
  })
})

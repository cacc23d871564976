// Tests what a process does, logs and reports when its server is a read-only replica, with real servers behind an address that can be
// moved from one to another.
import { randomUUID } from 'node:crypto'
import type { Log } from '@bullpen/contract'
import { privateRedis } from '@bullpen/testing'
import { eventually, faultProxy } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { expect, it, onTestFinished } from 'vitest'
import { bareConsumer } from '../../bare-consumer.fixture.ts'
import { openBroker } from '../../broker/broker.ts'
import { producerConnection, workerConnection } from '../../connection.ts'
import { followPrimary } from './primary.ts'

const READ_ONLY = /^Redis at redis:\/\/127\.0\.0\.1:\d+ is a read-only replica; connect to the primary/

async function startServer() {
  const server = await privateRedis()
  await server.start()
  const admin = new Redis(server.url)
  onTestFinished(() => admin.disconnect())
  return {
    url: server.url,
    admin,
    // Nothing listens on port 1, so the replica keeps the data that it has.
    demote: () => admin.replicaof('127.0.0.1', 1),
    promote: () => admin.replicaof('NO', 'ONE'),
  }
}

/** An address that leads to one of several servers, as a service's name does. */
async function openAddress(url: string) {
  const proxy = await faultProxy(url)
  onTestFinished(() => proxy.close())
  return proxy
}

function recordingLog() {
  const lines: string[] = []
  const write = (_: object, message: string): void => void lines.push(message)
  const log: Log = { debug() {}, info: write, warn: write, error: write }
  return { log, lines: () => lines.filter((line) => !/^redis (?:appendonly|maxmemory|hash)/.test(line)) }
}

async function connected() {
  const server = await startServer()
  const address = await openAddress(server.url)
  const { log, lines } = recordingLog()
  const [producer, worker] = [producerConnection(address.url, log), workerConnection(address.url, log)]
  onTestFinished(() => {
    producer.disconnect()
    worker.disconnect()
  })
  await eventually(() => [producer, worker].every(({ status }) => status === 'ready'))
  return { server, address, log, lines, producer, worker }
}

const messageOf = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => 'no error',
    (error: Error) => error.message,
  )

it('after a failover, the connections move to the new primary, and a worker sends the commands there that the old one refused', async () => {
  const { server, address, lines, producer, worker } = await connected()
  const next = await startServer()
  await server.demote()
  const stored = worker.set('by-worker', '1')
  await expect(producer.set('by-producer', '1')).rejects.toThrow(/^READONLY /)
  await eventually(() => lines().length > 0)
  address.moveTo(next.url)
  await stored
  await eventually(() => producer.set('by-producer', '2').then(() => true))
  expect(await next.admin.mget('by-worker', 'by-producer')).toEqual(['1', '2'])
  expect(await server.admin.mget('by-worker', 'by-producer')).toEqual([null, null])
  await eventually(() => lines().length === 2)
  expect(lines()).toEqual(['redis is a read-only replica: connect to the primary', 'redis connection restored'])
})

it('a process whose address leads to a replica says so to its callers, its probes and its log, until the server is a primary', async () => {
  const server = await startServer()
  await server.demote()
  const address = await openAddress(server.url)
  const { log, lines } = recordingLog()
  const common = { redisUrl: address.url, namespace: `t-${randomUUID().slice(0, 12)}`, log }
  const broker = openBroker({ ...common, queues: ['rig'], sizeLimit: 10_000, leads: false })
  onTestFinished(() => broker.close())
  const consumer = bareConsumer(common)
  const opening = consumer.open()
  await eventually(async () => READ_ONLY.test(await messageOf(broker.ping())))
  await eventually(() => READ_ONLY.test(consumer.notReady() ?? ''))
  // While the connections wait until they try again, the reason is the same.
  for (let i = 0; i < 10; i++) expect(await messageOf(broker.counts('rig'))).toMatch(READ_ONLY)
  expect(lines()).toEqual(['redis is a read-only replica: connect to the primary'])
  await server.promote()
  await opening
  await eventually(() => broker.ping().then(() => true))
  await eventually(() => lines().includes('redis connection restored'))
  expect(consumer.notReady()).toBeUndefined()
  await consumer.stop()
})

it('a ping fails on a server that has become a replica, although the server responds', async () => {
  const { server, address, log } = await connected()
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const broker = openBroker({ redisUrl: address.url, namespace, log, queues: ['rig'], sizeLimit: 10_000, leads: false })
  onTestFinished(() => broker.close())
  await eventually(() => broker.ping().then(() => true))
  await server.demote()
  expect(await messageOf(broker.ping())).toMatch(READ_ONLY)
})

it('while the address leads to a replica, the client reconnects less and less often, and its other delays do not change', () => {
  const refused = new Error("READONLY You can't write against a read only replica.")
  const client = followPrimary(new Redis({ lazyConnect: true, retryStrategy: (times) => times }))
  const { options } = client
  expect(options.reconnectOnError?.(new Error('WRONGTYPE'))).toBe(false)
  const delays = Array.from({ length: 8 }, () => {
    options.reconnectOnError?.(refused)
    return options.retryStrategy?.(1)
  })
  expect(delays).toEqual([100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000])
  expect(options.retryStrategy?.(7)).toBe(7)
  const blocking = client.duplicate().options
  expect(blocking.reconnectOnError?.(refused)).toBe(2)
  expect([blocking.retryStrategy?.(1), blocking.retryStrategy?.(7)]).toEqual([100, 7])
})

// Subscribers that share a connection, and one that is closed in the middle of a reconnection.
import { createServer, type Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { privateRedis } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { expect, it, onTestFinished } from 'vitest'
import { silent } from '../setup.fixture.ts'
import { openSubscriber } from './subscriber.ts'

/** Speaks as much of Redis's protocol as a subscriber needs. Only the first connection gets an answer to SUBSCRIBE. */
async function redisThatAnswersOneSubscriber() {
  const sockets: Socket[] = []
  let waiting = 0
  const server = createServer((socket) => {
    const answers = sockets.push(socket) === 1
    socket.on('error', () => {})
    socket.on('data', (data) => {
      for (const [, command] of data.toString().matchAll(/\*\d+\r\n\$\d+\r\n(\w+)\r\n/g)) {
        if (command?.toLowerCase() === 'info') socket.write('$17\r\nredis_version:7.0\r\n')
        else if (command?.toLowerCase() !== 'subscribe') socket.write('+OK\r\n')
        else if (answers) socket.write('*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n')
        else waiting++
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  return {
    url: `redis://127.0.0.1:${port}`,
    waiting: () => waiting,
    disconnect: () => sockets.forEach((socket) => void socket.destroy()),
  }
}

it('leaves no unhandled rejection when it is closed before Redis answers that it is subscribed again', async () => {
  const unhandled: unknown[] = []
  const record = (error: unknown): void => void unhandled.push(error)
  process.on('unhandledRejection', record)
  onTestFinished(() => void process.off('unhandledRejection', record))
  const redis = await redisThatAnswersOneSubscriber()
  let subscribed = 0
  const onSubscribed = (): void => void subscribed++
  const subscriber = openSubscriber({ redisUrl: redis.url, channels: ['a'], onMessage() {}, onSubscribed, log: silent })
  await eventually(() => subscribed === 1)
  redis.disconnect()
  await eventually(() => redis.waiting() > 0)
  subscriber.close()
  redis.disconnect()
  await eventually(() => !subscriber.isConnected())
  await turn()
  expect({ subscribed, unhandled }).toEqual({ subscribed: 1, unhandled: [] })
})

it('the subscribers of a process share one connection, each with messages on its own channels until it is closed', async () => {
  const server = await privateRedis()
  await server.start()
  const redis = new Redis(server.url)
  onTestFinished(() => redis.disconnect())
  const subscribers = async (): Promise<number> =>
    String(await redis.client('LIST', 'TYPE', 'PUBSUB'))
      .split('\n')
      .filter((line) => line !== '').length
  const open = (...channels: string[]) => {
    const received: string[] = []
    const ready = Promise.withResolvers<void>()
    const onMessage = (channel: string, message: string): void => void received.push(`${channel} ${message}`)
    const common = { redisUrl: server.url, onMessage, onSubscribed: ready.resolve, log: silent }
    const subscriber = openSubscriber({ ...common, channels })
    onTestFinished(subscriber.close)
    return { ...subscriber, received, ready: ready.promise }
  }
  const one = open('a', 'b')
  await one.ready
  const other = open('b', 'c')
  await other.ready
  expect(await subscribers()).toBe(1)
  for (const channel of ['a', 'b', 'c']) await redis.publish(channel, '1')
  await eventually(() => other.received.length === 2 && one.received.length === 2)
  expect([one.received, other.received]).toEqual([
    ['a 1', 'b 1'],
    ['b 1', 'c 1'],
  ])
  one.close()
  expect([one.isConnected(), other.isConnected()]).toEqual([false, true])
  await eventually(async () => (await redis.publish('a', '2')) === 0)
  await redis.publish('b', '2')
  await eventually(() => other.received.includes('b 2'))
  expect(one.received).toHaveLength(2)
  other.close()
  await eventually(async () => (await subscribers()) === 0)
})

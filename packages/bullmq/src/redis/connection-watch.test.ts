// Tests what the watch reports about connections: whether they are ready, and how long one command in 13 waits.
import { eventually, faultProxy } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { expect, inject, it, onTestFinished } from 'vitest'
import { limitCommands } from './command-timeouts.ts'
import { createConnectionWatch } from './connection-watch.ts'
import { RECONNECTING } from './redis-client.ts'

async function watched({ timeoutMs = 30_000 } = {}) {
  const proxy = await faultProxy(inject('redisUrl'))
  const redis = new Redis(proxy.url, { ...RECONNECTING, enableOfflineQueue: false })
  redis.on('error', () => {})
  onTestFinished(async () => {
    redis.disconnect()
    await proxy.close()
  })
  await eventually(() => redis.status === 'ready')
  limitCommands(redis, timeoutMs)
  const seconds: number[] = []
  const watch = createConnectionWatch((each) => seconds.push(each))
  watch.follow(redis)
  return { proxy, redis, watch, seconds }
}

it('the first command and then one in 13 is timed, whether it is sent alone or in a pipeline', async () => {
  const { redis, seconds } = await watched()
  for (let n = 1; n <= 13; n++) await redis.ping()
  expect(seconds).toHaveLength(1)
  const pipeline = redis.pipeline()
  for (let n = 14; n <= 27; n++) pipeline.ping()
  await pipeline.exec()
  expect(seconds).toHaveLength(3)
  for (const each of seconds) expect(each).toBeGreaterThan(0)
})

it('an error that Redis returns is a reply', async () => {
  const { redis, seconds } = await watched()
  await expect(redis.call('NOSUCHCOMMAND')).rejects.toThrow(/unknown command/)
  expect(seconds).toHaveLength(1)
})

it('a command that times out has taken as long as its timeout', async () => {
  const { proxy, redis, seconds } = await watched({ timeoutMs: 50 })
  proxy.cut()
  await expect(redis.ping()).rejects.toThrow('Command timed out')
  expect(seconds).toEqual([expect.any(Number)])
  expect(seconds[0]).toBeGreaterThan(0.045)
})

it('a connection is not ready while Redis is unreachable, its commands are not timed, and it is forgotten once it is closed', async () => {
  const { proxy, redis, watch, seconds } = await watched({ timeoutMs: 50 })
  expect(watch.count()).toEqual({ ready: 1, notReady: 0 })
  await proxy.close()
  await eventually(() => watch.count().notReady === 1)
  await expect(redis.ping()).rejects.toThrow()
  expect(seconds).toEqual([])
  redis.disconnect()
  expect(watch.count()).toEqual({ ready: 0, notReady: 0 })
})

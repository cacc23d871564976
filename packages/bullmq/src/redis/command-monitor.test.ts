// Which commands a monitor reports.
import { privateRedis } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { expect, it, onTestFinished } from 'vitest'
import { monitorCommands } from './command-monitor.fixture.ts'

it('every command after the start is reported with its words, also those that come at once and those of scripts', async () => {
  const server = await privateRedis()
  await server.start()
  const redis = new Redis(server.url)
  onTestFinished(() => redis.disconnect())
  const busy = Array.from({ length: 500 }, (_, i) => redis.set(`k${i}`, i))
  const found: string[] = []
  const monitor = await monitorCommands(redis, (words, source) => found.push(`${source === 'lua'} ${words.join('|')}`))
  onTestFinished(monitor.close)
  await redis.set('a "b"\\c', 'line\nend\u0007')
  await redis.eval("return redis.call('GET', KEYS[1])", 1, 'x')
  await redis.publish('over', '')
  await Promise.all(busy)
  await eventually(() => found.includes('false publish|over|'))
  expect(found).toContain('false set|a "b"\\c|line\nend\u0007')
  expect(found).toContain('true GET|x')
})

// A batch of events and the commit that follows it reach Redis in order, even if Redis does not know the script of the batch.

import { randomUUID } from 'node:crypto'
import { privateRedis } from '@bullpen/testing'
import { Redis } from 'ioredis'
import { expect, it, onTestFinished } from 'vitest'
import { queueKeys } from '../keys.ts'
import { lockTask, unlockTasks } from '../locks/stored-lock.fixture.ts'
import { eventSender } from './event-sender.ts'

it('a batch is stored before a command that is sent after it, although Redis has lost its scripts', async () => {
  const server = await privateRedis()
  await server.start()
  const redis = new Redis(server.url)
  onTestFinished(() => redis.disconnect())
  const keys = queueKeys(`t-${randomUUID().slice(0, 12)}`, 'q')
  await lockTask(redis, keys, 'q-1', 'token')
  const send = eventSender(redis, keys)
  // The first call always contains the text of the script.
  await send([])
  await redis.script('FLUSH')
  const sent = send([{ id: 'q-1', token: 'token', events: '100\n{"type":"started"}' }])
  await Promise.all([sent, unlockTasks(redis, keys, 'q-1')])
  expect(await redis.xlen(keys.taskEvents)).toBe(1)
})

// The time of a retry tells two retries of the same task apart.
import { TaskError } from '@bullpen/contract'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { expect, it, onTestFinished } from 'vitest'
import { queueKeys } from '../../../keys.ts'
import { long, setup } from '../../../setup.fixture.ts'

it('a retry is stored as later than the previous one, even if the clock was set back in between', async () => {
  const { broker, redisUrl, namespace, enqueue, startPool } = await setup({
    handle: () => {
      throw new TaskError('gone', 'not there', { retryable: false })
    },
  })
  const redis = new Redis(redisUrl)
  onTestFinished(() => redis.disconnect())
  await startPool()
  const id = await enqueue(long)
  const isDead = async () => (await broker.find(id))?.status === 'dead'
  await eventually(isDead)
  const job = queueKeys(namespace, 'rig').job(id)
  const { v, ...envelope } = JSON.parse((await redis.hget(job, 'data')) ?? '')
  const later = Date.now() + 3_600_000
  await redis.hset(job, 'data', JSON.stringify({ v, retriedAt: later, ...envelope }))
  expect(await broker.retry(id, { request: 'request-1', by: 'ann', edit: { input: { n: 5 }, version: 1 } })).toBe(
    'done',
  )
  expect(JSON.parse((await redis.hget(job, 'data')) ?? '')).toMatchObject({ v, retriedAt: later + 1, input: { n: 5 } })
})

// What tasks are charged for, and how many have ended, when a team's own Queue and Worker move them. The index's model covers all moves.
import { defineCatalogue, followUp } from '@bullpen/contract'
import { planFollowUps } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import { Queue, UnrecoverableError, Worker, type WorkerOptions } from 'bullmq'
import { Redis } from 'ioredis'
import { expect, it, onTestFinished } from 'vitest'
import { prefixOf, queueKeys } from '../../keys.ts'
import { setup, short } from '../../setup.fixture.ts'
import { bullpenBackend } from '../../store/bullpen-backend.ts'

async function openOwn() {
  const { broker, enqueue, namespace, redisUrl } = await setup({ leads: false })
  const redis = new Redis(redisUrl, { maxRetriesPerRequest: null })
  const options = { connection: redis, prefix: prefixOf(namespace, 'rig') }
  const queue = new Queue('rig', options, bullpenBackend())
  const workers: Worker[] = []
  onTestFinished(async () => {
    await Promise.all([queue, ...workers].map((each) => each.close()))
    redis.disconnect()
  })
  return {
    enqueue,
    queue,
    redis,
    keys: queueKeys(namespace, 'rig'),
    bytes: async () => (await broker.totals('rig')).bytes,
    ended: async () => (await broker.totals('rig')).ended,
    work(processor: () => Promise<unknown>, more: Partial<WorkerOptions> = {}) {
      workers.push(new Worker('rig', processor, { ...options, ...more }, bullpenBackend()))
    },
  }
}

it('a task that its Worker deletes as soon as it completes is refunded', async () => {
  const { enqueue, bytes, work, redis, keys } = await openOwn()
  const id = await enqueue(short)
  expect(await bytes()).toBe(512 + (await redis.hstrlen(keys.job(id), 'data')))
  work(async () => {}, { removeOnComplete: { count: 0 } })
  await eventually(async () => (await redis.exists(keys.job(id))) === 0)
  expect(await bytes()).toBe(0)
})

it('a task that its Worker deletes as soon as it ends releases the follow-ups of that end', async () => {
  const { enqueue, work, redis, keys } = await openOwn()
  const own = { onSuccess: [followUp(short, { n: 1 })], onFailure: [followUp(short, { n: 2 })] }
  const followUps = planFollowUps(own, { catalogue: defineCatalogue(short), correlationId: undefined })
  const entries = async () => (await redis.xrange(keys.outbox, '-', '+')).map(([, fields]) => fields[1])
  const completed = await enqueue(short, { followUps })
  const isGone = (id: string) => eventually(async () => (await redis.exists(keys.job(id))) === 0)
  let fails = false
  work(
    async () => {
      if (fails) throw new UnrecoverableError('no')
    },
    { removeOnComplete: { count: 0 }, removeOnFail: { count: 0 } },
  )
  await isGone(completed)
  fails = true
  const dead = await enqueue(short, { followUps })
  await isGone(dead)
  expect(await entries()).toEqual([
    expect.stringMatching(new RegExp(`^t ${completed} \\d+ 1 s1 `)),
    expect.stringMatching(new RegExp(`^t ${dead} \\d+ 1 f2 `)),
  ])
})

it('a dead task is charged for again when it is retried, and a changed one for its new data', async () => {
  const { queue, bytes, work, redis, keys } = await openOwn()
  const job = await queue.add('x', { text: 'short' })
  const before = await bytes()
  const { promise: mayEnd, resolve: end } = Promise.withResolvers<void>()
  let starts = 0
  work(async () => {
    if (starts++ === 0) throw new Error('no')
    await mayEnd
  })
  await eventually(async () => (await redis.zscore(keys.failed, job.id ?? '')) !== null)
  expect(await bytes()).toBe(0)
  await job.updateData({ text: 'a dead task takes no bytes' })
  expect(await bytes()).toBe(0)
  await job.updateData({ text: 'short' })
  await job.retry('failed')
  expect(await bytes()).toBe(before)
  await job.updateData({ text: 'short, but longer' })
  expect(await bytes()).toBe(before + ', but longer'.length)
  end()
  await eventually(async () => (await bytes()) === 0)
})

it('a job that its Queue retries ends again, and one that it drains has ended', async () => {
  const { queue, ended, work } = await openOwn()
  let fails = true
  await queue.addBulk([1, 2, 3].map((n) => ({ name: 'x', data: { n } })))
  work(async () => {
    if (fails) throw new Error('no')
  })
  await eventually(async () => (await ended()) === 3)
  await queue.pause()
  fails = false
  const [one] = await queue.getFailed()
  await one?.retry('failed')
  await queue.retryJobs({ state: 'failed' })
  expect(await ended()).toBe(3)
  await queue.resume()
  await eventually(async () => (await ended()) === 6)
  await queue.pause()
  await queue.addBulk([
    { name: 'x', data: {} },
    { name: 'x', data: {}, opts: { delay: 3_600_000 } },
  ])
  await queue.drain(true)
  expect(await ended()).toBe(8)
  await queue.obliterate()
  expect(await ended()).toBe(8)
})

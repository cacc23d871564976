// A throttle in Redis, with and without a rate limit, and that it leaves nothing behind.
import { rateLimited } from '@bullpen/contract'
import { eventually } from '@bullpen/testkit'
import { describe, expect, it } from 'vitest'
import { fleetRig } from '../fleet/fleet.fixture.ts'
import { queueKeys } from '../keys.ts'
import { ownWorker } from '../plain-processor.fixture.ts'
import { setup, short } from '../setup.fixture.ts'
import { THROTTLE_MARK } from './throttle.ts'

async function limited(delay: '300ms' | '1h' = '300ms') {
  const pools = await setup({
    handle: ({ fencingToken, input }) => {
      if (fencingToken === 1 && input.n === 1) throw rateLimited(delay)
      return input
    },
  })
  const { fleet, redis } = await fleetRig({ namespace: pools.namespace, queues: ['rig'] })
  const keys = queueKeys(pools.namespace, 'rig')
  const meta = () => redis.hmget(keys.meta, 'max', 'duration')
  const held = async () => (await redis.get(keys.limiter)) === THROTTLE_MARK
  return { ...pools, fleet, redis, keys, meta, held }
}

describe('a throttle', () => {
  it('of a queue without a rate limit is not shown as one, and leaves none behind', async () => {
    const { enqueue, startPool, settled, fleet, meta, held } = await limited()
    const id = await enqueue(short, { input: { n: 1 } })
    await startPool()
    await eventually(held)
    expect(await meta()).toEqual([THROTTLE_MARK, '1'])
    expect((await fleet.queueSettings('rig')).rate).toBeUndefined()
    expect((await settled(id))?.status).toBe('completed')
    await eventually(async () => (await meta())[0] === null)
  })

  it('whose process has ended is removed by the maintenance of another one', async () => {
    const { redis, keys, meta } = await limited()
    await redis.hset(keys.meta, 'max', THROTTLE_MARK, 'duration', 1)
    await eventually(async () => (await meta())[0] === null)
  })

  it('works beside a rate limit, which is kept, and outlasts the removal of that limit', async () => {
    const { enqueue, startPool, broker, fleet, meta, held, redis, keys } = await limited('1h')
    const rate = { max: 1_000, per: '1s' } as const
    await fleet.send({ id: 'a', spec: { action: 'limit', queue: 'rig', rate }, by: 'me' })
    await startPool()
    const id = await enqueue(short, { input: { n: 1 } })
    await eventually(held)
    expect((await fleet.queueSettings('rig')).rate).toEqual({ max: 1_000, perMs: 1_000 })
    await fleet.send({ id: 'b', spec: { action: 'limit', queue: 'rig', rate: 'none' }, by: 'me' })
    expect(await meta()).toEqual([THROTTLE_MARK, '1'])
    expect((await fleet.queueSettings('rig')).rate).toBeUndefined()
    await eventually(async () => (await broker.find(id))?.status === 'waiting')
    // As if its time had passed.
    await redis.del(keys.limiter)
    await eventually(async () => (await broker.find(id))?.status === 'completed')
  })
})

describe('a throttle by a team’s own Worker', () => {
  const once = ({ fencingToken, input }: { fencingToken: number; input: { n: number } }) => {
    if (fencingToken === 1) throw rateLimited('300ms')
    return input
  }

  it('throttles the queue of a Worker without a rate limit', async () => {
    const { openQueue, startWorker, ended } = ownWorker(once)
    const queue = openQueue()
    const { settled } = startWorker()
    const before = performance.now()
    const { id = '' } = await queue.add('own.slow', { n: 5 })
    expect((await settled()).job).toMatchObject({ returnvalue: { n: 5 }, attemptsStarted: 2, attemptsMade: 1 })
    expect(performance.now() - before).toBeGreaterThan(299)
    expect(ended()[0]).toMatchObject({ reason: 'rate_limited', verdict: 'requeued', delayMs: 300 })
    const client = await queue.getBackend().client
    await eventually(async () => Object.keys(await client.hgetall(queue.toKey('meta'))).every((name) => name !== 'max'))
    expect(await queue.getJobState(id)).toBe('completed')
  })

  it('throttles the queue through the Worker’s own rate limit, which applies again afterwards', async () => {
    const { openQueue, startWorker } = ownWorker(once)
    const queue = openQueue()
    const { settled } = startWorker({ limiter: { max: 1_000, duration: 1_000 } })
    await queue.add('own.slow', { n: 5 })
    const client = await queue.getBackend().client
    await eventually(async () => (await client.get(queue.toKey('limiter'))) === THROTTLE_MARK)
    expect(await client.hgetall(queue.toKey('meta'))).not.toHaveProperty('max')
    expect((await settled()).job).toMatchObject({ attemptsStarted: 2, attemptsMade: 1 })
  })
})

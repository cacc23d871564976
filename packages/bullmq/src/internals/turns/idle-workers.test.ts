// What tasks that may not start cost workers that have nothing else to do, on a Redis of their own.
import { privateRedis } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { expect, it, onTestFinished } from 'vitest'
import { long, setup } from '../../setup.fixture.ts'
import { stage } from './stage.fixture.ts'

it('neither the backlog of a key at its limit nor further tasks of the key cost two idle workers a command', async () => {
  const server = await privateRedis()
  await server.start()
  const keyLimits = { keys: { full: { concurrency: 0 } } }
  const { startPool, enqueue, settled, broker } = await setup({ redisUrl: server.url, leads: false, keyLimits })
  const redis = new Redis(server.url)
  onTestFinished(() => redis.disconnect())
  const bothWait = () =>
    eventually(async () => {
      const clients = (await redis.client('LIST')) as string
      return clients.match(/ flags=b .* cmd=bzpopmin /g)?.length === 2
    })
  /** Returns how often a worker has begun to wait for a marker, and how often a script has run. */
  const calls = async (): Promise<number[]> => {
    const stats = await redis.info('commandstats')
    return ['bzpopmin', 'evalsha'].map((name) => Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1]))
  }
  const add = () => enqueue(long, { turn: { key: 'full', weight: 1 } })
  await startPool()
  await startPool()
  const first = await add()
  await eventually(async () => (await broker.find(first))?.waitsFor?.kind === 'concurrency')
  await bothWait()
  const [waits = 0, scripts = 0] = await calls()
  const added = 100
  for (let i = 0; i < added; i++) await add()
  // A worker starts a task that may start, which shows that it has handled everything before.
  expect((await settled(await enqueue(long)))?.status).toBe('completed')
  await bothWait()
  const [waitsNow = 0, scriptsNow = 0] = await calls()
  // Each task is added by a script. The others are those of the last task, and those of a wait that ends after 10 s
  // without a marker.
  expect(waitsNow - waits).toBeLessThan(added / 5)
  expect(scriptsNow - scripts - added).toBeLessThan(added / 5)
})

it('a fetch by a worker that runs only some tasks examines each lane once, however many of its tasks are blocked', async () => {
  const server = await privateRedis()
  await server.start()
  const { addSeveral, setCapacity, startOnly, redis } = await stage({ redisUrl: server.url })
  await setCapacity('permits:db', 1)
  const needs = [{ limiter: 'permits:db', amount: 1 }]
  const ids = [...(await addSeveral('a', 25, { needs })), ...(await addSeveral('b', 25, { needs }))]
  expect(await startOnly(ids)).toHaveLength(1)
  await redis.config('RESETSTAT')
  expect(await startOnly(ids)).toEqual([])
  // Only the examination of a lane reads how much of a limiter is in use, from a sorted set.
  expect(await redis.info('commandstats')).toMatch(/cmdstat_zscore:calls=2,/)
})

// The limits of a queue that commands and a definition have set, as the fleet reads them.
import type { CommandSpec } from '@bullpen/contract/internal'
import { expect, it } from 'vitest'
import { defineLimits } from '../internals/turns/key-limits.ts'
import { queueKeys } from '../keys.ts'
import { runnerOn } from '../scripts/script.ts'
import { fleetRig } from './fleet.fixture.ts'

it('the limits of API keys and concurrency keys, permits and caps are read with what has set them', async () => {
  const { fleet, redis, namespace } = await fleetRig()
  const keys = queueKeys(namespace, 'cpu')
  expect(await fleet.limitSettings('cpu', ['shop'])).toEqual({
    settings: await fleet.queueSettings('cpu'),
    limiters: undefined,
    perApiKey: new Map(),
    perConcurrencyKey: { concurrency: undefined, rate: undefined },
    singleKeys: [],
  })
  const rate = { max: 10, perMs: 1_000, burst: 1 }
  const keyLimits = { concurrency: 2, rate, keys: { b: { concurrency: 5, rate } } }
  await defineLimits(
    runnerOn(redis),
    keys,
    { keyLimits, capacities: { 'permits:db': 3, 'permits:gpu': 1 } },
    { replaces: true },
  )
  let sent = 0
  const limit = (more: Omit<Extract<CommandSpec, { action: 'limit' }>, 'action' | 'queue'>) =>
    fleet.send({ id: `c${++sent}`, spec: { action: 'limit', queue: 'cpu', ...more }, by: 'me' })
  await limit({ concurrency: 7, maxTasks: 9 })
  await limit({ ratePerKey: { max: 5, per: '1m', burst: 3 } })
  await limit({ concurrencyKey: 'b', concurrency: 4 })
  await limit({ concurrencyKey: 'a: "1', concurrency: 0 })
  await limit({ apiKeyName: 'shop', enqueueRate: { max: 3, per: '1s' }, maxUnfinishedTasks: 8 })
  await limit({ apiKeyName: 'other', maxUnfinishedTasks: 8 })
  await limit({ permits: { db: 5 } })
  await limit({ task: 'cpu.square', concurrency: 2 })
  const read = await fleet.limitSettings('cpu', ['shop', 'unlimited'])
  expect(read.limiters).toEqual([
    { kind: 'definition', name: 'cpu.square', capacity: 2, inUse: 0, source: 'command' },
    { kind: 'permits', name: 'db', capacity: 5, inUse: 0, source: 'command' },
    { kind: 'permits', name: 'gpu', capacity: 1, inUse: 0, source: 'definition' },
  ])
  expect(read.settings).toMatchObject({ concurrency: 7, maxTasks: 9, perConcurrencyKey: { ofSingleKeys: 3 } })
  expect(read.perApiKey).toEqual(new Map([['shop', { enqueueRate: { max: 3, perMs: 1_000 }, maxUnfinishedTasks: 8 }]]))
  expect(read.perConcurrencyKey).toEqual({
    concurrency: { value: 2, source: 'definition' },
    rate: { value: { max: 5, perMs: 60_000, burst: 3 }, source: 'command' },
  })
  expect(read.singleKeys).toEqual([
    { key: 'a: "1', concurrency: { value: 0, source: 'command' }, rate: undefined },
    { key: 'b', concurrency: { value: 4, source: 'command' }, rate: { value: rate, source: 'definition' } },
  ])
})

it('at most 100 concurrency keys with limits of their own are read', async () => {
  const { fleet, redis, namespace } = await fleetRig()
  const own = Array.from({ length: 1_500 }, (_, i) => [`concurrency:key${i}`, '1'])
  await redis.hset(queueKeys(namespace, 'cpu').keyLimits, Object.fromEntries(own))
  const { settings, singleKeys } = await fleet.limitSettings('cpu', [])
  expect(settings.perConcurrencyKey?.ofSingleKeys).toBe(1_500)
  expect(singleKeys).toHaveLength(100)
})

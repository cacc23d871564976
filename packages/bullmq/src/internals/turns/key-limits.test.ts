// Which limits of concurrency keys apply: those of the catalogue, and those that commands have set.
import type { PerConcurrencyKey } from '@bullpen/contract'
import type { CommandSpec } from '@bullpen/contract/internal'
import { expect, it } from 'vitest'
import { addSettingsReads, applySettings, decodeSettings } from '../../fleet/queue-settings.ts'
import { runnerOn } from '../../scripts/script.ts'
import { QUEUE } from '../index-model/worker.fixture.ts'
import { defineLimits } from './key-limits.ts'
import { stage } from './stage.fixture.ts'

async function limited() {
  const world = await stage()
  const { redis, keys } = world
  let sequence = 0
  const rate = { max: 100, perMs: 60_000, burst: 1 }
  return {
    ...world,
    rate,
    define: (limits: PerConcurrencyKey | undefined, { replaces = true } = {}) =>
      defineLimits(runnerOn(redis), keys, { keyLimits: limits, capacities: {} }, { replaces }),
    async command(limits: Partial<Extract<CommandSpec, { action: 'limit' }>>, at = ++sequence) {
      const spec: CommandSpec = { action: 'limit', queue: QUEUE, ...limits }
      await applySettings(redis, keys, { id: `c${at}`, spec, by: 'ann', sequence: `${at}`, at: 0 })
    },
    applied: () => redis.hgetall(keys.keyLimits),
  }
}

it('a command replaces a limit of the catalogue until it is removed, and the limit of a key that of every key', async () => {
  const { define, command, applied, rate } = await limited()
  await define({ concurrency: 3, rate, keys: { acme: { concurrency: 10 } } })
  expect(await applied()).toEqual({ concurrency: '3', rate: '100/60000/1', 'concurrency:acme': '10' })
  await command({ concurrencyPerKey: 5, ratePerKey: { max: 7, per: '1s', burst: 2 } })
  await command({ concurrencyKey: 'acme', concurrency: 0 })
  await command({ concurrencyKey: 'b: 1', rate: { max: 1, per: '1m' } })
  expect(await applied()).toEqual({
    concurrency: '5',
    rate: '7/1000/2',
    'concurrency:acme': '0',
    'rate:b: 1': '1/60000/1',
  })
  await command({ concurrencyPerKey: 'none', ratePerKey: 'none' })
  await command({ concurrencyKey: 'acme', concurrency: 'none' })
  await command({ concurrencyKey: 'b: 1', rate: 'none' })
  expect(await applied()).toEqual({ concurrency: '3', rate: '100/60000/1', 'concurrency:acme': '10' })
})

it('the settings of a queue contain the limits of every key, and how many single keys have their own', async () => {
  const { define, redis, keys, rate } = await limited()
  const read = async () => {
    const pipeline = redis.pipeline()
    addSettingsReads(pipeline, keys)
    const answers = await pipeline.exec()
    return decodeSettings((answers ?? []).map(([, answer]) => answer)).perConcurrencyKey
  }
  expect(await read()).toBeUndefined()
  await define({ concurrency: 3, rate, keys: { acme: { concurrency: 10, rate } } })
  expect(await read()).toEqual({ concurrency: 3, rate, ofSingleKeys: 2 })
})

it('an older command does not replace a newer one', async () => {
  const { command, applied } = await limited()
  await command({ concurrencyKey: 'acme', concurrency: 2 }, 5)
  await command({ concurrencyKey: 'acme', concurrency: 9 }, 4)
  expect(await applied()).toEqual({ 'concurrency:acme': '2' })
})

it('the catalogue of the consumer that opened last applies, and is stored again if Redis has lost it', async () => {
  const { define, applied, redis, keys } = await limited()
  const [old, latest] = [{ concurrency: 3, keys: {} }, undefined]
  await define(old)
  await define(latest)
  expect(await applied()).toEqual({})
  // The older consumer repeats its registration.
  await define(old, { replaces: false })
  expect(await applied()).toEqual({})
  await redis.del(keys.settings)
  await define(old, { replaces: false })
  expect(await applied()).toEqual({ concurrency: '3' })
})

it('a queue without limits stores nothing when a consumer opens', async () => {
  const { define, redis, keys } = await limited()
  await define(undefined)
  expect(await redis.exists(keys.settings, keys.keyLimits)).toBe(0)
})

it('a waiting task says that it waits because of a limit', async () => {
  const { define, addSeveral, startAll, broker, redis, keys } = await limited()
  await define({ concurrency: 1, keys: { slow: { rate: { max: 1, perMs: 3_600_000, burst: 1 } } } })
  const [, next] = await addSeveral('full', 2)
  const [, , last] = await addSeveral('slow', 3, { priority: 2 })
  await startAll()
  expect((await broker.find(next as never))?.waitsFor).toEqual({ kind: 'concurrency', ahead: 0 })
  const until = Number(await redis.zscore(keys.laneTimes, 'slow'))
  expect((await broker.find(last as never))?.waitsFor).toEqual({ kind: 'rate', until, ahead: 1 })
})

it('a limit that is set while tasks run and wait applies from then on', async () => {
  const { define, command, addSeveral, start, startAll, keysOf, violations } = await limited()
  await addSeveral('a', 6)
  await addSeveral('b', 6)
  await start(4)
  await define({ concurrency: 3, keys: {} })
  expect(
    keysOf(await startAll())
      .split(' ')
      .toSorted()
      .join(' '),
  ).toBe('a b')
  await command({ concurrencyKey: 'a', concurrency: 5 })
  expect(keysOf(await startAll())).toBe('a a')
  expect(await violations()).toEqual([])
})

it('a change of the limit of a key examines the lanes of this key alone', async () => {
  const { define, command, addSeveral, startAll, redis, keys, keysOf } = await limited()
  await define({ concurrency: 1, keys: {} })
  await addSeveral('a', 3)
  await addSeveral('b', 2)
  expect(keysOf(await startAll())).toBe('a b')
  // A lane that is blocked without a reason would take turns again if it were examined.
  await redis.zrem(keys.activeByKey, 'b')
  await command({ concurrencyKey: 'a', concurrency: 2 })
  expect(await redis.zrange(keys.blockedLanes, '0', '-1')).toEqual(['b'])
  expect(keysOf(await startAll())).toBe('a')
  await command({ concurrencyPerKey: 1 })
  expect(await redis.zscore(keys.activeByKey, 'b')).toBe('1')
})

// Tests the rates of API keys in several processes on a real Redis.
import { randomUUID } from 'node:crypto'
import { type EnqueueRate, EnqueueRateError } from '@bullpen/contract'
import { tokensIn } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { describe, expect, inject, it, onTestFinished, vi } from 'vitest'
import { openPatientFleet } from '../fleet/fleet.fixture.ts'
import { enqueueRateKey, fleetKeys } from '../keys.ts'
import { defineScript } from '../scripts/define-script.fixture.ts'
import { runScript } from '../scripts/script.ts'
import { silent } from '../setup.fixture.ts'
import { luaInclude } from '../store/scripts.ts'
import { createEnqueueRates } from './enqueue-rates.ts'
import { batchOf } from './rate-lease.ts'

/** So slow that nothing is refilled during a test. */
const SLOW: EnqueueRate = { max: 40, perMs: 3_600_000 }

/** Returns what each process of one namespace uses to limit its API keys. */
function rig(rate: EnqueueRate | undefined, processes = 1) {
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const redisUrl = inject('redisUrl')
  const redis = new Redis(redisUrl)
  onTestFinished(() => redis.disconnect())
  const open = () => {
    const defined = (name: string) => (name === 'unlimited' ? undefined : rate)
    return createEnqueueRates({ redis, namespace, defined, call: (run) => run() })
  }
  return {
    namespace,
    redisUrl,
    redis,
    open,
    all: Array.from({ length: processes }, open),
    bucket: (name: string) => enqueueRateKey(namespace, name),
  }
}

/** Returns how many of these calls were admitted. Every other call must have been refused because of its rate. */
async function admitted(calls: readonly (() => Promise<void> | undefined)[]): Promise<number> {
  const results = await Promise.allSettled(calls.map(async (call) => call()))
  const refused = results.filter((result) => result.status === 'rejected')
  for (const { reason } of refused) expect(reason).toBeInstanceOf(EnqueueRateError)
  return results.length - refused.length
}

describe('the rates that commands have set', () => {
  it('are known to a producer before its first request', async () => {
    const redis = new Redis(inject('redisUrl'))
    onTestFinished(() => redis.disconnect())
    const reads: Promise<unknown>[] = []
    const call = <T>(run: () => Promise<T>): Promise<T> => {
      const read = run()
      reads.push(read)
      return read
    }
    const rates = createEnqueueRates({
      ...{ redis, namespace: `t-${randomUUID().slice(0, 12)}`, call },
      defined: () => undefined,
      readsOnConnect: true,
    })
    await eventually(() => reads.length === 1)
    await Promise.all(reads)
    expect(rates.take('shop', 1)).toBeUndefined()
    expect(reads).toHaveLength(1)
  })
})

describe('the rate of an API key', () => {
  it('is kept by four processes together, which admit all that it permits and then refuse', async () => {
    const { all, bucket, redis } = rig(SLOW, 4)
    const calls = all.flatMap((rates) => Array.from({ length: 30 }, () => () => rates.take('shop', 1)))
    expect(await admitted(calls)).toBe(SLOW.max)
    expect(Number((await redis.get(bucket('shop')))?.split(' ')[0])).toBeLessThan(1)
    await expect(async () => all[0]?.take('shop', 1)).rejects.toMatchObject({
      code: 'enqueue_rate_exceeded',
      message: "API key 'shop' has reached its rate of 40 tasks per 1h; nothing was stored, so try again later",
      reached: {
        apiKeyName: 'shop',
        rate: SLOW,
        // A token is refilled every 90 s.
        retryAfterMs: expect.toSatisfy((ms: number) => ms > 45_000 && ms <= 90_000),
      },
    })
  })

  it('belongs to that key alone', async () => {
    const { all } = rig({ max: 1, perMs: 3_600_000 })
    const take = (name: string) => () => all[0]?.take(name, 1)
    expect(await admitted([take('a'), take('a'), take('b'), take('unlimited'), take('unlimited')])).toBe(4)
  })

  it('counts every task of a bulk request, which is admitted as a whole or not at all', async () => {
    const { all } = rig(SLOW, 2)
    const [one, two] = all
    expect(await admitted([() => one?.take('shop', 30)])).toBe(1)
    expect(await admitted([() => two?.take('shop', 11)])).toBe(0)
    expect(await admitted([() => two?.take('shop', 10), () => one?.take('shop', 1)])).toBe(1)
    await expect(async () => one?.take('shop', 41)).rejects.toMatchObject({
      code: 'payload_too_large',
      message: expect.stringContaining(
        "the rate of API key 'shop' is 40 tasks per 1h, which permits at most 40 at once",
      ),
    })
  })

  it('permits tasks again as its tokens are refilled', async () => {
    const { all } = rig({ max: 5, perMs: 1_000 })
    const [rates] = all
    expect(await admitted(Array.from({ length: 5 }, () => () => rates?.take('shop', 1)))).toBeGreaterThanOrEqual(5)
    await eventually(async () => (await admitted([() => rates?.take('shop', 1)])) === 0)
    await eventually(async () => (await admitted([() => rates?.take('shop', 1)])) === 1)
  })

  it('is usually kept without a round trip', async () => {
    const rate = { max: 100_000, perMs: 1_000 }
    const [rates] = rig(rate).all
    for (let n = 0; n < 64; n++) await rates?.take('shop', 1)
    let waited = 0
    for (let n = 0; n < batchOf(rate); n++) {
      const taking = rates?.take('shop', 1)
      if (taking === undefined) continue
      waited++
      await taking
    }
    expect(waited).toBeLessThan(20)
  })

  it('is deleted from Redis when its bucket is full', async () => {
    const { all, bucket, redis } = rig(SLOW)
    await all[0]?.take('shop', 1)
    const leftMs = await redis.pttl(bucket('shop'))
    expect(leftMs).toBeGreaterThan(3_500_000)
    expect(leftMs).toBeLessThanOrEqual(SLOW.perMs)
  })

  it('rejects waiting requests if Redis fails, and asks again for the next one', async () => {
    const { all, redis, bucket } = rig(SLOW)
    const [rates] = all
    await redis.hset(bucket('shop'), 'not', 'a string')
    await expect(rates?.take('shop', 1)).rejects.toThrow('WRONGTYPE')
    await redis.del(bucket('shop'))
    expect(await admitted([() => rates?.take('shop', 1)])).toBe(1)
  })
})

describe('a command', () => {
  async function withFleet(rate: EnqueueRate | undefined) {
    const opened = rig(rate)
    const { namespace, redisUrl } = opened
    const fleet = openPatientFleet({ namespace, redisUrl, queues: ['cpu'], log: silent })
    onTestFinished(() => fleet.close())
    await eventually(() => fleet.commands(1).then(() => true))
    let sent = 0
    const limit = (enqueueRate: 'none' | { max: number; per: string }) =>
      fleet.send({ id: `c${++sent}`, spec: { action: 'limit', apiKeyName: 'shop', enqueueRate }, by: 'me' })
    return { ...opened, fleet, limit }
  }

  it('limits a key that had no limit, and none lifts the limit again', async () => {
    const { open, limit } = await withFleet(undefined)
    const running = open()
    expect(await admitted(Array.from({ length: 5 }, () => () => running.take('shop', 1)))).toBe(5)
    await limit({ max: 2, per: '1h' })
    const later = open()
    expect(await admitted(Array.from({ length: 5 }, () => () => later.take('shop', 1)))).toBe(2)
    await eventually(async () => (await admitted([() => running.take('shop', 1)])) === 0)
    await limit('none')
    await eventually(async () => (await admitted([() => running.take('shop', 1)])) === 1)
  })

  it('raises a limit before the next request, if the process was idle for two seconds', async () => {
    const { open, limit } = await withFleet({ max: 1, perMs: 3_600_000 })
    const rates = open()
    expect(await admitted([() => rates.take('shop', 1)])).toBe(1)
    await limit({ max: 1_000, per: '1s' })
    vi.spyOn(performance, 'now').mockImplementation(() => Date.now() - performance.timeOrigin + 2_100)
    onTestFinished(() => {
      vi.restoreAllMocks()
    })
    expect(await admitted([() => rates.take('shop', 1)])).toBe(1)
  })

  it('replaces the limit of the settings', async () => {
    const { open, limit } = await withFleet({ max: 1, perMs: 3_600_000 })
    await limit({ max: 3, per: '1h' })
    const rates = open()
    expect(await admitted(Array.from({ length: 5 }, () => () => rates.take('shop', 1)))).toBe(3)
    expect(await admitted(Array.from({ length: 5 }, () => () => rates.take('other', 1)))).toBe(1)
  })

  it('that a process could not read yet holds back even a key without a rate, because it may have set one', async () => {
    const { open, redis, namespace } = rig(undefined)
    const { enqueueRates } = fleetKeys(namespace)
    await redis.set(enqueueRates, 'not a hash')
    const rates = open()
    await expect(async () => rates.take('unlimited', 1)).rejects.toThrow('WRONGTYPE')
    await redis.del(enqueueRates)
    expect(await admitted([() => rates.take('unlimited', 1)])).toBe(1)
  })

  it('that is older never overwrites a newer one', async () => {
    const { open, limit, fleet, namespace, redis } = await withFleet(undefined)
    await limit({ max: 1, per: '1h' })
    await limit({ max: 2, per: '1h' })
    // As if the first command's sender had died before it applied the command.
    const newest = await redis.zrange(`{${namespace}}:fleet:commands`, '0', '0', 'WITHSCORES')
    await redis.zadd(`{${namespace}}:fleet:unapplied`, Number(newest[1]), newest[0] ?? '')
    await fleet.heartbeat(WORKER)
    const rates = open()
    expect(await admitted(Array.from({ length: 5 }, () => () => rates.take('shop', 1)))).toBe(2)
    expect(await redis.zcard(`{${namespace}}:fleet:unapplied`)).toBe(0)
  })
})

const WORKER = {
  ...{ worker: 'w', host: 'h', pid: 7, version: '1.2.3', startedAt: 0, draining: false, skewMs: 0 },
  ...{ drainTimeoutMs: 20_000, graceMs: 5_000, pools: [] },
}

describe('the bucket in Redis', () => {
  const tokensInRedis = defineScript({
    name: 'tokens-in-bucket',
    kind: 'reads',
    keys: ['any'],
    args: ['tokens', 'at', 'now', 'max', 'per'],
    lua: `${luaInclude('token-bucket')}
local stored = tokens ~= '' and stored_bucket(tonumber(tokens), tonumber(at)) or false
return string.format('%.6f', tokens_in(stored, tonumber(now), tonumber(max), tonumber(per)))`,
    answer: Number,
  })

  it('has as many tokens as the bucket of the engine', async () => {
    const { redis, bucket } = rig(undefined)
    const time = fc.double({ min: 1_700_000_000_000, max: 1_700_000_100_000, noNaN: true })
    const rate = fc.record({
      max: fc.integer({ min: 1, max: 1_000_000 }),
      perMs: fc.integer({ min: 1, max: 86_400_000 }),
    })
    const share = fc.option(fc.double({ min: 0, max: 1, noNaN: true }))
    await fc.assert(
      fc.asyncProperty(rate, share, time, time, async ({ max, perMs }, filled, at, now) => {
        const tokens = filled === null ? undefined : filled * max
        const expected = tokensIn(tokens === undefined ? undefined : { tokens, at }, now, { max, perMs })
        const args = { tokens: tokens ?? '', at, now, max, per: perMs }
        const found = await runScript(redis, tokensInRedis, { any: bucket('any') }, args)
        // Redis stores the time in whole microseconds.
        expect(Math.abs(found - expected)).toBeLessThan(1e-5 + (0.002 * max) / perMs)
      }),
    )
  })
})

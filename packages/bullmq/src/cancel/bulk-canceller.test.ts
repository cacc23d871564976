// The bulk canceller in a long queue. Prints how long its scripts block Redis; the figures mean something on a quiet machine.

import { amount, privateRedis } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { expect, it, onTestFinished } from 'vitest'
import { openPatientBroker } from '../broker/patient-broker.fixture.ts'
import { queueKeys } from '../keys.ts'
import { silent } from '../setup.fixture.ts'

/** KEYS: wait. ARGV: the prefix of jobs, from, to. Adds jobs as BullMQ stores them; one of twenty has the tag. */
const FILL = `
for i = tonumber(ARGV[2]), tonumber(ARGV[3]) do
  local id = 'q-' .. string.format('%026d', i)
  local data = '{"v":2,"version":1,"input":{"text":"' .. string.rep('x', 200) .. '"}}'
  redis.call('HSET', ARGV[1] .. id, 'name', 'a.b', 'data', data, 'opts', '{"attempts":3}', 'timestamp', 1000 + i,
    'delay', 0, 'priority', 0)
  if i % 20 == 0 then redis.call('HSET', ARGV[1] .. id, 'tags', '["batch:7"]') end
  redis.call('LPUSH', KEYS[1], id)
end
`

it.each(['nothing else happens', 'tasks are added'])(
  'the bulk canceller ends one in twenty tasks of a long queue page by page while %s',
  async (how) => {
    const total = amount({ small: 10_000, full: 200_000 })
    const server = await privateRedis()
    await server.start()
    const keys = queueKeys('t', 'q')
    const redis = new Redis(server.url)
    const broker = openPatientBroker({
      redisUrl: server.url,
      namespace: 't',
      queues: ['q'],
      sizeLimit: 1_000,
      log: silent,
    })
    onTestFinished(async () => {
      redis.disconnect()
      await broker.close()
    })
    await eventually(() => broker.ping().then(() => true))
    for (let at = 1; at <= total; at += 5_000) await redis.eval(FILL, 1, keys.wait, keys.job(''), at, at + 4_999)
    await redis.config('SET', 'slowlog-log-slower-than', '1000')
    await redis.config('SET', 'slowlog-max-len', '10000')
    await redis.slowlog('RESET')
    await redis.config('RESETSTAT')
    let isOver = false
    const added = (async () => {
      for (let i = 0; how === 'tasks are added' && !isOver; i++) await redis.lpush(keys.wait, `other-${i}`)
    })()

    const since = performance.now()
    const { id } = await broker.cancelMany({ queue: 'q', tag: 'batch:7', before: Date.now(), reason: 'cancelled' })
    const answeredMs = performance.now() - since
    await eventually(async () => (await broker.cancelProgress(id))?.ended === total / 20, 60_000)
    const endedMs = performance.now() - since
    await eventually(async () => (await broker.cancelProgress(id))?.doneAt !== undefined, 60_000)
    const doneMs = performance.now() - since
    isOver = true
    await added
    // ioredis types no answer of SLOWLOG: id, time, microseconds.
    const slow = (await redis.slowlog('GET', '10000')) as unknown as readonly (readonly [number, number, number])[]
    const slowestTaskMs = Math.max(0, ...slow.map(([, , us]) => us)) / 1_000
    const figures = { total, ended: total / 20, answeredMs, endedMs, doneMs, slowestTaskMs, over1ms: slow.length }
    console.log(JSON.stringify({ bulkCanceller: how, ...figures }))
    expect(await redis.zcard(keys.failed)).toBe(total / 20)
    expect(await redis.llen(keys.wait)).toBeGreaterThanOrEqual(total - total / 20)
    const [, scripts] = /^cmdstat_evalsha:calls=(\d+)/m.exec(await redis.info('commandstats')) ?? []
    expect(Number(scripts)).toBeGreaterThanOrEqual(total / 200)
  },
  200_000,
)

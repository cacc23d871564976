// A rule is forgotten only if no task that it matches has returned to the queue during the pass.
import { rateLimited } from '@bullpen/contract'
import { eventually } from '@bullpen/testkit'
import { Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { expect, it, onTestFinished } from 'vitest'
import { leaderKeys, prefixOf, queueKeys } from '../keys.ts'
import { runScript } from '../scripts/script.ts'
import { setup, short } from '../setup.fixture.ts'
import { bullpenBackend } from '../store/bullpen-backend.ts'
import { beginPassScript, forgetRulesScript } from '../store/scripts.ts'

const FENCING = 1_000_000

async function queueWithRules(...tags: readonly string[]) {
  const stage = await setup({
    handle: () => {
      throw rateLimited('1h')
    },
  })
  const redis = new Redis(stage.redisUrl)
  onTestFinished(() => redis.disconnect())
  const keys = queueKeys(stage.namespace, 'rig')
  const rules: { readonly id: string; readonly tag: string; readonly before: number; readonly group?: string }[] =
    tags.map((tag) => ({ id: `rule-${tag}`, tag, before: Date.now() + 60_000 }))
  // Keep the broker's own leader out.
  await redis.set(leaderKeys(stage.namespace).lease, 'the test', 'PX', 60_000)
  await redis.set(keys.leader, FENCING)
  for (const { id } of rules) await redis.hset(keys.cancelRules, id, 'a rule')
  const begin = (pass: string) => runScript(redis, beginPassScript, keys, { fencing: FENCING, pass })
  const forget = async (limit: number, pass = 'p1') => {
    const done = await runScript(redis, forgetRulesScript, keys, {
      fencing: FENCING,
      pass,
      base: keys.base,
      progress: keys.cancelProgress(''),
      rulesText: JSON.stringify(rules),
      keepMs: 60_000,
      groupKeepMs: 10_000,
      limit,
    })
    return done === 1
  }
  await begin('p1')
  return { ...stage, redis, keys, rules, begin, forget, left: () => redis.hkeys(keys.cancelRules) }
}

it('a rule is kept if it matches a task that was returned, and the others are forgotten', async () => {
  const { redis, keys, enqueue, forget, left } = await queueWithRules('a', 'b')
  await redis.sadd(keys.cancelReturned, await enqueue(short, { tags: ['b'] }), await enqueue(short, { tags: ['c'] }))
  expect(await forget(10)).toBe(true)
  expect(await left()).toEqual(['rule-b'])
  expect(Number(await redis.hget(keys.cancelProgress('rule-a'), 'doneAt'))).toBeGreaterThan(0)
})

it("the progress of a group's rule, which no user looks up, is kept for a shorter time", async () => {
  const { redis, keys, rules, forget } = await queueWithRules('a', 'b')
  rules[1] = { id: 'rule-b', tag: 'b', before: 0, group: 'run-1' }
  expect(await forget(10)).toBe(true)
  const [ofTag, ofGroup] = await Promise.all(rules.map(({ id }) => redis.pttl(keys.cancelProgress(id))))
  expect(ofTag).toBeGreaterThan(10_000)
  expect(ofGroup).toBeGreaterThan(0)
  expect(ofGroup).toBeLessThanOrEqual(10_000)
})

it('no rule is forgotten before every task that was returned has been looked at', async () => {
  const { redis, keys, forget, left } = await queueWithRules('a')
  await redis.sadd(keys.cancelReturned, '1', '2', '3')
  expect(await forget(2)).toBe(false)
  expect(await left()).toEqual(['rule-a'])
  expect(await forget(2)).toBe(true)
  expect(await left()).toEqual([])
  expect(await redis.exists(keys.cancelPass)).toBe(0)
})

it('a rule that matches a task that was returned is kept if the script is sent again because its reply was lost', async () => {
  const { redis, keys, enqueue, forget, left } = await queueWithRules('a', 'b')
  await redis.sadd(keys.cancelReturned, await enqueue(short, { tags: ['a'] }))
  for (let sent = 0; sent < 3; sent++) expect(await forget(10)).toBe(true)
  expect(await left()).toEqual(['rule-a'])
})

it('a rule that matched on an earlier page is kept', async () => {
  const { redis, keys, enqueue, forget, left } = await queueWithRules('a')
  await redis.sadd(keys.cancelReturned, await enqueue(short, { tags: ['a'] }))
  expect(await forget(1)).toBe(true)
  await redis.sadd(keys.cancelReturned, '1', '2')
  expect([await forget(1), await forget(1)]).toEqual([false, true])
  expect(await left()).toEqual(['rule-a'])
})

it('a call that arrives after the next pass has begun forgets no rule', async () => {
  const { redis, keys, begin, enqueue, forget, left } = await queueWithRules('a', 'b')
  await redis.sadd(keys.cancelReturned, await enqueue(short, { tags: ['a'] }))
  await begin('p2')
  expect(await forget(10, 'p1')).toBe(true)
  expect((await left()).toSorted()).toEqual(['rule-a', 'rule-b'])
  expect(await forget(10, 'p2')).toBe(true)
  expect(await left()).toEqual([])
})

it('a task that a worker requeues is noted while there are rules, and the next pass begins without it', async () => {
  const { redis, keys, broker, begin, enqueue, startPool } = await queueWithRules('a')
  const id = await enqueue(short)
  await startPool()
  // From then on, the queue is throttled.
  await eventually(async () => (await broker.find(id))?.attempts.length)
  expect(await redis.smembers(keys.cancelReturned)).toEqual([id])
  await begin('p2')
  expect(await redis.exists(keys.cancelReturned)).toBe(0)
})

it.each([
  ['at once', 0],
  ['later', 3_600_000],
])('a task that a worker retries %s is noted, too', async (_when, delay) => {
  const { redis, redisUrl, keys, namespace, enqueue } = await queueWithRules('a')
  const id = await enqueue(short)
  const options = { connection: { url: redisUrl }, prefix: prefixOf(namespace, 'rig'), autorun: false }
  const worker = new Worker('rig', null, options, bullpenBackend())
  onTestFinished(() => worker.close(true))
  const job = (await worker.getNextJob('token', { block: false })) ?? expect.fail()
  job.opts.backoff = { type: 'fixed', delay }
  await job.moveToFailed(new Error('no'), 'token')
  expect(await redis.zcard(keys.retrying)).toBe(delay === 0 ? 0 : 1)
  expect(await redis.smembers(keys.cancelReturned)).toEqual([id])
})

it('a task that a worker requeues is not noted while there are no rules', async () => {
  const { redis, keys, broker, enqueue, startPool } = await queueWithRules()
  const id = await enqueue(short)
  await startPool()
  await eventually(async () => (await broker.find(id))?.attempts.length)
  expect(await redis.exists(keys.cancelReturned)).toBe(0)
})

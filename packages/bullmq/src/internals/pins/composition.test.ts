// BullMQ's scripts can run inside Bullpen's: where their texts are, and what they answer. How they write to Redis is pinned in
// ../watched-commands.test.ts.
import { Redis } from 'ioredis'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { bullmqScripts, COMPOSED } from '../composed-scripts.ts'
import { plainBullmq } from './plain.fixture.ts'

const runAsTheyAre = bullmqScripts().filter(({ name }) => !COMPOSED.has(name) && !name.startsWith('relay'))

/** The commands that a script names. */
const commandsIn = (code: string): string[] =>
  [...code.matchAll(/\b(?:rcall|redis\.p?call)\(\s*(["']?)(\w+)\1/g)].map(([, , command]) => command ?? '')

describe("BullMQ's scripts", () => {
  it('are exported with their names, numbers of keys and texts', () => {
    for (const script of bullmqScripts()) {
      expect(script).toEqual({ name: expect.any(String), keys: expect.any(Number), content: expect.any(String) })
    }
    expect([...COMPOSED.keys()]).toEqual(
      expect.arrayContaining(['addStandardJob', 'moveToActive', 'moveToFinished', 'moveToDelayed', 'obliterate']),
    )
  })

  it.each(runAsTheyAre)('$name, which runs as it is, moves and deletes no job', ({ name, content }) => {
    const writes = commandsIn(content).filter((command) =>
      /^(ZADD|ZREM|LPUSH|RPUSH|LREM|DEL|UNLINK|HMSET|HSET)/.test(command),
    )
    // Both delete a key that is no job: a lock, and the counter of the rate limit.
    expect(writes).toEqual(name === 'releaseLock' || name === 'getRateLimitTtl' ? ['DEL'] : [])
  })

  it('answer a refusal by a negative number before they have written anything', async () => {
    const { queue, redis, keys, createWorker, fetch } = await plainBullmq()
    await queue.add('x', {})
    const job = await fetch(createWorker(async () => {}))
    const before = { ...(await redis.hgetall(keys.job(job.id ?? ''))), events: await redis.xlen(keys.events) }
    const backend = queue.getBackend()
    for (const move of [
      () => backend.moveToDelayed(job.id ?? '', Date.now(), 5, 'another', { fieldsToUpdate: { failedReason: 'x' } }),
      () => backend.moveJobFromActiveToWait(job.id ?? '', 'another'),
      () => backend.moveToFailed(job, 'x', false, 'another', false, { stacktrace: '[]' }),
      () => backend.retryJob(job.id ?? '', false, 'another', { fieldsToUpdate: { failedReason: 'x' } }),
    ]) {
      await expect(move()).rejects.toMatchObject({ code: -6 })
    }
    expect({ ...(await redis.hgetall(keys.job(job.id ?? ''))), events: await redis.xlen(keys.events) }).toEqual(before)
  })
})

it('Redis lets a script change ARGV, and run a text with several returns as a function', async () => {
  const redis = new Redis(inject('redisUrl'))
  onTestFinished(() => redis.disconnect())
  const lua = `#!lua
local base = table.remove(ARGV)
local function bullmq()
  if #ARGV == 1 then return ARGV[1] end
  return 'not changed'
end
return { bullmq(), base }`
  expect(await redis.eval(lua, 0, 'first', 'last')).toEqual(['first', 'last'])
})

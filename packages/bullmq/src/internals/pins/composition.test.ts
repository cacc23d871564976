// BullMQ's scripts can run inside Bullpen's: where their texts are, and what they answer. How they write to Redis is pinned in
// ../composition/watched-commands.test.ts.
import { ErrorCode } from 'bullmq'
import { Redis } from 'ioredis'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { bullmqScripts, COMPOSED, REPLACED } from '../composition/composed-scripts.ts'

const runAsTheyAre = bullmqScripts().filter(
  ({ name }) => !COMPOSED.has(name) && !REPLACED.includes(name) && !name.startsWith('relay'),
)

/** The commands that a script names. */
const commandsIn = (code: string): string[] =>
  [...code.matchAll(/\b(?:rcall|redis\.p?call)\(\s*(["']?)(\w+)\1/g)].map(([, , command]) => command ?? '')

describe("BullMQ's scripts", () => {
  it('are exported with their names, numbers of keys and texts', () => {
    for (const script of bullmqScripts()) {
      expect(script).toEqual({ name: expect.any(String), keys: expect.any(Number), content: expect.any(String) })
    }
    expect([...COMPOSED.keys()]).toEqual(expect.arrayContaining(['addJobScheduler', 'moveToWaitingChildren']))
  })

  it.each(runAsTheyAre)('$name, which runs as it is, moves and deletes no job', ({ name, content }) => {
    const writes = commandsIn(content).filter((command) =>
      /^(ZADD|ZREM|LPUSH|RPUSH|LREM|DEL|UNLINK|HMSET|HSET)/.test(command),
    )
    // The counter of the rate limit is no job.
    expect(writes).toEqual(name === 'getRateLimitTtl' ? ['DEL'] : [])
  })

  it('have these codes for what they refuse', () => {
    expect(ErrorCode).toMatchObject({
      JobNotExist: -1,
      JobLockNotExist: -2,
      JobNotInState: -3,
      JobPendingChildren: -4,
      JobLockMismatch: -6,
      JobHasFailedChildren: -9,
    })
  })
})

it('Redis lets a script change ARGV', async () => {
  const redis = new Redis(inject('redisUrl'))
  onTestFinished(() => redis.disconnect())
  const lua = `#!lua
local base = table.remove(ARGV)
return { #ARGV, ARGV[1], base }`
  expect(await redis.eval(lua, 0, 'first', 'last')).toEqual([1, 'first', 'last'])
})

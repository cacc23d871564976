// BullMQ's scripts can run inside Bullpen's: where their texts are, and what they answer. How they write to Redis is pinned in
// ../composition/watched-commands.test.ts.
import { ErrorCode, type Job } from 'bullmq'
import { Redis } from 'ioredis'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { bullmqScripts, COMPOSED, REPLACED } from '../composition/composed-scripts.ts'
import { plainBullmq } from './plain.fixture.ts'

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
    expect([...COMPOSED.keys()]).toEqual(
      expect.arrayContaining(['addStandardJob', 'moveToActive', 'moveToFinished', 'moveToDelayed', 'retryJob']),
    )
  })

  it.each(runAsTheyAre)('$name, which runs as it is, moves and deletes no job', ({ name, content }) => {
    const writes = commandsIn(content).filter((command) =>
      /^(ZADD|ZREM|LPUSH|RPUSH|LREM|DEL|UNLINK|HMSET|HSET)/.test(command),
    )
    // The counter of the rate limit is no job.
    expect(writes).toEqual(name === 'getRateLimitTtl' ? ['DEL'] : [])
  })

  it.each(['moveToDelayed', 'moveJobFromActiveToWait', 'moveToFinished', 'retryJob'] as const)(
    '%s refuses with -6 if another process has the lock, with -2 if the lock is gone, and then has written nothing',
    async (script) => {
      const { queue, redis, keys, createWorker, fetch } = await plainBullmq()
      await queue.add('x', {})
      const job = await fetch(
        createWorker(async () => {}),
        'mine',
      )
      const { id = '' } = job
      const backend = queue.getBackend()
      const fieldsToUpdate = { failedReason: 'x', stacktrace: '["x"]' }
      const move = (token: string): Promise<unknown> =>
        ({
          moveToDelayed: () => backend.moveToDelayed(id, Date.now(), 5, token, { fieldsToUpdate }),
          moveJobFromActiveToWait: () => backend.moveJobFromActiveToWait(id, token),
          moveToFinished: () => backend.moveToFailed(job, 'x', false, token, false, fieldsToUpdate),
          retryJob: () => backend.retryJob(id, false, token, { fieldsToUpdate }),
        })[script]()
      const data = async () => ({
        fields: await redis.hgetall(keys.job(id)),
        active: await redis.lrange(keys.active, 0, -1),
        events: await redis.xlen(keys.events),
      })
      const before = await data()
      await expect(move('theirs')).rejects.toMatchObject({ code: -6 })
      await redis.del(keys.lock(id))
      await expect(move('mine')).rejects.toMatchObject({ code: -2 })
      expect(await data()).toEqual(before)
      await redis.del(keys.job(id))
      await expect(move('mine')).rejects.toMatchObject({ code: -1 })
    },
  )

  it('answer -3 if the job is not active, except moveJobFromActiveToWait, which then moves nothing', async () => {
    const { queue, redis, keys, createWorker, fetch } = await plainBullmq()
    const worker = createWorker(async () => {})
    const fetchInactive = async (): Promise<Job> => {
      await queue.add('x', {})
      const job = await fetch(worker, 'mine')
      await redis.lrem(keys.active, 1, job.id ?? '')
      return job
    }
    await expect((await fetchInactive()).moveToCompleted(1, 'mine', false)).rejects.toMatchObject({ code: -3 })
    await expect((await fetchInactive()).moveToDelayed(Date.now(), 'mine')).rejects.toMatchObject({ code: -3 })
    await (await fetchInactive()).moveToWait('mine')
    expect(await redis.exists(keys.wait)).toBe(0)
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

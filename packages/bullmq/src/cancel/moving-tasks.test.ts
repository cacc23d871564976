// A cancel by filter while consumers fetch and return tasks: a rule is forgotten only when every task that it matches has ended.
import { randomUUID } from 'node:crypto'
import type { TaskId } from '@bullpen/contract'
import { seeds } from '@bullpen/testing'
import { type Job, Queue, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { expect, inject, it, onTestFinished } from 'vitest'
import { prefixOf, queueKeys } from '../keys.ts'
import { bullpenBackend } from '../store/bullpen-backend.ts'
import { beginPassScript, cancelPageScript, forgetRulesScript } from '../store/scripts.ts'
import { createBulkCanceller } from './bulk-canceller.ts'

/** A small generator (mulberry32), so that a run can be repeated by its seed. */
function randomOf(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}

it.each(seeds({ small: 15, full: 200 }))(
  'a rule is forgotten only when no task that it matches waits or runs (seed %i)',
  async (seed) => {
    const random = randomOf(seed)
    const namespace = `t-${randomUUID().slice(0, 12)}`
    const keys = queueKeys(namespace, 'q')
    const redis = new Redis(inject('redisUrl'), { maxRetriesPerRequest: null })
    const options = { connection: redis, prefix: prefixOf(namespace, 'q'), skipVersionCheck: true }
    const queue = new Queue('q', options, bullpenBackend())
    const worker = new Worker('q', null, { ...options, autorun: false, skipStalledCheck: true }, bullpenBackend())
    onTestFinished(async () => {
      await worker.close(true)
      await queue.obliterate({ force: true })
      await queue.close()
      redis.disconnect()
    })
    for (let i = 0; i < 40; i++) {
      const name = random(4) === 0 ? 'match' : 'other'
      const opts = { jobId: `${name}-${i}`, attempts: 1_000, ...(random(8) === 0 && { delay: 3_600_000 }) }
      await queue.add(name, {}, opts)
    }
    const rule = { id: 'rule', queue: 'q', task: 'match', before: Date.now(), reason: 'cancelled', by: 'me', at: 1 }
    await redis.hset(keys.cancelRules, rule.id, JSON.stringify(rule))

    const held: Job[] = []
    /**
     * Consumers know the rule: they return a task that it matches, or keep it for a while, and never start it. A team's own Worker
     * does not know the rule: it runs the task, which fails and is retried at once or later.
     */
    const move = async (): Promise<void> => {
      const job = held[random(Math.max(1, held.length))]
      if (random(2) === 0 || job === undefined) {
        const fetched = await worker.getNextJob('token', { block: false })
        if (fetched !== undefined) held.push(fetched as Job)
        return
      }
      held.splice(held.indexOf(job), 1)
      if (job.name === 'other' && random(3) === 0) await job.moveToCompleted(1, 'token', false)
      else if (random(3) === 0) {
        job.opts.backoff = { type: 'fixed', delay: random(2) * 3_600_000 }
        await job.moveToFailed(new Error('no'), 'token')
      } else await job.moveToWait('token')
    }
    const unended = async (): Promise<readonly string[]> => {
      const ids = [
        ...(await redis.lrange(keys.wait, 0, -1)),
        ...(await redis.lrange(keys.active, 0, -1)),
        ...(await redis.zrange(keys.delayed, 0, '-1')),
      ]
      return ids.filter((id) => id.startsWith('match'))
    }

    // Something moves before each script of the canceller. Some replies are lost, and the script is sent again.
    // ioredis adds defined commands as methods, which its types do not have.
    const commands = redis as unknown as Record<string, (args: unknown[]) => Promise<unknown>>
    for (const { name, numberOfKeys, lua } of [beginPassScript, cancelPageScript, forgetRulesScript]) {
      redis.defineCommand(name, { numberOfKeys, lua })
      const run = commands[name]?.bind(redis) ?? expect.fail()
      commands[name] = async (args) => {
        for (;;) {
          for (let moves = random(4); moves > 0; moves--) await move()
          const reply = await run(args)
          if (random(4) !== 0) return reply
        }
      }
    }
    const ended: TaskId[] = []
    const canceller = createBulkCanceller({
      redis,
      keys,
      caller: 'test',
      pageSize: 3,
      onEnded: ({ id }) => ended.push(id),
    })
    while ((await redis.exists(keys.cancelRules)) === 1) {
      await canceller({ fencing: 1, isOver: () => false })
      // A consumer that keeps a task of the rule would keep the rule for as long.
      if (random(3) === 0) for (const job of held.splice(0)) await job.moveToWait('token')
    }
    expect(await unended()).toEqual([])
    // Each end is reported once, also if the reply that named it was lost.
    expect(ended.toSorted()).toEqual((await redis.zrange(keys.cancelled, 0, '-1')).toSorted())
  },
)

// Redis ends a task that no worker has, and its reply is lost: the end is reported all the same, and once.
import { randomBytes, randomUUID } from 'node:crypto'
import type { TaskId } from '@bullpen/contract'
import { createTaskId } from '@bullpen/contract/internal'
import { newTask } from '@bullpen/engine/internal'
import { eventually, faultProxy } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { openPatientBroker } from '../broker/patient-broker.fixture.ts'
import { COMMAND_TIMEOUT_MS, producerConnection } from '../connection.ts'
import { queueKeys } from '../keys.ts'
import { expireTasks } from '../leader/expirer.ts'
import { lockTask, unlockTasks } from '../locks/stored-lock.fixture.ts'
import type { Commander } from '../scripts/script.ts'
import { long, silent } from '../setup.fixture.ts'
import { cancelPageScript, cancelTaskScript, expireTasksScript } from '../store/scripts.ts'
import { createBulkCanceller } from './bulk-canceller.ts'
import { repeatCancels } from './by-id.ts'

/** A queue, and a broker whose connection to Redis can lose replies. */
async function setup(more: { readonly commandTimeoutMs?: number } = {}) {
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const keys = queueKeys(namespace, 'rig')
  const proxy = await faultProxy(inject('redisUrl'))
  const redis = new Redis(inject('redisUrl'))
  const ended: string[] = []
  const broker = openPatientBroker({
    ...more,
    redisUrl: proxy.url,
    namespace,
    queues: ['rig'],
    sizeLimit: 10_000,
    log: silent,
    leads: false,
    onCancelled: ({ id, task }) => ended.push(`${id} ${task}`),
  })
  onTestFinished(async () => {
    proxy.mend()
    await Promise.allSettled(broker.boardQueues.map((queue) => queue.obliterate({ force: true })))
    await broker.close()
    await proxy.close()
    redis.disconnect()
  })
  await eventually(() => broker.ping().then(() => true))
  return {
    keys,
    proxy,
    redis,
    broker,
    ended,
    async enqueue(expiresAt?: number): Promise<TaskId> {
      const id = createTaskId('rig', Date.now(), randomBytes(10))
      const task = newTask(long, {}, {}, { id, enqueuedAt: Date.now(), correlationId: undefined })
      await broker.enqueue({ ...task, ...(expiresAt !== undefined && { expiresAt }) })
      return id
    },
    /** Loses the replies that are under way, once Redis has ended this many tasks. */
    async loseReplies(count: number, whileCut: () => Promise<unknown> = async () => {}): Promise<void> {
      await eventually(async () => (await redis.zcard(keys.failed)) === count)
      await whileCut()
      expect(ended).toEqual([])
      proxy.reset()
    },
  }
}

describe('a cancel by id whose reply is lost', () => {
  it('of a waiting task is sent again, and answers that it cancelled the task', async () => {
    const { broker, proxy, enqueue, loseReplies } = await setup()
    const id = await enqueue()
    proxy.cutAnswers()
    const answer = broker.cancel(id, { stoppable: true })
    await loseReplies(1)
    expect(await answer).toBe('cancelled')
    expect(await broker.cancel(id, { stoppable: true })).toBe('already_ended')
  })

  it('of a running task answers that the task is cancelling, although the task has ended since', async () => {
    const { broker, proxy, redis, keys, enqueue } = await setup()
    const id = await enqueue()
    await redis.lmove(keys.wait, keys.active, 'RIGHT', 'LEFT')
    await lockTask(redis, keys, id, 'a token')
    proxy.cutAnswers()
    const answer = broker.cancel(id, { stoppable: true })
    await eventually(() => redis.hexists(keys.cancelling, id))
    await redis.del(keys.active)
    await unlockTasks(redis, keys, id)
    await redis.zadd(keys.completed, 1, id)
    proxy.reset()
    expect(await answer).toBe('cancelling')
    expect(await broker.cancel(id, { stoppable: true })).toBe('already_ended')
  })

  it('for so long that the caller gets an error is reported once Redis answers', async () => {
    const { broker, proxy, ended, enqueue, loseReplies } = await setup({ commandTimeoutMs: COMMAND_TIMEOUT_MS })
    const id = await eventually(() => enqueue())
    proxy.cutAnswers()
    await expect(broker.cancel(id, { stoppable: true })).rejects.toMatchObject({ code: 'redis_unavailable' })
    await loseReplies(1)
    await eventually(() => ended.length > 0)
    expect(ended).toEqual([`${id} rig.long`])
    expect(await eventually(() => broker.cancel(id, { stoppable: true }))).toBe('already_ended')
  })

  it('is not reported if another request has cancelled the task', async () => {
    const { broker, proxy, redis, keys, ended, enqueue } = await setup({ commandTimeoutMs: COMMAND_TIMEOUT_MS })
    const id = await eventually(() => enqueue())
    await redis.lrem(keys.wait, 1, id)
    await redis.zadd(keys.failed, 1, id)
    proxy.cutAnswers()
    await expect(broker.cancel(id, { stoppable: true })).rejects.toMatchObject({ code: 'redis_unavailable' })
    proxy.reset()
    expect(await eventually(() => broker.cancel(id, { stoppable: true }))).toBe('already_ended')
    expect(ended).toEqual([])
  })
})

type Setup = Awaited<ReturnType<typeof setup>>

/** Everything that the leader does to end tasks that no worker has. */
const DUTIES: readonly (readonly [
  name: string,
  prepare: (all: Setup, ids: readonly TaskId[]) => Promise<unknown>,
  run: (redis: Commander, all: Setup, onEnded: (ended: { id: string; task: string }) => void) => Promise<void>,
])[] = [
  [
    'a cancel by filter',
    ({ redis, keys }) => {
      const rule = { id: 'rule', queue: 'rig', before: Date.now() + 60_000, reason: 'cancelled', by: 'me', at: 1 }
      return redis.hset(keys.cancelRules, rule.id, JSON.stringify(rule))
    },
    (redis, { keys }, onEnded) =>
      createBulkCanceller({ redis, keys, caller: 'test', onEnded })({ fencing: 1, isOver: () => false }),
  ],
  [
    'a repeated cancel',
    ({ redis, keys }, ids) => redis.hset(keys.cancelling, Object.fromEntries(ids.map((id) => [id, 'ann']))),
    (redis, { keys }, onEnded) => repeatCancels(redis, keys, { now: 1, process: 'test', onEnded }),
  ],
  [
    'expiry',
    ({ redis, keys }, ids) => redis.zadd(keys.expiries, ...ids.flatMap((id) => [1, id])),
    (redis, { keys }, onExpired) =>
      expireTasks(redis, keys, { fencing: 1, now: Date.now, process: 'test', caller: 'test', onExpired }),
  ],
]

/** Calls `onSend` before the first script that ends tasks is sent. */
function beforeFirstEnd(redis: Commander, onSend: () => void): void {
  let isFirst = true
  // ioredis adds defined commands as methods, which its types do not have.
  const commands = redis as unknown as Record<string, (args: unknown[]) => Promise<unknown>>
  for (const { name, numberOfKeys, lua } of [cancelPageScript, cancelTaskScript, expireTasksScript]) {
    redis.defineCommand(name, { numberOfKeys, lua })
    const run = commands[name]?.bind(redis) ?? expect.fail()
    commands[name] = (args) => {
      // The bulk canceller looks at other places before the waiting list.
      if (isFirst && (name !== cancelPageScript.name || args.includes('wait'))) {
        isFirst = false
        onSend()
      }
      return run(args)
    }
  }
}

describe.each(DUTIES)('%s', (_name, prepare, run) => {
  it.each([
    ['a moment', async () => {}],
    [
      'longer than the client waits for them',
      (client: Commander) => expect(client.ping()).rejects.toThrow('timed out'),
    ],
  ] as const)('whose replies are lost for %s reports each end once', async (_for, whileCut) => {
    const all = await setup()
    const client = producerConnection(all.proxy.url, silent)
    onTestFinished(() => client.disconnect())
    await eventually(() => client.ping().then(() => true))
    const ids = [await all.enqueue(), await all.enqueue(), await all.enqueue()]
    await prepare(all, ids)
    beforeFirstEnd(client, all.proxy.cutAnswers)
    const reported: string[] = []
    const done = run(client, all, ({ id, task }) => reported.push(`${id} ${task}`))
    await all.loseReplies(3, () => whileCut(client))
    await done
    expect(reported.toSorted()).toEqual(ids.map((id) => `${id} rig.long`).toSorted())
    expect(await all.redis.zcard(all.keys.failed)).toBe(3)
  })
})

// A drain of a queue with `onShutdown: 'cancel'` cancels each waiting task once, whichever process dies, unless the queue is resumed first.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { TaskId } from '@bullpen/contract'
import { programEnv } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { expect, it, onTestFinished } from 'vitest'
import { openPatientBroker } from '../broker/patient-broker.fixture.ts'
import { openPatientFleet, pool, status } from '../fleet/fleet.fixture.ts'
import { scriptProxy } from '../internals/index-model/script-proxy.fixture.ts'
import { queueKeys } from '../keys.ts'
import { surveyQueue } from '../leader/survey.ts'
import { setup, short, silent } from '../setup.fixture.ts'
import { announceCommandScript, applySettingsScript } from '../store/scripts.ts'
import { cancelDrained } from './drained-queue.ts'

const DRAIN = { id: 'd1', spec: { action: 'drain', queue: 'rig', mode: 'hard' }, by: 'ann' } as const
const RESUME = { id: 'r1', spec: { action: 'resume', queue: 'rig' }, by: 'ann' } as const
const CANCELLED = { status: 'cancelled', attempts: [{ reason: 'queue_shutdown', by: 'ann' }] }

async function openQueue(options: Parameters<typeof setup>[0] = {}) {
  const stage = await setup(options)
  const redis = new Redis(stage.redisUrl)
  onTestFinished(() => redis.disconnect())
  const keys = queueKeys(stage.namespace, 'rig')
  const openSender = async (redisUrl = stage.redisUrl) => {
    const { namespace } = stage
    const fleet = openPatientFleet({ redisUrl, namespace, queues: ['rig'], onShutdownOf: () => 'cancel', log: silent })
    onTestFinished(() => fleet.close())
    await eventually(() => fleet.commands(1).then(() => true))
    return fleet
  }
  const fill = (count: number): Promise<TaskId[]> =>
    Promise.all(Array.from({ length: count }, (_, i) => stage.enqueue(short, i % 2 ? { delayMs: 600_000 } : {})))
  const rules = async () => {
    const stored = await redis.hvals(keys.cancelRules)
    return stored.map((text) => JSON.parse(text) as { readonly id: string })
  }
  return { ...stage, redis, keys, openSender, fill, rules }
}

it.each([
  { script: 'applies its settings', lua: applySettingsScript.lua, when: 'before' },
  { script: 'applies its settings', lua: applySettingsScript.lua, when: 'after' },
  { script: 'announces it', lua: announceCommandScript.lua, when: 'before' },
  { script: 'announces it', lua: announceCommandScript.lua, when: 'after' },
] as const)(
  'a drain whose sender dies $when the script that $script cancels the waiting tasks',
  async ({ lua, when }) => {
    const { redisUrl, namespace, openSender, fill, settled } = await openQueue()
    const tasks = await fill(4)
    const waiting = tasks.map(settled)
    const proxy = await scriptProxy(redisUrl)
    onTestFinished(() => proxy.close())
    const sender = await openSender(proxy.url)
    const death = proxy.closeAt({ scripts: [lua], when })
    sender.send(DRAIN).catch(() => {})
    await death
    // A worker of another queue, which knows nothing of this one, applies what the sender has left.
    const worker = openPatientFleet({ redisUrl, namespace, queues: ['other'], log: silent })
    onTestFinished(() => worker.close())
    await eventually(() => worker.heartbeat(status('a', [pool('other')])).then(() => true))
    for (const task of await Promise.all(waiting)) expect(task).toMatchObject(CANCELLED)
  },
)

it('a leader goes on where one that was killed has stopped cancelling, and each task ends once', async () => {
  const { broker, redisUrl, namespace, redis, keys, openSender, fill, rules } = await openQueue({ leads: false })
  const tasks = [...(await fill(250)), ...(await fill(250))]
  const fixture = new URL('./drain-leader.fixture.ts', import.meta.url).pathname
  const args = [fixture, redisUrl, namespace]
  const leader = spawn(process.execPath, args, { env: programEnv(), stdio: ['ignore', 'ignore', 'inherit'] })
  onTestFinished(() => void leader.kill('SIGKILL'))
  const sender = await openSender()
  const [record] = await Promise.all([sender.send(DRAIN), once(leader, 'exit')])
  const [rule] = await rules()
  const endedAtDeath = (await broker.cancelProgress(rule?.id ?? ''))?.ended ?? 0
  expect(endedAtDeath).toBeGreaterThan(0)
  expect(endedAtDeath).toBeLessThan(tasks.length)
  const next = openPatientBroker({ redisUrl, namespace, queues: ['rig'], sizeLimit: 10_000, log: silent })
  onTestFinished(() => next.close())
  await eventually(async () => (await broker.cancelProgress(rule?.id ?? ''))?.doneAt !== undefined)
  expect(await broker.cancelProgress(rule?.id ?? '')).toMatchObject({
    ended: tasks.length,
    rule: { queue: 'rig', before: record.at, reason: 'queue_shutdown', by: 'ann' },
  })
  expect(await redis.zcard(keys.cancelled)).toBe(tasks.length)
  for (const id of tasks.slice(0, 20)) expect(await broker.find(id)).toMatchObject(CANCELLED)
})

it('a queue that is resumed before its leader has stored the rule keeps its tasks, however late the leader is', async () => {
  const { broker, redis, keys, openSender, fill, rules } = await openQueue({ leads: false })
  const [task] = await fill(1)
  const sender = await openSender()
  await sender.send(DRAIN)
  const late = Object.assign(Object.create(redis) as Redis, {
    async hget(key: string, field: string) {
      const stored = await redis.hget(key, field)
      await sender.send(RESUME)
      return stored
    },
  })
  await cancelDrained(late, keys, 'rig')
  await cancelDrained(redis, keys, 'rig')
  expect(await rules()).toEqual([])
  expect((await broker.find(task as TaskId))?.status).toBe('waiting')
})

it('a task that a drain has cancelled stays cancelled when the queue is resumed, because callers may have seen it', async () => {
  const { broker, redis, keys, openSender, fill } = await openQueue({ leads: false })
  const [task] = await fill(1)
  const sender = await openSender()
  await sender.send(DRAIN)
  await cancelDrained(redis, keys, 'rig')
  expect(await broker.find(task as TaskId)).toMatchObject(CANCELLED)
  await sender.send(RESUME)
  expect(await broker.find(task as TaskId)).toMatchObject(CANCELLED)
})

it('a drain stores one rule, whichever leaders store it, and none again while it lasts', async () => {
  const { redis, keys, openSender, rules } = await openQueue({ leads: false })
  const duties = async () => {
    const now = Date.now()
    const options = { fencing: 1, now, retention: '', compareEveryMs: 600_000, eventsSince: undefined }
    return (await surveyQueue(redis, keys, options)).duties
  }
  const sender = await openSender()
  await sender.send(DRAIN)
  expect(await duties()).toContain('cancelDrained')
  await Promise.all(Array.from({ length: 3 }, () => cancelDrained(redis, keys, 'rig')))
  const stored = await rules()
  expect(stored).toHaveLength(1)
  // The rule was done more than a day ago.
  await redis.del(keys.cancelRules, keys.cancelProgress(stored[0]?.id ?? ''))
  await sender.send(DRAIN)
  expect(await duties()).not.toContain('cancelDrained')
  await sender.send({ ...DRAIN, id: 'd2' })
  expect(await duties()).toContain('cancelDrained')
})

// Tests what the leader does for a pipeline's run: it delivers what a process has left that died between a script and its deliveries, finds
// tasks that no longer exist, and lets what a cancel has stored expire after the end.
import { randomBytes, randomUUID } from 'node:crypto'
import { defineTask, type RunId } from '@bullpen/contract'
import { createRunId, createTaskId } from '@bullpen/contract/internal'
import { FORCED_RUN_END_MS, newTask, type RunSettings, storedRunDefinition } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { expect, inject, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { openPatientBroker } from '../broker/patient-broker.fixture.ts'
import { queueKeys, runChannels, runKeys, runsKey } from '../keys.ts'
import { visitRegistry } from '../leader/visit-registry.ts'
import { createTargetQueues } from '../outbox/target-queues.ts'
import { runScript } from '../scripts/script.ts'
import { silent } from '../setup.fixture.ts'
import { endRunTasksScript, startRunScript } from '../store/scripts.ts'
import type { MissingTask } from './missing-tasks.ts'
import { runDeliveries } from './run-deliveries.ts'
import { settingsFields } from './run-record.ts'
import { runVisit } from './run-visits.ts'

const task = defineTask({ name: 'work.item', queue: 'work', input: z.unknown() })

async function openRun() {
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const redisUrl = inject('redisUrl')
  const redis = new Redis(redisUrl)
  const broker = openPatientBroker({
    redisUrl,
    namespace,
    queues: ['work'],
    sizeLimit: 10_000,
    log: silent,
    leads: false,
  })
  const targets = createTargetQueues(redis, namespace)
  onTestFinished(async () => {
    await Promise.allSettled(broker.boardQueues.map((queue) => queue.obliterate({ force: true })))
    await broker.close()
    redis.disconnect()
  })
  await eventually(() => broker.ping().then(() => true))
  const id = createRunId(Date.now(), randomBytes(10))
  const settings: RunSettings = {
    ...{ id, incarnation: 'one' },
    ...{ pipeline: 'p', by: 'ann', onError: 'cancel', maxErrors: 1, ordered: true, take: undefined },
    ...{ source: { task: task.name, queue: 'work' }, reduce: undefined, totalMs: 60_000, keepMs: 60_000 },
    stages: [{ task: task.name, queue: 'work', concurrency: 1, buffer: 0 }],
  }
  const origin = { id: createTaskId('work', 0, new Uint8Array(10)), enqueuedAt: Date.now(), correlationId: undefined }
  const tasks = [newTask(task, {}, {}, origin), newTask(task, undefined, {}, origin)]
  const registry = visitRegistry<RunId>(redis, runsKey(namespace))
  const options = { redis, namespace, registry, now: Date.now }
  const deliveries = runDeliveries({ ...options, targets, onRefused() {}, onChanged() {} })
  let aheadMs = 0
  const missing: MissingTask[] = []
  const visit = runVisit({
    ...{ ...options, deliveries, now: () => Date.now() + aheadMs },
    onMissing: (_, each) => void missing.push(each),
  })
  return {
    namespace,
    redis,
    broker,
    id,
    settings,
    tasks,
    keys: runKeys(namespace, id),
    registry,
    missing,
    visit: () => visit(id),
    /** Visits the run four times, each time after all that is due within ten seconds. */
    async visitLater() {
      for (let i = 0; i < 4; i++) {
        aheadMs += 10_001
        await visit(id)
      }
    },
  }
}

it('the task of a run that a dead process has not enqueued is enqueued once, by the leader', async () => {
  const { namespace, redis, broker, id, settings, tasks, keys, visit } = await openRun()
  const stored = storedRunDefinition({ settings, tasks }, undefined)
  const args = { id, channels: runChannels(namespace), settings: stored, totalMs: 60_000, spareMs: 60_000 }
  // The process dies after this script, so that nobody delivers the entry that it has claimed.
  const [, entries] = await runScript(redis, startRunScript, keys, args, settingsFields(settings))
  expect(entries).toHaveLength(1)
  await visit()
  expect((await broker.totals('work')).accepted).toBe(0)
  await redis.xclaim(keys.outbox, 'forwarders', 'forwarder', 0, entries[0]?.[0] ?? '', 'IDLE', 60_000, 'JUSTID')
  await visit()
  await visit()
  expect((await broker.totals('work')).accepted).toBe(1)
  expect(await redis.exists(keys.outbox)).toBe(0)
})

it('a task in its queue or in an outbox is not missing, and a task that no longer exists counts as removed', async () => {
  const { namespace, redis, broker, id, settings, tasks, keys, missing, visit, visitLater } = await openRun()
  const stored = storedRunDefinition({ settings, tasks }, undefined)
  const args = { id, channels: runChannels(namespace), settings: stored, totalMs: 60_000, spareMs: 60_000 }
  const [, entries] = await runScript(redis, startRunScript, keys, args, settingsFields(settings))
  const { wait, job, outbox } = queueKeys(namespace, 'work')
  const stateLater = async () => {
    await visitLater()
    return [(await broker.runs.find(id))?.state, missing]
  }
  // In the outbox of the run, in the queue, and in the outbox of the queue.
  expect(await stateLater()).toEqual(['running', []])
  await redis.xclaim(keys.outbox, 'forwarders', 'forwarder', 0, entries[0]?.[0] ?? '', 'IDLE', 60_000, 'JUSTID')
  await visit()
  expect(await stateLater()).toEqual(['running', []])
  const [source = ''] = await redis.lrange(wait, 0, -1)
  await redis.del(job(source))
  const entry = await redis.xadd(outbox, '*', 'e', `g ${id}.one 0.1 c`)
  expect(await stateLater()).toEqual(['running', []])
  // Nowhere.
  await redis.xdel(outbox, entry ?? '')
  expect(await stateLater()).toEqual(['ended', [{ stage: 0, position: 1, task: task.name, queue: 'work' }]])
  expect(await broker.runs.find(id)).toMatchObject({ source: { state: 'failed' }, ended: { result: 'failed' } })
})

it('the leader forgets a run that has ended, and what its cancel has stored in its queues then expires within seconds', async () => {
  const { namespace, redis, broker, id, settings, tasks, keys, registry, visit } = await openRun()
  await broker.runs.start({ settings, tasks })
  await broker.runs.cancel(id, 'ann')
  const { cancelledGroup, cancelRules, cancelProgress } = queueKeys(namespace, 'work')
  const refused = cancelledGroup(`${id}.one`)
  const [rule = expect.fail()] = await redis.hkeys(cancelRules)
  const end = ['0', '1', 'x', '']
  await visit()
  expect([(await redis.pttl(refused)) > 10_000, await registry.ids()]).toEqual([true, [id]])
  // A process that has died has left an entry, whose task has ended.
  await redis.xadd(keys.outbox, '*', 'e', `i ${id}.one 0 1\n`)
  await runScript(redis, endRunTasksScript, keys, { id, channels: runChannels(namespace), incarnation: 'one' }, end)
  await visit()
  expect(await registry.count()).toBe(1)
  const [left] = await redis.xrange(keys.outbox, '-', '+')
  await redis.xclaim(keys.outbox, 'forwarders', 'forwarder', 0, left?.[0] ?? '', 'IDLE', 60_000, 'JUSTID')
  await visit()
  expect([await redis.exists(keys.outbox), await registry.count()]).toEqual([0, 0])
  expect(await redis.exists(cancelRules)).toBe(0)
  for (const key of [refused, cancelProgress(rule)]) {
    const leftMs = await redis.pttl(key)
    expect(leftMs).toBeGreaterThan(0)
    expect(leftMs).toBeLessThanOrEqual(10_000)
  }
})

it('a run that is ended before its tasks leaves its cancel to the bulk canceller', async () => {
  const { namespace, redis, broker, id, settings, tasks, keys, registry, visit } = await openRun()
  await broker.runs.start({ settings, tasks })
  await broker.runs.cancel(id, 'ann')
  await redis.hset(keys.meta, 'stoppedAt', Date.now() - FORCED_RUN_END_MS)
  await visit()
  expect([(await broker.runs.find(id))?.state, await registry.count()]).toEqual(['ended', 0])
  const { cancelledGroup, cancelRules } = queueKeys(namespace, 'work')
  await broker.runs.delete(id)
  expect(await redis.hlen(cancelRules)).toBe(1)
  expect(await redis.pttl(cancelledGroup(`${id}.one`))).toBeGreaterThan(10_000)
})

// Tests that the leader delivers what a process has left of a pipeline's run when it died between a script and its deliveries.
import { randomBytes, randomUUID } from 'node:crypto'
import { defineTask, type RunId } from '@bullpen/contract'
import { createRunId, createTaskId } from '@bullpen/contract/internal'
import { newTask, type RunSettings, storedRunDefinition } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { expect, inject, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { openBroker } from '../broker/broker.ts'
import { runChannels, runKeys, runsKey } from '../keys.ts'
import { visitRegistry } from '../leader/visit-registry.ts'
import { openTargetQueues } from '../outbox/target-queues.ts'
import { startRunScript } from '../scripts/runs/start-run.ts'
import { runScript } from '../scripts/script.ts'
import { silent } from '../setup.fixture.ts'
import { runDeliveries } from './run-deliveries.ts'
import { settingsFields } from './run-record.ts'
import { runVisit } from './run-visits.ts'

const task = defineTask({ name: 'work.item', queue: 'work', input: z.unknown() })

it('the task of a run that a dead process has not enqueued is enqueued once, by the leader', async () => {
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const redisUrl = inject('redisUrl')
  const redis = new Redis(redisUrl)
  const broker = openBroker({ redisUrl, namespace, queues: ['work'], sizeLimit: 10_000, log: silent, leads: false })
  const targets = openTargetQueues({ redis, namespace, now: Date.now })
  onTestFinished(async () => {
    await Promise.allSettled(broker.boardQueues.map((queue) => queue.obliterate({ force: true })))
    await broker.close()
    await targets.close()
    redis.disconnect()
  })
  await eventually(() => broker.ping().then(() => true))
  const id = createRunId(Date.now(), randomBytes(10))
  const settings: RunSettings = {
    ...{ id, pipeline: 'p', by: 'ann', onError: 'cancel', maxErrors: 1, ordered: true, take: undefined },
    ...{ source: { task: task.name, queue: 'work' }, reduce: undefined, totalMs: 60_000, keepMs: 60_000 },
    stages: [{ task: task.name, queue: 'work', concurrency: 1, buffer: 0 }],
  }
  const origin = { id: createTaskId('work', 0, new Uint8Array(10)), enqueuedAt: Date.now(), correlationId: undefined }
  const tasks = [newTask(task, {}, {}, origin), newTask(task, undefined, {}, origin)]
  const keys = runKeys(namespace, id)
  const stored = storedRunDefinition({ settings, tasks }, undefined)
  const args = { id, channels: runChannels(namespace), settings: stored, totalMs: 60_000, spareMs: 60_000 }
  // The process dies after this script, so that nobody delivers the entry that it has claimed.
  const { entries } = await runScript(redis, startRunScript, keys, args, settingsFields(settings))
  expect(entries).toHaveLength(1)
  const options = { redis, namespace, registry: visitRegistry<RunId>(redis, runsKey(namespace)), now: Date.now }
  const visit = runVisit({
    ...options,
    deliveries: runDeliveries({ ...options, targets, onRefused() {}, onChanged() {} }),
  })
  await visit(id)
  expect((await broker.totals('work')).accepted).toBe(0)
  await redis.xclaim(keys.outbox, 'forwarders', 'forwarder', 0, entries[0]?.[0] ?? '', 'IDLE', 60_000, 'JUSTID')
  await visit(id)
  await visit(id)
  expect((await broker.totals('work')).accepted).toBe(1)
  expect(await redis.exists(keys.outbox)).toBe(0)
})

// The memory of deleted tasks does not grow, and does not hold Redis up.
import { randomBytes, randomUUID } from 'node:crypto'
import { createTaskId } from '@bullpen/contract/internal'
import { newTask } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { expect, inject, it, onTestFinished } from 'vitest'
import { openPatientBroker } from '../broker/patient-broker.fixture.ts'
import { queueKeys } from '../keys.ts'
import { short, silent } from '../setup.fixture.ts'

it('tasks that were deleted long ago are forgotten by and by, as other tasks are deleted', async () => {
  const redisUrl = inject('redisUrl')
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const redis = new Redis(redisUrl)
  const broker = openPatientBroker({
    redisUrl,
    namespace,
    queues: ['rig'],
    sizeLimit: 10_000,
    leads: false,
    log: silent,
  })
  onTestFinished(async () => {
    redis.disconnect()
    await broker.close()
  })
  const { recentlyRemoved } = queueKeys(namespace, 'rig')
  const enqueueAndDelete = async (): Promise<void> => {
    const enqueuedAt = Date.now()
    const id = createTaskId('rig', enqueuedAt, randomBytes(10))
    const task = newTask(short, {}, {}, { id, enqueuedAt, correlationId: undefined })
    await eventually(() => broker.enqueue(task).then(() => true))
    await broker.boardQueues[0]?.remove(id)
  }
  const old = Array.from({ length: 2_500 }, (_, i) => [i, `task-${i} `]).flat()
  await redis.zadd(recentlyRemoved, ...old)
  const sizes: number[] = []
  for (let deleted = 1; deleted <= 4; deleted++) {
    await enqueueAndDelete()
    sizes.push(await redis.zcard(recentlyRemoved))
  }
  expect(sizes).toEqual([1_501, 502, 3, 4])
})

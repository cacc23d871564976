// A task that takes turns is refused as long as a live worker of its queue is too old to start it.
import { randomBytes } from 'node:crypto'
import { createTaskId } from '@bullpen/contract/internal'
import { newTask } from '@bullpen/engine/internal'
import { expect, it } from 'vitest'
import { fleetRig, pool, status } from '../fleet/fleet.fixture.ts'
import { encodeStatus } from '../fleet/status-codec.ts'
import { setup, short, silent } from '../setup.fixture.ts'
import { createFleetFeatures } from './fleet-features.ts'

const TURN = { key: 'acme', weight: 1 }

async function stage() {
  const rig = await setup()
  const { namespace } = rig
  const members = await fleetRig({ namespace, queues: ['rig', 'another'] })
  const { redis, keys } = members
  return {
    ...rig,
    ...members,
    /** Registers a worker as an older version does. */
    async addOld(worker: string, queue = 'rig') {
      await members.fleet.heartbeat(status(worker, [pool(queue)]))
      await redis.hset(keys.worker(worker), 'status', encodeStatus(status(worker, [pool(queue)])).status)
    },
    /** A process that has read nothing yet. */
    features: () => createFleetFeatures({ redis, namespace, log: silent }),
  }
}

it('a task with a turn is refused with the names of the workers that are too old, and is not stored', async () => {
  const { addOld, enqueue, broker, fleet } = await stage()
  await fleet.heartbeat(status('new:1', [pool('rig')]))
  for (const worker of ['old:1', 'old:2', 'old:3', 'old:4']) await addOld(worker)
  await expect(enqueue(short, { turn: TURN })).rejects.toMatchObject({
    code: 'fleet_too_old',
    message: expect.stringMatching(
      /^queue 'rig' has fairness.*: (old:\d \(Bullpen 1\.2\.3\), ){2}old:\d \(Bullpen 1\.2\.3\) and 1 more; /,
    ),
  })
  const task = {
    ...newTask(short, {}, {}, { id: createTaskId('rig', 0, randomBytes(10)), enqueuedAt: 0, correlationId: undefined }),
    turn: TURN,
  }
  await expect(broker.enqueueAll([task])).rejects.toMatchObject({ code: 'fleet_too_old' })
  expect((await broker.counts('rig')).waiting).toBe(0)
  // A task without a concurrency key waits where every worker looks for it.
  await enqueue(short)
  expect((await broker.counts('rig')).waiting).toBe(1)
})

it('a task that needs permits or depends on a service is refused while a worker supports only turns', async () => {
  const { fleet, redis, keys, enqueue, broker } = await stage()
  const worker = { ...status('old:1', [pool('rig')]), features: ['turns'] }
  await fleet.heartbeat(worker)
  await redis.hset(keys.worker('old:1'), 'status', encodeStatus(worker).status)
  await enqueue(short, { turn: TURN })
  await expect(enqueue(short, { needs: [{ limiter: 'permits:db', amount: 1 }] })).rejects.toMatchObject({
    code: 'fleet_too_old',
    message: expect.stringContaining('old:1 (Bullpen 1.2.3)'),
  })
  await expect(enqueue(short, { services: ['smtp'] })).rejects.toMatchObject({
    code: 'fleet_too_old',
    message: expect.stringContaining("the task depends on a circuit breaker of queue 'rig'"),
  })
  expect((await broker.counts('rig')).waiting).toBe(1)
})

it('a worker counts only while it is alive and has a pool on the queue, and if it does not report the feature', async () => {
  const { addOld, fleet, silence, features } = await stage()
  const admitted = () => features().admit({ queue: 'rig', turn: TURN })
  await fleet.heartbeat(status('new:1', [pool('rig')]))
  await addOld('other:1', 'another')
  await expect(admitted()).resolves.toBeUndefined()
  await addOld('old:1')
  await expect(admitted()).rejects.toMatchObject({ code: 'fleet_too_old' })
  await silence('old:1', 10_000)
  await expect(admitted()).resolves.toBeUndefined()
})

it('the workers are read once for many tasks', async () => {
  const { features, redis } = await stage()
  const checked = features()
  await checked.admit({ queue: 'rig', turn: TURN })
  redis.disconnect()
  expect(checked.admit({ queue: 'rig', turn: TURN })).toBeUndefined()
  expect(checked.admit({ queue: 'rig', turn: undefined })).toBeUndefined()
})

// Tests the report of workers that fall silent without leaving the fleet.
import { randomUUID } from 'node:crypto'
import type { SlotStatus } from '@bullpen/engine'
import { FORGOTTEN_AFTER_MS, SILENT_AFTER_MS } from '@bullpen/engine/internal'
import { expect, it } from 'vitest'
import { fleetRig, pool, status } from '../fleet/fleet.fixture.ts'
import { type LostWorker, reportLostWorkers } from './lost-workers.ts'

const busy = (slot: number): SlotStatus => ({
  ...({ slot, state: 'WORKING', since: 1_700_000_000_500 } as const),
  task: { id: `cpu-${slot}`, task: 'math.square', fencingToken: 1 },
})

it('a worker that falls silent is reported once with its tasks, whoever leads, and again if it is lost again', async () => {
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const { fleet, redis, keys } = await fleetRig({ namespace })
  const twelve = Array.from({ length: 12 }, (_, i) => busy(i + 1))
  await fleet.heartbeat(status('killed', [pool('cpu', twelve), pool('io')]))
  await fleet.heartbeat(status('drained'))
  await fleet.leave('drained')
  const { now: start } = await fleet.workers()
  let now = start
  const leader = () => {
    const lost: LostWorker[] = []
    const report = reportLostWorkers({ redis, namespace, now: () => now, onLost: (each) => lost.push(each) })
    return async () => {
      await report(() => false)
      return lost.splice(0)
    }
  }
  const [first, next] = [leader(), leader()]
  expect(await first()).toEqual([])
  now += SILENT_AFTER_MS + 1_000
  const report = { worker: 'killed', host: 'h', tasks: 12, queues: { cpu: 12, io: 0 } }
  const found = await first()
  expect(found).toMatchObject([report])
  expect(found[0]?.ids).toEqual(twelve.slice(0, 10).map(({ task }) => task?.id))
  expect([await first(), await next()]).toEqual([[], []])
  expect(await redis.pttl(keys.worker('killed'))).toBeGreaterThan(0)

  // It was only frozen, and is killed now.
  await fleet.heartbeat(status('killed'))
  now = (await fleet.workers()).now
  expect(await next()).toEqual([])
  now += SILENT_AFTER_MS + 1_000
  expect(await next()).toMatchObject([{ worker: 'killed', tasks: 0 }])

  now += FORGOTTEN_AFTER_MS
  expect(await leader()()).toEqual([])
})

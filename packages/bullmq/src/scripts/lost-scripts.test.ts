// Redis loses its scripts (SCRIPT FLUSH, a restart) while a broker, a pool and a fleet are at work.
import { privateRedis } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { expect, it, onTestFinished } from 'vitest'
import { openPatientFleet, pool, status } from '../fleet/fleet.fixture.ts'
import { long, setup, short, silent } from '../setup.fixture.ts'

async function stage() {
  const server = await privateRedis()
  await server.start()
  const rig = await setup({ redisUrl: server.url })
  const redis = new Redis(server.url)
  redis.on('error', () => {})
  const fleet = openPatientFleet({ redisUrl: server.url, namespace: rig.namespace, queues: ['rig'], log: silent })
  onTestFinished(async () => {
    redis.disconnect()
    await fleet.close()
  })
  await eventually(() => fleet.commands(1).then(() => true))
  await rig.startPool()
  return { ...rig, server, redis, fleet }
}

type Stage = Awaited<ReturnType<typeof stage>>

/** Runs scripts of every kind: an add, a fetch, an end, reads, a cancel, a heartbeat and a command. */
async function useAll({ broker, enqueue, settled, fleet }: Stage): Promise<void> {
  const [one, two] = [await enqueue(short), await enqueue(long)]
  expect([(await settled(one))?.status, (await settled(two))?.status]).toEqual(['completed', 'completed'])
  const later = await enqueue(long, { delayMs: 3_600_000 })
  expect(await broker.cancel(later, { stoppable: true })).toBe('cancelled')
  expect((await fleet.heartbeat(status('w', [pool('rig')]))).commands).toEqual([])
  expect((await fleet.workers()).workers).toHaveLength(1)
}

it('everything works as before after SCRIPT FLUSH', async () => {
  const all = await stage()
  await useAll(all)
  await all.redis.script('FLUSH')
  await useAll(all)
  expect(await all.broker.counts('rig')).toMatchObject({ completed: 4, cancelled: 2, waiting: 0, active: 0, dead: 0 })
})

it('everything works as before after Redis was killed and started again', async () => {
  const all = await stage()
  await useAll(all)
  await all.server.crash()
  await all.server.start()
  await eventually(() => all.broker.ping().then(() => true))
  await eventually(() => all.fleet.commands(1).then(() => true))
  await useAll(all)
  // What was written last before the crash may be lost.
  const { waiting, active, dead } = await all.broker.counts('rig')
  expect({ waiting, active, dead }).toEqual({ waiting: 0, active: 0, dead: 0 })
})

// Tests that a task names the command, or the state of the workers, that keeps it from running.
import type { TaskId } from '@bullpen/contract'
import { createTaskId } from '@bullpen/contract/internal'
import type { PoolStatus } from '@bullpen/engine'
import { eventually } from '@bullpen/testkit'
import { expect, onTestFinished, test } from 'vitest'
import { openPatientBroker } from '../broker/patient-broker.fixture.ts'
import { fleetRig, pool, status } from '../fleet/fleet.fixture.ts'
import { lockTask } from '../locks/stored-lock.fixture.ts'
import { CLOSED_BY_OUTBOX } from '../outbox/outbox-bounds.ts'
import { silent } from '../setup.fixture.ts'

async function rig() {
  const fleet = await fleetRig()
  const { redisUrl, namespace } = fleet
  const broker = openPatientBroker({
    redisUrl,
    namespace,
    queues: ['cpu', 'io'],
    sizeLimit: 1_000,
    leads: false,
    log: silent,
  })
  onTestFinished(() => broker.close())
  await eventually(() => broker.ping().then(() => true))
  const enqueue = async (): Promise<TaskId> => {
    const [now, random] = [Date.now(), crypto.getRandomValues(new Uint8Array(16))]
    const id = createTaskId('cpu', now, random)
    await broker.enqueue({
      ...{ id, task: 'cpu.burn', version: 1, queue: 'cpu', input: {}, enqueuedAt: now, maxAttempts: 1, priority: 0 },
      correlationId: undefined,
    } as never)
    return id
  }
  return {
    ...fleet,
    enqueue,
    async reason(id: TaskId) {
      return broker.waitsFor((await broker.find(id)) ?? expect.fail())
    },
    /** Reports a worker with this pool on the queue. */
    serve: (given: Partial<PoolStatus> = {}, worker = 'w', draining = false) =>
      fleet.fleet.heartbeat({ ...status(worker, [{ ...pool('cpu'), ...given }]), draining }),
  }
}

let sent = 0
const command = (spec: object) => ({ id: `command-${++sent}`, by: 'ann', spec }) as never

test('a task of a queue that a command has paused or drained says who sent the command, and when', async () => {
  const { fleet, enqueue, reason, serve } = await rig()
  await serve()
  const id = await enqueue()
  const { at } = await fleet.send(command({ action: 'pause', queue: 'cpu' }))
  expect(await reason(id)).toEqual({ kind: 'paused', since: at, by: 'ann' })
  const { at: since } = await fleet.send(command({ action: 'drain', queue: 'cpu', mode: 'soft' }))
  expect(await reason(id)).toEqual({ kind: 'drain', mode: 'soft', since, by: 'ann' })
  await fleet.send(command({ action: 'resume', queue: 'cpu' }))
  expect((await reason(id))?.kind).toBe('slot')
})

test('a task of a queue that another program has paused names nobody, and one of a queue whose outbox is full says so', async () => {
  const { redis, cpu, fleet, enqueue, reason, serve } = await rig()
  await serve()
  const id = await enqueue()
  await fleet.send(command({ action: 'pause', queue: 'cpu' }))
  await fleet.send(command({ action: 'resume', queue: 'cpu' }))
  await redis.hset(cpu.meta, 'paused', 1)
  expect(await reason(id)).toEqual({ kind: 'paused' })
  await redis.hset(cpu.meta, 'paused', CLOSED_BY_OUTBOX)
  expect(await reason(id)).toEqual({ kind: 'outbox' })
})

test('a task waits for the concurrency and the rate that a command has set', async () => {
  const { redis, cpu, fleet, enqueue, reason, serve } = await rig()
  await serve()
  const [first, second] = [await enqueue(), await enqueue()]
  await fleet.send(command({ action: 'limit', queue: 'cpu', concurrency: 1 }))
  expect((await reason(second))?.kind).toBe('slot')
  await redis.lmove(cpu.wait, cpu.active, 'RIGHT', 'LEFT')
  await lockTask(redis, cpu, first, 'token')
  expect(await reason(second)).toEqual({ kind: 'queue_concurrency', limit: 1, ahead: 0 })
  await fleet.send(command({ action: 'limit', queue: 'cpu', concurrency: 'none', rate: { max: 2, per: '1h' } }))
  await redis.set(cpu.limiter, 2, 'PX', 3_600_000)
  const rate = await reason(second)
  expect(rate).toMatchObject({ kind: 'queue_rate', max: 2, perMs: 3_600_000 })
  expect(rate?.kind === 'queue_rate' && rate.until).toBeGreaterThan(Date.now())
})

test.each([
  [{ paused: true }, false, { kind: 'workers_paused', workers: 1 }],
  [{}, true, { kind: 'workers_draining', workers: 1 }],
  [{ notReady: 'no memory' }, false, { kind: 'workers_not_ready', workers: 1, reason: 'no memory' }],
  [{ state: 'ONLINE_RUNNING' }, false, { kind: 'workers_reserved', workers: 1 }],
  [{ busy: 4 }, false, { kind: 'slot', slots: 4, busy: 4, ahead: 0 }],
] as const)('if the only worker reports %j (draining: %s), a task waits for %j', async (given, draining, wait) => {
  const { enqueue, reason, serve } = await rig()
  await serve(given, 'w', draining)
  expect(await reason(await enqueue())).toEqual(wait)
})

test('after the last worker has left or fallen silent, a task says when its queue was last served', async () => {
  const { fleet, silence, redis, keys, enqueue, reason, serve } = await rig()
  const id = await enqueue()
  expect(await reason(id)).toEqual({ kind: 'no_worker' })
  await serve()
  const since = Number(await redis.zscore(keys.served, 'cpu'))
  await fleet.leave('w')
  expect(await reason(id)).toEqual({ kind: 'no_worker', since })
  await serve()
  await silence('w', 7_000)
  expect(await reason(id)).toMatchObject({ kind: 'no_worker', since: expect.any(Number) })
  // A worker that drains does not serve the queue any more, and a queue that nobody has served for a month is forgotten.
  await redis.zadd(keys.served, 5, 'cpu')
  await serve({}, 'v', true)
  expect(await redis.zscore(keys.served, 'cpu')).toBeNull()
})

test('at most 1,000 tasks ahead of a task are counted', async () => {
  const { redis, cpu, enqueue, reason, serve } = await rig()
  await serve()
  const id = await enqueue()
  const others = Array.from({ length: 1_200 }, (_, i) => `other-${i}`)
  await redis.rpush(cpu.wait, ...others.slice(0, 999))
  expect(await reason(id)).toMatchObject({ kind: 'slot', ahead: 999 })
  await redis.rpush(cpu.wait, ...others.slice(999))
  expect(await reason(id)).toMatchObject({ kind: 'slot', ahead: 1_000 })
})

// Ends everything that a program has left, and finds what remains that should not.
import type { TaskId } from '@bullpen/contract'
import type { CommandSpec } from '@bullpen/contract/internal'
import { unlockTasks } from '../../locks/stored-lock.fixture.ts'
import { runnerOn } from '../../scripts/script.ts'
import { QUEUE, task } from '../index-model/worker.fixture.ts'
import { defineLimits } from '../turns/key-limits.ts'
import { type FuzzWorld, OTHER_QUEUE } from './fuzz-world.fixture.ts'
import { passDelays, passThrottles } from './operations/housekeeping.fixture.ts'

const BY = 'ann'
/** Each round ends what the round before has started, and delivers what follows from it. */
const MAX_ROUNDS = 40

const WITHOUT_LIMITS: readonly CommandSpec[] = [
  { action: 'resume', queue: QUEUE },
  { action: 'limit', queue: QUEUE, concurrency: 'none', rate: 'none', concurrencyPerKey: 'none', ratePerKey: 'none' },
  { action: 'limit', queue: QUEUE, permits: { db: 'none', gpu: 'none' }, maxTasks: 'none' },
  { action: 'limit', queue: QUEUE, concurrencyKey: 'key 1', concurrency: 'none' },
  { action: 'limit', queue: QUEUE, concurrencyKey: 'key 2', rate: 'none' },
  { action: 'limit', queue: QUEUE, task: task.name, concurrency: 'none' },
  { action: 'breaker', queue: QUEUE, service: 'smtp', to: 'closed' },
]

/** Ends everything. Calls `check` after each round, and returns what it finds, or what is left. */
export async function finish(world: FuzzWorld, check: () => Promise<readonly string[]>): Promise<readonly string[]> {
  const { queue, redis, keys, fleet, broker, leader, held, late } = world
  for (const [i, spec] of WITHOUT_LIMITS.entries()) await fleet.send({ id: `finish-${i}`, spec, by: BY })
  await defineLimits(runnerOn(redis), keys, { keyLimits: undefined, capacities: {} }, { replaces: true })
  await queue.resume()
  for (const id of ['s0', 's1']) await queue.removeJobScheduler(id)
  for (const { name } of (await broker.schedules.list()).map(({ record }) => record))
    await broker.schedules.remove(name)
  for (const id of world.groups) await broker.groups.seal(id).catch(() => {})
  for (const { id } of world.runs) await broker.runs.cancel(id, BY).catch(() => {})
  late.splice(0)
  for (let round = 0; round < MAX_ROUNDS; round++) {
    await passDelays(world)
    await passThrottles(world)
    await leader.hurry([QUEUE, OTHER_QUEUE])
    for (const name of [QUEUE, OTHER_QUEUE]) await leader.visit(name, 0)
    await endAll(world)
    const found = await check()
    if (found.length > 0) return found
    if ((await leftIn(world)).length === 0) return [...(await residueIn(world))]
  }
  return [`after ${MAX_ROUNDS} rounds, there is ${await leftIn(world)}; held are ${held.map(({ job }) => job.id)}`]
}

async function endAll(world: FuzzWorld): Promise<void> {
  const { redis, keys, broker, held, end, fetch, checkForLost, unlocked } = world
  const complete = () =>
    end(
      1,
      () => ({ kind: 'completed', output: { n: 1 } }),
      async () => 'done',
    ).catch(() => true)
  while (held.length > 0) await complete()
  // The attempts whose ends were refused, or whose workers were lost.
  for (const id of await redis.lrange(keys.active, 0, -1)) {
    unlocked.add(id)
    await unlockTasks(redis, keys, id)
  }
  await checkForLost()
  while (await fetch('bullpen'));
  while (held.length > 0) await complete()
  for (const status of ['waiting', 'scheduled', 'retrying'] as const) {
    const { tasks } = await broker.list({ queue: OTHER_QUEUE, status, limit: 200, cursor: undefined })
    for (const { id } of tasks) await broker.cancel(id as TaskId, { stoppable: true })
  }
}

/** Returns what has not ended or was not delivered. */
async function leftIn({ broker, redis, keys, groups, runs }: FuzzWorld): Promise<readonly string[]> {
  const { waiting, scheduled, retrying, active } = await broker.counts(QUEUE)
  // As in BullMQ, a parent waits on for a child that has failed.
  const parents = await redis.zrange(keys.waitingChildren, '0', '-1')
  const left = Object.entries({ waiting: waiting - parents.length, scheduled, retrying, active }).flatMap(
    ([status, count]) => (count > 0 ? [`${count} ${status}`] : []),
  )
  for (const id of parents) if ((await redis.scard(keys.dependencies(id))) === 0) left.push(`${id} waits for no child`)
  const entries = await redis.xlen(keys.outbox)
  if (entries > 0) left.push(`${entries} entries in the outbox`)
  for (const id of groups) {
    const state = (await broker.groups.find(id))?.state
    if (state !== 'ended' && state !== undefined) left.push(`${id} is ${state}`)
  }
  for (const { id } of runs) {
    const state = (await broker.runs.find(id))?.state
    if (state !== 'ended' && state !== undefined) left.push(`${id} is ${state}`)
  }
  return left
}

/** Returns the keys that are empty, and therefore gone, if nothing waits or runs. */
async function residueIn({ redis, keys, fetch }: FuzzWorld): Promise<readonly string[]> {
  await fetch('bullpen')
  const { lanes, turns, turnState, blockedLanes, activeByKey, inUse, waitedNeeds, keyPasses } = keys
  const empty = [lanes, turns, turnState, blockedLanes, activeByKey, inUse, waitedNeeds, keyPasses, keys.apiKeyTasks]
  const left: string[] = []
  for (const key of empty) if ((await redis.exists(key)) === 1) left.push(`${key} is left`)
  const patterns = ['lane:*', 'lane-priorities:*', 'need-waiters:*'].map((pattern) => keys.base + pattern)
  for (const pattern of patterns) left.push(...(await redis.keys(pattern)).map((key) => `${key} is left`))
  return left
}

// Drill `exactness`: many concurrency keys may run 1 to 5 tasks at once, and each has more tasks than that. Some tasks also
// need permits. While keys are at their limits, workers are killed, and others are frozen for longer than their locks last.
// Redis is killed once and started again.
import { blockingConnection } from '@bullpen/bullmq/internal'
import type { Broker } from '@bullpen/engine'
import type { Drill } from '../drill.ts'
import { type DrillSetup, withDrillSetup } from '../environment/drill-setup.ts'
import { openRestartableRedis, type RestartableRedis } from '../environment/restartable-redis.ts'
import { exactnessFigures } from '../exactness/exactness-figures.ts'
import { type Inflicted, inflictAll } from '../exactness/faults.ts'
import { limitsOf, PLANS, type Plan, type PlannedTask, taskOf } from '../exactness/plan.ts'
import { inBurst } from '../fairness/burst.ts'
import type { Figures } from '../figures/figures.ts'
import { figuresOf } from '../figures/tasks.ts'
import { holdsWithin } from '../holds-within.ts'
import { enqueueOne } from '../ledger/load.ts'
import { type Random, randomFrom } from '../ledger/random.ts'
import { limitedWork } from '../programs/catalogue.ts'

const { queue } = limitedWork
const SILENT = { debug() {}, info() {}, warn() {}, error() {} }
/** How long a producer repeats an enqueue while Redis is started again. */
const ACCEPTED_WITHIN_MS = 30_000
const WAVE_WITHIN_MS = 120_000
const HELD_WITHIN_MS = 30_000
const IDLE_WITHIN_MS = 120_000

export const exactness: Drill = {
  name: 'exactness',
  target(scale) {
    const { keys, kills, freezes } = PLANS[scale]
    return {
      text: `${keys} concurrency keys with limits of 1 to 5, and permits; ${kills} kills while keys are at their limits, ${freezes} freezes longer than a lock, Redis killed once: no limit exceeded, except by what a frozen worker runs after its locks have expired; no task lost, none run again after it has completed, no attempt used up except by requested retries; at the end, no place or permit held; nothing repaired by the leader${scale === 'full' ? '; at least half of the keys reach their limits' : ''}`,
      atMost: {
        ...{ aboveLimit: 0, ranAfterEnd: 0, attemptsUsed: 0, placesHeld: 0, repairs: 0, faultsWithoutEffect: 0 },
        // How many keys reach their limits depends on how fast the workers start tasks, and a small run has few tasks of each key.
        ...(scale === 'full' && { limitsNotReached: keys / 2 }),
      },
    }
  },
  known: undefined,
  comparable: false, // plain BullMQ has no limits for each key
  async run(scale, seed, system) {
    const plan = PLANS[scale]
    const redis = await openRestartableRedis([queue])
    const act = (setup: DrillSetup) => disturb(plan, randomFrom(seed), setup, redis)
    return withDrillSetup(system, { pools: { [queue]: plan.slots } }, act, async () => redis)
  },
}

async function disturb(plan: Plan, random: Random, setup: DrillSetup, redis: RestartableRedis): Promise<Figures> {
  const { broker, fleet, untilIdle, records } = setup
  const limits = limitsOf(plan)
  await Promise.all(Array.from({ length: plan.processes }, () => fleet.start()))
  let isOver = false
  const disturbed = async (): Promise<Inflicted> => {
    try {
      const inflicted = await inflictAll({ plan, queue, limits, random, setup, redis })
      // If the places were stored under another name, the figure would be 0 whatever happens.
      const areHeld = await holdsWithin(HELD_WITHIN_MS, async () => (await heldIn(setup)).every((held) => held > 0))
      if (!areHeld) throw new Error('no places or permits are held while tasks run')
      return inflicted
    } finally {
      isOver = true
    }
  }
  const enqueued = enqueueInWaves(broker, plan, () => !isOver)
  const [accepted, { faultsWithoutEffect, interruptions, ...disturbance }] = await Promise.all([enqueued, disturbed()])
  await untilIdle(IDLE_WITHIN_MS)
  const { drift: repairs } = await broker.totals(queue)
  const { effects, ends, ...rest } = await records(accepted)
  const asksForRetry = (of: number): boolean => taskOf(of, plan).input.again?.by === 'retry'
  return {
    ...figuresOf({ accepted, effects, ends, ...rest, interruptions, exits: [] }),
    ...exactnessFigures({ effects, ends, interruptions, limits, disturbance, asksForRetry }),
    faultsWithoutEffect,
    placesHeld: (await heldIn(setup)).reduce((sum, held) => sum + held, 0),
    repairs,
  }
}

/** Enqueues the tasks of all keys, and further ones as long as `more` returns true. The keys always have tasks that wait. */
async function enqueueInWaves(broker: Broker, plan: Plan, more: () => boolean): Promise<readonly string[]> {
  const { keys, keysTogether, tasksPerKey } = plan
  const wave = keysTogether * tasksPerKey
  const fewWait = async (): Promise<boolean> => {
    const counts = await broker.counts(queue).catch(() => undefined)
    return counts !== undefined && counts.waiting < wave / 2
  }
  const accepted: string[] = []
  for (let first = 0; first < keys * tasksPerKey || more(); first += wave) {
    if (!(await holdsWithin(WAVE_WITHIN_MS, fewWait)))
      throw new Error(`more than half of a wave of tasks still waits after ${WAVE_WITHIN_MS} ms`)
    accepted.push(...(await inBurst(wave, (n) => enqueueUntilAccepted(broker, taskOf(first + n, plan)))))
  }
  return accepted
}

/** Enqueues the task again and again until it is accepted. A task whose producer got no reply may have been stored as well. */
async function enqueueUntilAccepted(broker: Broker, { definition, input, call }: PlannedTask): Promise<string> {
  let id: string | undefined
  await holdsWithin(ACCEPTED_WITHIN_MS, async () => {
    id = await enqueueOne(broker, definition, input, call).catch(() => undefined)
    return id !== undefined
  })
  if (id === undefined) throw new Error(`Redis has not accepted a task within ${ACCEPTED_WITHIN_MS} ms`)
  return id
}

/** Returns how many places of the concurrency keys are held, and how many permits. */
async function heldIn({ redisUrl, namespace }: DrillSetup): Promise<readonly number[]> {
  const redis = blockingConnection(redisUrl, SILENT)
  const held = async (name: string): Promise<number> => {
    const counts = await redis.zrange(`{${namespace}.${queue}}:${queue}:${name}`, '0', '-1', 'WITHSCORES')
    return counts.reduce((sum, count, n) => (n % 2 === 0 ? sum : sum + Number(count)), 0)
  }
  try {
    return await Promise.all(['active-by-key', 'in-use'].map(held))
  } finally {
    redis.disconnect()
  }
}

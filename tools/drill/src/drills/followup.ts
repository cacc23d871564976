// Drills `followup` and `followup-cluster`: the members of many groups are bookings. Each of them has a follow-up in another queue, some
// register a compensation, and each group has a follow-up, too. The queues of the follow-ups keep only their last task. Workers, the
// leader and API processes are killed at random times. In `followup`, Redis is killed once and started again. In `followup-cluster`, the
// same happens to the node with the bookings, and the queues are on different nodes of a Redis Cluster.
import { setTimeout as sleep } from 'node:timers/promises'
import { blockingConnection } from '@bullpen/bullmq/internal'
import type { GroupId } from '@bullpen/contract'
import type { Broker } from '@bullpen/engine'
import type { Drill } from '../drill.ts'
import { type DrillApi, startApi } from '../environment/drill-api.ts'
import { type DrillSetup, type Records, withDrillSetup } from '../environment/drill-setup.ts'
import { openCluster } from '../environment/redis-cluster.ts'
import { openRestartableRedis, type RestartableRedis } from '../environment/restartable-redis.ts'
import type { Figures } from '../figures/figures.ts'
import { type Bookings, fails, type SubmittedGroup, submitSteadily } from '../followup/bookings.ts'
import { runsOf } from '../followup/runs-of.ts'
import { holdsWithin } from '../holds-within.ts'
import { restartsOf } from '../ledger/attempts.ts'
import { momentsIn, pick, type Random, randomFrom, shuffled } from '../ledger/random.ts'
import { after, booking, closing, undo } from '../programs/catalogue.ts'
import type { Scale } from '../report.ts'

interface Plan extends Bookings {
  readonly processes: number
  readonly apis: number
  readonly concurrency: number
  /** How many faults of each kind there are. */
  readonly faults: Readonly<Record<Fault, number>>
}
type Fault = 'worker' | 'leader' | 'api' | 'redis'

const PLANS: Readonly<Record<Scale, Plan>> = {
  small: {
    ...{ processes: 2, apis: 1, concurrency: 10 },
    // The slots are always busy, so that a kill interrupts some bookings.
    ...{ groups: 8, members: 50, ratePerSecond: 80, taskMs: 300 },
    faults: { worker: 1, leader: 1, api: 1, redis: 1 },
  },
  full: {
    ...{ processes: 4, apis: 2, concurrency: 25 },
    ...{ groups: 200, members: 100, ratePerSecond: 400, taskMs: 100 },
    faults: { worker: 6, leader: 6, api: 6, redis: 1 },
  },
}

const DONE_WITHIN_MS = 120_000
const SILENT = { debug() {}, info() {}, warn() {}, error() {} }

/** On a cluster, the first three are on different nodes. */
const QUEUES = [booking.queue, after.queue, closing.queue, undo.queue]

export const followup: Drill = followUpsOn('followup', () => openRestartableRedis(QUEUES))
export const followupCluster: Drill = followUpsOn('followup-cluster', async () => {
  const cluster = await openCluster(QUEUES.slice(0, 3), { isPersistent: true })
  return { ...cluster, queues: QUEUES, restart: () => cluster.restartNode(booking.queue) }
})

function followUpsOn(name: string, open: () => Promise<RestartableRedis>): Drill {
  return {
    name,
    target: (scale) => ({
      text: `${PLANS[scale].groups} groups of ${PLANS[scale].members} tasks, although workers, leaders, API processes and Redis are killed: each task and each group is followed by exactly one task; a task is compensated once if it fails, and not if it completes; the groups have ended with the right counts, and the outboxes are empty`,
      atMost: { compensationsWrong: 0, groupMiscounted: 0, outboxLeft: 0 },
    }),
    known: undefined,
    comparable: false, // it has no follow-up tasks
    async run(scale, seed, system) {
      const plan = PLANS[scale]
      const redis = await open()
      const pools = Object.fromEntries(QUEUES.map((queue) => [queue, plan.concurrency]))
      const act = (setup: DrillSetup) => disturb(plan, randomFrom(seed), setup, redis)
      return withDrillSetup(system, { pools }, act, async () => redis)
    },
  }
}

async function disturb(plan: Plan, random: Random, setup: DrillSetup, redis: RestartableRedis): Promise<Figures> {
  const { broker, fleet, redisUrl, namespace, records } = setup
  const starting = Array.from({ length: plan.apis }, () => startApi({ redisUrl, namespace }))
  try {
    const apis = await Promise.all(starting)
    await Promise.all(Array.from({ length: plan.processes }, () => fleet.start()))
    const submitted = submitSteadily(
      plan,
      apis.map((api) => api.client()),
    )
    const disturbed = inflictAll(plan, random, setup, apis, redis)
    const [groups] = await Promise.all([submitted, disturbed])
    const { outboxLeft } = await settled(setup, groups)
    const accepted = groups.flatMap(({ ids }) => ids)
    return {
      ...followUpFigures(plan, accepted, await addedTo(broker), await records(accepted)),
      groupMiscounted: await miscountedIn(broker, plan, groups),
      outboxLeft,
    }
  } finally {
    await Promise.all(starting.map(async (api) => (await api).close()))
  }
}

/** Inflicts the faults in a random order at random moments. Resolves when every process that was killed has been replaced. */
async function inflictAll(
  plan: Plan,
  random: Random,
  { fleet, leader, leads }: DrillSetup,
  apis: readonly DrillApi[],
  redis: RestartableRedis,
): Promise<void> {
  const replacements: Promise<unknown>[] = []
  const kill = async (worker = pick(fleet.workers, random)): Promise<void> => {
    await worker.kill()
    replacements.push(fleet.start())
  }
  const inflict: Readonly<Record<Fault, () => Promise<void>>> = {
    worker: () => kill(),
    async leader() {
      const led = await Promise.all(apis.map((api) => leads(api.pid())))
      const api = apis.find((_, n) => led[n])
      if (api === undefined) await kill(await leader())
      else replacements.push(api.replace())
    },
    async api() {
      replacements.push(pick(apis, random).replace())
    },
    redis: () => redis.restart(),
  }
  const { groups, members, ratePerSecond, faults } = plan
  const kinds = shuffled(
    Object.entries(faults).flatMap(([fault, count]) => Array<Fault>(count).fill(fault as Fault)),
    random,
  )
  const startedAt = performance.now()
  const moments = momentsIn((groups * members * 1_000) / ratePerSecond, kinds.length, random)
  for (const [n, fault] of kinds.entries()) {
    await sleep(Math.max(0, startedAt + (moments[n] ?? 0) - performance.now()))
    // Every worker may be dead before the first replacement is ready.
    if (fleet.workers.length === 0) await Promise.all(replacements)
    await inflict[fault]()
  }
  await Promise.all(replacements)
}

/** Waits until every group has ended and nothing is left to do, and returns how many entries the outboxes then have. */
async function settled({ broker, redisUrl, namespace, untilIdle }: DrillSetup, groups: readonly SubmittedGroup[]) {
  const redis = blockingConnection(redisUrl, SILENT)
  const left = async (): Promise<number> => {
    const totals = await Promise.all(QUEUES.map((queue) => broker.totals(queue)))
    const own = await Promise.all(groups.map(({ id }) => redis.xlen(`{${namespace}:${id}}:outbox`)))
    return [...totals.map(({ outbox }) => outbox.entries), ...own].reduce((sum, entries) => sum + entries, 0)
  }
  const haveEnded = async (): Promise<boolean> => (await broker.groups.list(1)).length === 0
  try {
    await holdsWithin(DONE_WITHIN_MS, haveEnded)
    await holdsWithin(DONE_WITHIN_MS, async () => (await left()) === 0)
    await untilIdle(DONE_WITHIN_MS)
    return { outboxLeft: await left() }
  } finally {
    redis.disconnect()
  }
}

type Added = Readonly<Record<'bookings' | 'after' | 'closing' | 'undo', number>>

/** Returns how many tasks were ever added to each queue, whatever has become of them. */
async function addedTo(broker: Broker): Promise<Added> {
  const added = async ({ queue }: { readonly queue: string }): Promise<number> => (await broker.totals(queue)).accepted
  return {
    bookings: await added(booking),
    after: await added(after),
    closing: await added(closing),
    undo: await added(undo),
  }
}

function followUpFigures(
  { groups, members }: Plan,
  accepted: readonly string[],
  added: Added,
  { effects, ends }: Records,
): Omit<Figures, 'outboxLeft'> {
  const numbers = Array.from({ length: groups * members }, (_, of) => of)
  const followUps = runsOf(effects, after.queue, numbers)
  const closings = runsOf(
    effects,
    closing.queue,
    Array.from({ length: groups }, (_, group) => group),
  )
  const failing = numbers.filter(fails)
  const undone = runsOf(effects, undo.queue, failing)
  const expected = new Map(accepted.map((id, of) => [id, fails(of) ? 'dead' : 'completed']))
  const beyond = (count: number, most: number): number => Math.max(0, count - most)
  return {
    accepted: accepted.length,
    lost: accepted.filter((id) => !ends.has(id)).length + followUps.missing + closings.missing,
    duplicated:
      followUps.extra +
      closings.extra +
      beyond(added.bookings, numbers.length) +
      beyond(added.after, numbers.length) +
      beyond(added.closing, groups),
    eventsMissed: 0,
    failed: accepted.filter((id) => ends.has(id) && ends.get(id)?.status !== expected.get(id)).length,
    followUps: followUps.run + closings.run,
    compensated: undone.run,
    compensationsWrong: undone.missing + undone.extra + beyond(added.undo, failing.length),
    effectsRepeated: effects.filter(({ what }) => what === 'end').length - new Set(endedIds(effects)).size,
    restarted: restartsOf(effects),
    attemptsUsed: 0,
    interrupted: 0,
    recoveryP99Ms: undefined,
    exitSlowestMs: undefined,
    exitsNotZero: 0,
  }
}

function endedIds(effects: Records['effects']): readonly string[] {
  return effects.flatMap(({ what, id }) => (what === 'end' ? [id] : []))
}

/** Returns by how many members the counts of the groups differ from the ends that the members should have. */
async function miscountedIn(broker: Broker, { members }: Plan, groups: readonly SubmittedGroup[]): Promise<number> {
  let off = 0
  for (const [n, { id }] of groups.entries()) {
    const dead = Array.from({ length: members }, (_, member) => n * members + member).filter(fails).length
    const group = await broker.groups.find(id as GroupId)
    const ends = group?.ended === undefined ? { completed: 0, dead: 0 } : group.ends
    off += Math.abs(ends.completed - (members - dead)) + Math.abs(ends.dead - dead)
  }
  return off
}

// Drill `retry-dead`: one of twelve kinds of dead tasks is retried by filter while the queue works. The API that has accepted the
// request is killed, and so are workers, among them the leaders that carry out the request.
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { createTaskId } from '@bullpen/contract/internal'
import type { Broker } from '@bullpen/engine'
import { newTask } from '@bullpen/engine/internal'
import type { Drill } from '../drill.ts'
import { type DrillApi, startApi } from '../environment/drill-api.ts'
import { type DrillSetup, withDrillSetup } from '../environment/drill-setup.ts'
import type { Figures } from '../figures/figures.ts'
import { figuresOf } from '../figures/tasks.ts'
import { holdsWithin } from '../holds-within.ts'
import { interruptedBy } from '../ledger/attempts.ts'
import { enqueueSteadily } from '../ledger/load.ts'
import { momentsIn, pick, type Random, randomFrom } from '../ledger/random.ts'
import { rank } from '../ledger/ranks.ts'
import { miscounted } from '../ledger/worker-metrics.ts'
import { broken, ERRORS } from '../programs/catalogue.ts'
import { retryFigures } from '../retry-dead/retry-figures.ts'

const PLANS = {
  small: { processes: 2, concurrency: 10, dead: 300, selected: 200, rate: 80, kills: 1, loadPerSecond: 40 },
  full: { processes: 3, concurrency: 25, dead: 100_000, selected: 90_000, rate: 2_000, kills: 6, loadPerSecond: 100 },
} as const
type Plan = (typeof PLANS)[keyof typeof PLANS]

const [SELECTED] = ERRORS
const COUNT_MS = 100
const COUNTS = 21
const RECOVERY_MS = 10_000
/** How long a retry pauses at most when the leader that carries it out has died: the lease, and the next leader's first round. */
const LEADER_LOST_MS = 6_000
const TASK_MS = 200
const SAMPLE_MS = 1_000
const ENQUEUED_AT_ONCE = 1_000
const WITHIN_MS = 120_000

export const retryDead: Drill = {
  name: 'retry-dead',
  target(scale) {
    const { dead, selected, rate, kills, concurrency } = PLANS[scale]
    const most = kills * concurrency
    return {
      text: `${dead} dead tasks of ${ERRORS.length} kinds are counted in <= ${COUNT_MS} ms; ${selected} of one kind are retried at ${rate} per second (and <= ${LEADER_LOST_MS / 1_000} s longer for each leader killed): each once, as its history and the audit line say; 0 others changed; restarts <= kills x concurrency (${most}), recovery p99 <= 10 s`,
      atMost: {
        countMs: COUNT_MS,
        retryMs: (selected / rate) * 1_000 + leaderKills(PLANS[scale]) * LEADER_LOST_MS,
        historiesWrong: 0,
        othersChanged: 0,
        auditOff: 0,
        unaccounted: 0,
        attemptsUsed: 0,
        miscounted: 0,
        restarted: most,
        effectsRepeated: most,
        recoveryP99Ms: RECOVERY_MS,
      },
    }
  },
  known: undefined,
  comparable: false, // it retries all failed jobs of a queue, at no particular rate, and keeps no history
  run: (scale, seed, system) =>
    withDrillSetup(system, { pools: { [broken.queue]: PLANS[scale].concurrency } }, (setup) =>
      retryWhileKilled(PLANS[scale], setup, randomFrom(seed)),
    ),
}

/** Every second victim is the leader. */
function leaderKills({ kills }: Plan): number {
  return Math.ceil(kills / 2)
}

async function retryWhileKilled(plan: Plan, setup: DrillSetup, random: Random): Promise<Figures> {
  const { broker, fleet, redisUrl, namespace, untilIdle } = setup
  const { queue } = broken
  await Promise.all(Array.from({ length: plan.processes }, () => fleet.start()))
  const starting = startApi({ redisUrl, namespace })
  try {
    const { selected, others } = await enqueueBroken(broker, plan)
    const api = await starting
    await holdsWithin(WITHIN_MS, async () => (await broker.counts(queue)).dead === plan.dead)
    const countMs = await medianCountMs(api)
    let isRetrying = true
    const input = () => ({ ms: TASK_MS, listens: false })
    const load = { tasks: 0, more: () => isRetrying, ratePerSecond: plan.loadPerSecond, input }
    const enqueued = enqueueSteadily(broker, load)
    const fingerprint =
      (await api.client().countDead({ queue })).find(({ code }) => code === SELECTED)?.fingerprint ?? ''
    const { id } = await api.client().retryDead({ queue, fingerprint, rate: plan.rate, by: 'drill' })
    const replaced = api.replace()
    const changed = async (): Promise<number> => (await broker.deadProgress(id))?.changed ?? 0
    const isDone = async (): Promise<boolean> => (await broker.deadProgress(id))?.doneAt !== undefined
    const rates = sampledRates(changed, () => isRetrying)
    const deaths = await killWhile(plan, setup, api, random, changed)
    await replaced
    await holdsWithin(WITHIN_MS, isDone)
    isRetrying = false
    const accepted = [...selected, ...(await enqueued)]
    await untilIdle(WITHIN_MS)
    const request = await api.client().deadTaskRequest(id)
    const kinds = await broker.countDead(queue)
    const { drift, unaccounted } = await broker.totals(queue)
    const { effects, ends, counts, ...rest } = await setup.records([...accepted, ...others])

    const isOther = new Set(others)
    const isSelected = new Set(selected)
    const again = effects.filter(
      ({ id, fencingToken }) => !isOther.has(id) && (fencingToken > 1 || !isSelected.has(id)),
    )
    const interruptions = deaths.flatMap(({ worker, at }) => interruptedBy(again, worker, at))
    return {
      ...figuresOf({
        ...rest,
        ...{ accepted, effects: again, interruptions, exits: [] },
        ends: new Map([...ends].filter(([each]) => !isOther.has(each))),
      }),
      miscounted: counts && miscounted(counts, effects, ends),
      unaccounted: Math.abs(unaccounted) + drift,
      countMs,
      retryMs: Date.parse(request.doneAt ?? '') - Date.parse(request.requestedAt),
      retriedPerSecond: rank(
        (await rates).filter((rate) => rate > 0),
        0.5,
      ),
      ...retryFigures({
        ...{ selected, others, ends, request, audit: api.audit() },
        expected: new Map(ERRORS.slice(1).map((code, n) => [code, othersOf(plan, n)])),
        counted: new Map(kinds.map(({ code, count }) => [code, count])),
      }),
    }
  } finally {
    await (await starting).close()
  }
}

/** Returns how many tasks there are of the n-th kind that the request does not select. */
function othersOf({ dead, selected }: Plan, n: number): number {
  const kinds = ERRORS.length - 1
  return Math.floor((dead - selected) / kinds) + (n < (dead - selected) % kinds ? 1 : 0)
}

/** Enqueues the tasks of all kinds in turn, as far as each kind goes. */
async function enqueueBroken(broker: Broker, plan: Plan) {
  const errors = ERRORS.flatMap((error, n) => Array(n === 0 ? plan.selected : othersOf(plan, n - 1)).fill(error))
  const ids = { selected: [] as string[], others: [] as string[] }
  for (let from = 0; from < errors.length; from += ENQUEUED_AT_ONCE) {
    const now = Date.now()
    const tasks = errors.slice(from, from + ENQUEUED_AT_ONCE).map((error, i) => {
      const id = createTaskId(broken.queue, now, randomBytes(10))
      ids[error === SELECTED ? 'selected' : 'others'].push(id)
      return newTask(broken, { error, customer: from + i }, {}, { id, enqueuedAt: now, correlationId: undefined })
    })
    await broker.enqueueBulk(tasks)
  }
  return ids
}

/** Returns how long the API takes to count the dead tasks by kind of error, as the median of several calls. */
async function medianCountMs(api: DrillApi): Promise<number> {
  const client = api.client()
  const times: number[] = []
  while (times.length < COUNTS) {
    const startedAt = performance.now()
    await client.countDead({ queue: broken.queue })
    times.push(performance.now() - startedAt)
  }
  return Math.round((rank(times, 0.5) ?? Number.NaN) * 10) / 10
}

/** Resolves with how many tasks were retried in each second. */
async function sampledRates(changed: () => Promise<number>, isOn: () => boolean): Promise<readonly number[]> {
  const rates: number[] = []
  let [last, at] = [0, performance.now()]
  while (isOn()) {
    await sleep(SAMPLE_MS)
    const [now, sampledAt] = [await changed(), performance.now()]
    rates.push(Math.round(((now - last) * 1_000) / (sampledAt - at)))
    ;[last, at] = [now, sampledAt]
  }
  return rates
}

/** Kills a worker and starts another one whenever a random number of tasks has been retried. Resolves when all of them are ready. */
async function killWhile(
  plan: Plan,
  { fleet, leads, leader }: DrillSetup,
  api: DrillApi,
  random: Random,
  changed: () => Promise<number>,
): Promise<readonly { readonly worker: string; readonly at: number }[]> {
  const replacements: Promise<unknown>[] = []
  const deaths: { readonly worker: string; readonly at: number }[] = []
  for (const [n, retried] of momentsIn(plan.selected, plan.kills, random).entries()) {
    await holdsWithin(WITHIN_MS, async () => (await changed()) >= retried)
    const isForLeader = n % 2 === 0
    if (isForLeader && (await leads(api.pid()))) {
      await api.replace()
      continue
    }
    // Every worker may be dead before the first replacement is ready.
    if (fleet.workers.length === 0) await replacements.at(-1)
    const picked = pick(fleet.workers, random)
    const victim = (isForLeader ? await leader() : undefined) ?? picked
    deaths.push({ worker: victim.name, at: await victim.kill() })
    replacements.push(fleet.start())
  }
  await Promise.all(replacements)
  return deaths
}

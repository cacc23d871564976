// Drill `fairness`: one concurrency key has a long backlog when the tasks of many other keys arrive. The keys take turns, so that the
// others do not wait for the backlog. This happens twice, with a tenth of the backlog and with the whole backlog.
import type { Drill } from '../drill.ts'
import { type DrillSetup, openRedis, withDrillSetup } from '../environment/drill-setup.ts'
import type { System } from '../environment/fleet.ts'
import { inBurst } from '../fairness/burst.ts'
import { type Arrival, fairnessFigures } from '../fairness/fairness-figures.ts'
import { measureGroupmq } from '../fairness/groupmq.ts'
import { NOISY_KEY, otherKey, PLANS, type Plan } from '../fairness/plan.ts'
import type { Figures } from '../figures/figures.ts'
import { figuresOf } from '../figures/tasks.ts'
import { holdsWithin } from '../holds-within.ts'
import { enqueueOne } from '../ledger/load.ts'
import { tenantWork, type Work, work } from '../programs/catalogue.ts'

/** How many tasks each slot has run when the other keys' tasks arrive, so that the workers run at full speed. */
const RUN_BEFORE = 5
/** The wait of the other keys is compared with the time that all slots need for their tasks alone. */
const TIMES_ALONE = 2
const LEAST_WAIT_MS = 1_000
/** By how much the wait may differ between a tenth of the backlog and the whole backlog. */
const GROWTH_MS = 500
const RUNNING_WITHIN_MS = 60_000
const IDLE_WITHIN_MS = 300_000
const END_WITHIN_MS = 30_000

export const fairness: Drill = {
  name: 'fairness',
  target(scale) {
    const { processes, slots, backlog, keys, tasksPerKey, taskMs } = PLANS[scale]
    const alone = (keys * tasksPerKey * taskMs) / (processes * slots)
    const waitMs = Math.max(LEAST_WAIT_MS, TIMES_ALONE * alone)
    // A task waits for at most one turn of the noisy key before each turn of its own key. The key's first turn may come after two of them.
    const most = tasksPerKey + 1
    return {
      text: `${keys} keys with ${tasksPerKey} tasks each arrive while another key has ${backlog} waiting: at most ${most} tasks of that key start between the enqueue and the start of any of theirs; theirs wait p99 <= ${waitMs} ms (all slots need ${alone} ms for them), and at most ${GROWTH_MS} ms longer than behind a tenth of the backlog; every task runs once, and metrics equal the ledger`,
      atMost: {
        ...{ restarted: 0, effectsRepeated: 0, attemptsUsed: 0, miscounted: 0 },
        ...{ noisyStartsMost: most, unopposed: 0, waitP99Ms: waitMs, waitGrowthMs: GROWTH_MS },
      },
    }
  },
  known: undefined,
  comparable: true, // first in, first out
  others: { groupmq: (scale) => measureGroupmq(PLANS[scale]) },
  run: (scale, _seed, system) => takeTurns(PLANS[scale], system),
}

function takeTurns(plan: Plan, system: System): Promise<Figures> {
  // A plain BullMQ Worker knows nothing of turns, so its tasks are in a queue without turns.
  const definition = system === 'bullpen' ? tenantWork : work
  const { queue } = definition
  return withDrillSetup(
    system,
    { pools: { [queue]: plan.slots } },
    async (setup) => {
      const tenth = await arrive(setup, definition, { ...plan, backlog: plan.backlog / 10 })
      const whole = await arrive(setup, definition, plan)
      const accepted = [tenth, whole].flatMap(({ noisy, others }) => [...noisy, ...others])
      const records = await setup.records(accepted)
      return {
        ...figuresOf({ accepted, ...records, interruptions: [], exits: [] }),
        ...fairnessFigures({ tenth, whole, ...records }),
      }
    },
    async () => ({ ...(await openRedis()), queues: [queue] }),
  )
}

/** Resolves when all tasks have ended, and the workers have shut down. */
async function arrive(setup: DrillSetup, definition: Work, plan: Plan): Promise<Arrival> {
  const { broker, fleet, effects, untilIdle } = setup
  const { processes, slots, backlog, keys, tasksPerKey, taskMs } = plan
  const enqueue = (concurrencyKey: string) =>
    enqueueOne(broker, definition, { ms: taskMs, listens: false }, { concurrencyKey })
  const before = new Set(await inBurst(backlog, () => enqueue(NOISY_KEY)))
  const started = () => effects().filter(({ what, id }) => what === 'start' && before.has(id)).length
  const enough = Math.min(before.size, processes * slots * RUN_BEFORE)
  await Promise.all(Array.from({ length: processes }, () => fleet.start()))
  if (!(await holdsWithin(RUNNING_WITHIN_MS, () => started() >= enough))) throw new Error('the workers run no tasks')
  // The backlog is as long as before when the others arrive.
  const added = await inBurst(started(), () => enqueue(NOISY_KEY))
  const others = await inBurst(keys * tasksPerKey, (n) => enqueue(otherKey(n, plan)))
  await untilIdle(IDLE_WITHIN_MS)
  await fleet.end(END_WITHIN_MS)
  return { noisy: [...before, ...added], others }
}

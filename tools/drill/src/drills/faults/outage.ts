// Drill `outage`: every task calls a provider that is down when the tasks are enqueued, and recovers later. The tasks of one queue are held
// back by their retry budget, and those of another one by a circuit breaker.
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { createTaskId } from '@bullpen/contract/internal'
import { Queue } from 'bullmq'
import type { Drill } from '../../drill.ts'
import { type DrillSetup, openRedis, withDrillSetup } from '../../environment/drill-setup.ts'
import type { System } from '../../environment/fleet.ts'
import type { Figures } from '../../figures/figures.ts'
import { figuresOf } from '../../figures/tasks.ts'
import { holdsWithin } from '../../holds-within.ts'
import { enqueueOne } from '../../ledger/load.ts'
import { type GuardedPlan, mostFirstCalls, openGuardedCalls } from '../../outage/guarded-calls.ts'
import { openProvider } from '../../outage/provider.ts'
import { call, guardedCall } from '../../programs/catalogue.ts'

const PLANS = {
  small: { tasks: 300, downMs: 5_000, processes: 2, concurrency: 25 },
  full: { tasks: 1_000, downMs: 60_000, processes: 4, concurrency: 25 },
} as const
type Plan = GuardedPlan

const DRAINED_WITHIN_MS = 15_000
const DONE_WITHIN_MS = 120_000

export const outage: Drill = {
  name: 'outage',
  target(scale) {
    const { tasks, downMs } = PLANS[scale]
    const mostCalls = mostCallsWhileDown(PLANS[scale])
    const firstCalls = mostFirstCalls(PLANS[scale])
    return {
      text: `a provider is down for ${downMs / 1_000} s: it gets no more than ${mostCalls} calls from ${tasks} tasks, as their retry budget allows; another one behind a circuit breaker gets no more than ${firstCalls}, and one probe a second; each probe uses one attempt, and no other task of the queue waits; 0 dead; metrics equal the ledger; all tasks done <= ${DRAINED_WITHIN_MS / 1_000} s after it has recovered`,
      atMost: {
        callsWhileDown: mostCalls,
        drainedMs: DRAINED_WITHIN_MS,
        probesBeyondOne: 0,
        // While the machine is busy, a probe may still be on its way when the next one starts.
        ...(scale === 'full' && { mostProbesPerSecond: 1 }),
        attemptsBeyondCalls: 0,
        othersHeldUp: 0,
        miscounted: 0,
      },
    }
  },
  known: { scale: 'full', callsWhileDown: 6_000, mostAttempts: 7, drainedMs: 7_401 },
  comparable: true,
  run: (scale, _seed, system) => callThroughOutage(PLANS[scale], system),
}

/** Returns the number of calls that the budget allows: first attempts, and retries by the ratio and by the minimum rate. */
function mostCallsWhileDown({ tasks, downMs }: Plan): number {
  const { ratio = 0, minRetriesPerSecond = 0 } = call.retry.budget ?? {}
  return Math.ceil((tasks + minRetriesPerSecond * (10 + downMs / 1_000)) / (1 - ratio))
}

async function callThroughOutage(plan: Plan, system: System): Promise<Figures> {
  const provider = await openProvider()
  // Plain BullMQ has no circuit breakers.
  const queues = system === 'bullpen' ? [call.queue, guardedCall.queue] : [call.queue]
  const config = { pools: Object.fromEntries(queues.map((queue) => [queue, plan.concurrency])) }
  const act = async (setup: DrillSetup): Promise<Figures> => {
    await Promise.all(Array.from({ length: plan.processes }, () => setup.fleet.start()))
    const tasks = system === 'bullpen' ? tasksInBullpen(setup) : tasksInBullmq(setup)
    const guarded = system === 'bullpen' ? await openGuardedCalls(setup, plan) : undefined
    try {
      const downUntil = performance.now() + plan.downMs
      const accepted = [...(await tasks.enqueue(provider.url, plan.tasks)), ...((await guarded?.enqueue()) ?? [])]
      await sleep(Math.max(0, downUntil - performance.now()))
      provider.recover()
      await guarded?.recover()
      const recoveredAt = performance.now()
      await tasks.untilDone()
      const drainedMs = Math.round(performance.now() - recoveredAt)
      const records = await setup.records(accepted)
      return {
        ...figuresOf({ accepted, ...records, interruptions: [], exits: [] }),
        calls: provider.calls.length,
        callsWhileDown: provider.calls.filter(({ whileDown }) => whileDown).length,
        mostAttempts: Math.max(...[...records.ends.values()].map(({ attemptsMade }) => attemptsMade)),
        ...guarded?.figures(records),
        drainedMs,
      }
    } finally {
      await tasks.close()
      await guarded?.close()
    }
  }
  const open = async () => ({ ...(await openRedis()), queues })
  return withDrillSetup(system, config, act, open).finally(() => provider.close())
}

interface Tasks {
  enqueue(url: string, tasks: number): Promise<readonly string[]>
  /** Resolves when every task has ended, or after two minutes. */
  untilDone(): Promise<unknown>
  close(): Promise<void>
}

function tasksInBullpen({ broker, untilIdle }: DrillSetup): Tasks {
  return {
    enqueue: (url, tasks) => Promise.all(Array.from({ length: tasks }, () => enqueueOne(broker, call, { url }))),
    untilDone: () => untilIdle(DONE_WITHIN_MS),
    close: async () => {},
  }
}

/** The jobs have the same number of attempts and the same backoff, as BullMQ's users write them. */
function tasksInBullmq({ redisUrl, namespace }: DrillSetup): Tasks {
  const { hostname, port } = new URL(redisUrl)
  const connection = { host: hostname, port: Number(port) }
  const queue = new Queue(call.queue, { connection, prefix: `{${namespace}.${call.queue}}` })
  const options = { attempts: call.retry.maxAttempts, backoff: { type: 'exponential', delay: 1_000 } }
  return {
    async enqueue(url, tasks) {
      const jobs = Array.from({ length: tasks }, () => {
        const jobId = createTaskId(call.queue, Date.now(), randomBytes(10))
        return { name: call.name, data: { input: { url } }, opts: { ...options, jobId } }
      })
      return (await queue.addBulk(jobs)).map(({ id = '' }) => id)
    },
    untilDone: () =>
      holdsWithin(DONE_WITHIN_MS, async () => (await queue.getJobCountByTypes('wait', 'active', 'delayed')) === 0),
    close: () => queue.close(),
  }
}

// Examines the clocks, the configuration, the versions and the workers of the fleet.
import { formatDuration } from '@bullpen/contract'
import { isAlive } from '../fleet/fleet.ts'
import type { RegisteredWorker } from '../ports/fleet.ts'
import type { DiagnosisFacts, Examine, Found, PoisonFacts, QueueFacts } from './facts.ts'

/** The difference of two clocks above which times in logs and in the CLI are misleading, in ms. */
const FAR_MS = 500
/** How long an event loop may be blocked within a minute, in ms. */
const LONG_STALLS_MS = 10_000

export function liveWorkers({ workers, now }: DiagnosisFacts): readonly RegisteredWorker[] {
  return workers.filter((worker) => isAlive(worker, now))
}

/** One process on a machine is enough: the others there have the same clock. */
export const clocks: Examine = (facts) => {
  const { clockSkewMs } = facts.api
  const hosts = new Map(liveWorkers(facts).map(({ host, skewMs }) => [`of ${host}`, skewMs]))
  if (clockSkewMs !== undefined) hosts.set('of the API', clockSkewMs)
  return [...hosts].flatMap(([whose, skewMs]): Found | readonly Found[] => {
    if (Math.abs(skewMs) < FAR_MS) return []
    const seconds = (Math.abs(skewMs) / 1_000).toFixed(1)
    const direction = skewMs > 0 ? 'ahead of' : 'behind'
    return { problem: `the clock ${whose} is ${seconds} s ${direction} the clock of Redis` }
  })
}

export const configuration: Examine = (facts) => {
  const workers = liveWorkers(facts)
  const found: Found[] = []
  const hosts = new Set(workers.map(({ host }) => host))
  if (facts.api.isDevelopment && hosts.size > 1) {
    found.push({
      problem: `the API runs in development mode, although workers run on ${hosts.size} machines`,
      advice: 'set BULLPEN_ENV=production and BULLPEN_API_KEYS for the API',
    })
  }
  for (const [queue, members] of byQueue(workers)) {
    const times = countsOf(members, (worker) => drainText(worker, queue))
    if (times.size === 1) continue
    found.push({
      queue,
      problem: `the workers of ${queue} have different drain timeouts and grace periods: ${listed(times)}`,
      advice: 'give the workers of a queue the same drain mode, drain timeout and grace period',
    })
  }
  return found
}

/** In a rolling deploy, each process that ends may have been the leader. */
const MANY_CHANGES = 5

export const leader: Examine = ({ leadership: { isLed, changes, overMs } }) => {
  if (!isLed) return { severity: 'error', problem: 'no process leads the namespace' }
  if (changes < MANY_CHANGES) return []
  const minutes = Math.max(1, Math.round(overMs / 60_000))
  return {
    problem: `the leader has changed ${changes} times within ${minutes} min`,
    advice: 'if there was no deploy, look for processes that restart, or that lose their connection to Redis',
  }
}

export const versions: Examine = (facts) => {
  const { version } = facts.api
  const counts = countsOf(liveWorkers(facts), (worker) => worker.version)
  const isSame = [...counts.keys()].every((each) => each === version)
  return isSame
    ? []
    : [
        {
          problem: `the API runs Bullpen ${version}, and the workers run ${listed(counts)}`,
        },
      ]
}

export const catalogues: Examine = (facts) => {
  const { queues, tasks, catalogue } = facts.api
  const live = liveWorkers(facts)
  const pools = live.flatMap((worker) => worker.pools)
  const running = pools.flatMap(({ slots }) => slots.flatMap(({ task }) => (task === undefined ? [] : [task.task])))
  const newer = 'deploy the API, whose catalogue is older than that of the workers'
  return [
    ...missing(
      pools.map(({ queue }) => queue),
      queues,
    ).map(
      (queue): Found => ({
        queue,
        problem: `workers serve the queue ${queue}, which is not in the API's catalogue`,
        advice: newer,
      }),
    ),
    ...missing(running, tasks).map(
      (task): Found => ({
        problem: `workers run the task ${task}, which is not in the API's catalogue`,
        advice: newer,
      }),
    ),
    ...queues.flatMap((queue): Found | readonly Found[] => {
      const reported = live.flatMap((worker) => worker.catalogue?.[queue] ?? [])
      const others = reported.filter((digest) => digest !== catalogue[queue])
      if (others.length === 0) return []
      const problem = `the definitions of ${queue} or its tasks differ between the API and ${others.length} of ${reported.length} workers`
      return { queue, problem }
    }),
    ...facts.queues
      .filter(({ unknownTasks }) => unknownTasks > 0)
      .map(
        ({ queue, unknownTasks }): Found => ({
          severity: 'error',
          queue,
          problem: `${queue} has ${unknownTasks} dead ${unknownTasks === 1 ? 'task' : 'tasks'} with the code unknown_task, whose definition was not in the worker's catalogue`,
          advice: `deploy the workers, whose catalogue is older than that of the API; then run 'bullpen dead retry --queue ${queue} --code unknown_task'`,
        }),
      ),
  ]
}

export const workers: Examine = ({ workers: all, queues, now }) => {
  const poisoned = new Set(queues.filter((each) => recentPoison(each, now) !== undefined).map(({ queue }) => queue))
  // No pool of a draining queue accepts tasks, which paused_queues finds once for the whole queue.
  const drained = new Set(queues.filter(({ settings }) => settings.drain !== undefined).map(({ queue }) => queue))
  return all.flatMap((worker): Found | readonly Found[] => {
    const { worker: name, seenAt, draining, pools } = worker
    if (!isAlive(worker, now)) {
      const seconds = Math.round((now - seenAt) / 1_000)
      return {
        severity: 'error',
        worker: name,
        problem: `${name} has sent no heartbeat for ${seconds} s`,
        ...(pools.some(({ queue }) => poisoned.has(queue))
          ? {
              advice:
                'the task that poison_tasks finds has probably killed it; otherwise, look at its log; its other tasks run again on other workers',
              runbook: 'A poison task',
            }
          : { advice: 'look at its log, and at its connection to Redis; its tasks run again on other workers' }),
      }
    }
    const stuck = pools.reduce((sum, { stuckHandlers }) => sum + stuckHandlers, 0)
    return [
      ...(stuck === 0
        ? []
        : [
            {
              worker: name,
              problem: `${name} has ${stuck} stuck ${stuck === 1 ? 'handler' : 'handlers'}, still running after the end of the attempt`,
              advice: 'restart the worker; then let the handler pass on ctx.signal, or isolate it',
              runbook: 'Handlers are stuck',
            } as const,
          ]),
      ...(draining ? [] : pools)
        .filter(({ queue, notReady }) => notReady !== undefined && !drained.has(queue))
        .map(
          ({ queue, notReady }): Found => ({
            worker: name,
            queue,
            problem: `${name} does not accept tasks of ${queue}: ${notReady}`,
            advice: 'its readiness probe, /readyz, says the same',
          }),
        ),
    ]
  })
}

/** Describes how the worker's pool for the queue drains. */
function drainText({ pools, drainTimeoutMs, graceMs }: RegisteredWorker, queue: string): string {
  const own = pools.find((pool) => pool.queue === queue)?.drainSettings
  const mode = own === undefined || own.mode === 'soft_timeout' ? '' : `${own.mode}, `
  return `${mode}${formatDuration(own?.timeoutMs ?? drainTimeoutMs)} and ${formatDuration(own?.graceMs ?? graceMs)}`
}

export const eventLoops: Examine = (facts) =>
  liveWorkers(facts).flatMap(({ worker, stalls }): Found | readonly Found[] => {
    if (stalls === undefined || stalls.stalledMs < LONG_STALLS_MS) return []
    const { count, stalledMs, lastTask } = stalls
    const times = count === 1 ? 'once' : `${count} times`
    const by = lastTask === undefined ? '' : `, last by ${lastTask}`
    return {
      worker,
      problem: `the event loop of ${worker} was blocked ${times} within the last minute, for ${Math.round(stalledMs / 1_000)} s in all${by}`,
    }
  })

function byQueue(workers: readonly RegisteredWorker[]): ReadonlyMap<string, readonly RegisteredWorker[]> {
  const members = new Map<string, readonly RegisteredWorker[]>()
  for (const worker of workers) {
    for (const { queue } of worker.pools) members.set(queue, [...(members.get(queue) ?? []), worker])
  }
  return members
}

function countsOf<T>(all: readonly T[], of: (each: T) => string): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const each of all) counts.set(of(each), (counts.get(of(each)) ?? 0) + 1)
  return counts
}

function listed(counts: ReadonlyMap<string, number>): string {
  return [...counts].map(([what, count]) => `${what} (${count})`).join(', ')
}

/** Returns each name that is not known, once. */
function missing(names: readonly string[], known: readonly string[]): readonly string[] {
  return [...new Set(names)].filter((name) => !known.includes(name))
}

/** For how long a task that killed its processes is reported, in ms. */
const RECENT_DEATH_MS = 3_600_000

/** Returns the queue's poison tasks if the last one became dead recently. */
export function recentPoison({ poison }: QueueFacts, now: number): PoisonFacts | undefined {
  return poison !== undefined && now - poison.newestAt < RECENT_DEATH_MS ? poison : undefined
}

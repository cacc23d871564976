// Examines the queues and the schedules. Finds tasks that no worker runs, queues that do not accept or start tasks, and
// outboxes that no process empties.
import { formatDuration, type ScheduleAction } from '@bullpen/contract'
import type { LimiterStatus, QueueSettings } from '../ports/fleet.ts'
import type { PoolStatus } from '../ports/pool-status.ts'
import { limiterOf, parseLimiter } from '../task/needs.ts'
import type { DiagnosisFacts, Examine, FailureFact, Found, QueueFacts } from './facts.ts'
import { liveWorkers, recentPoison } from './fleet-checks.ts'

/** How long a task may wait although slots are free, and be active although no worker runs it, in ms. */
const PATIENCE_MS = 60_000
/** The age and the size at which an outbox is not just busy. At 10,000 entries, workers stop fetching tasks. */
const OLD_OUTBOX_MS = 60_000
const LARGE_OUTBOX = 5_000
/** From this number on, tasks that wait for a retry are not just a few failures. */
const MANY_RETRIES = 10

type OfQueue = Omit<Found, 'queue'>

export function ofEach(examine: (queue: QueueFacts, facts: DiagnosisFacts) => OfQueue | readonly OfQueue[]): Examine {
  return (facts) =>
    facts.queues.flatMap((queue) => [examine(queue, facts)].flat().map((found) => ({ ...found, queue: queue.queue })))
}

export function poolsOf(queue: QueueFacts, facts: DiagnosisFacts): readonly PoolStatus[] {
  return reportedPoolsOf(queue, facts).filter(({ state }) => RUNNING.includes(state))
}

function reportedPoolsOf({ queue }: QueueFacts, facts: DiagnosisFacts): readonly PoolStatus[] {
  return liveWorkers(facts)
    .flatMap(({ pools }) => pools)
    .filter((pool) => pool.queue === queue)
}

const RUNNING: readonly PoolStatus['state'][] = ['BG_RUNNING', 'ONLINE_RUNNING']

export const unservedQueues = ofEach((queue, facts) => {
  const { waiting } = queue.tasks
  // The pools of a draining queue have stopped, and serve it again when it is resumed.
  const pools = queue.settings.drain === undefined ? poolsOf(queue, facts) : reportedPoolsOf(queue, facts)
  if (waiting === 0 || pools.length > 0) return []
  const ignore = 'if your own BullMQ Workers serve the queue, ignore this'
  const running = liveWorkers(facts).length
  if (running === 0) {
    return {
      severity: 'error',
      problem: `no worker is running, and ${queue.queue} has ${tasks(waiting, 'waiting')}`,
      advice: `start a worker; if one runs but 'bullpen fleet' does not list it, compare its REDIS_URL and BULLPEN_NAMESPACE with those of the API; ${ignore}`,
    }
  }
  const workers =
    running === 1 ? '1 worker is running, but it does not serve' : `${running} workers are running, but none serves`
  return {
    severity: 'error',
    problem: `${workers} ${queue.queue}, which has ${tasks(waiting, 'waiting')}`,
    advice: `add the queue to BULLPEN_WORKER_POOLS, which lists the queues that a worker serves, or start workers for it; ${ignore}`,
  }
})

/**
 * Returns how long a task has waited although slots are free, or undefined if it has not waited for long. `which` names the
 * task, which has been ready since `readyAt`. While a command or a full outbox holds the queue, no slot is free for it.
 */
function waitBesideFreeSlots(
  which: string,
  readyAt: number | undefined,
  queue: QueueFacts,
  facts: DiagnosisFacts,
): string | undefined {
  const { paused, outboxFull, drain } = queue.settings
  const isHeld = paused || outboxFull || drain !== undefined
  if (isHeld || readyAt === undefined || facts.now - readyAt < PATIENCE_MS) return undefined
  const ready = poolsOf(queue, facts).filter((pool) => !pool.paused && pool.notReady === undefined)
  const free = ready.reduce((sum, { concurrency: slots, busy }) => sum + Math.max(0, slots - busy), 0)
  if (free === 0) return undefined
  const age = seconds(facts.now - readyAt)
  return `${which} of ${queue.queue} has waited for ${age} s, although the workers have ${free} free ${free === 1 ? 'slot' : 'slots'}`
}

const isLimited = ({ settings: { concurrency, rate } }: QueueFacts): boolean =>
  concurrency !== undefined || rate !== undefined

export const stalledQueues = ofEach((queue, facts) => {
  const problem = isLimited(queue) ? undefined : waitBesideFreeSlots('the next task', queue.nextReadyAt, queue, facts)
  return problem === undefined ? [] : { problem }
})

export const limitedQueues = ofEach((queue, facts) =>
  isLimited(queue) ? limitedByCommand(queue, facts) : blockedQueue(queue, facts),
)

function limitedByCommand(queue: QueueFacts, facts: DiagnosisFacts): OfQueue | readonly OfQueue[] {
  const problem = waitBesideFreeSlots('the next task', queue.nextReadyAt ?? queue.oldestBlocked?.readyAt, queue, facts)
  if (problem === undefined) return []
  const { concurrency, rate } = queue.settings
  return {
    problem: `${problem}: a command limits its starts to ${startLimits(queue).join(' and ')}`,
    advice: `'bullpen audit' shows who limited the queue; to remove the limit, run 'bullpen limit --queue ${queue.queue} ${[...(concurrency === undefined ? [] : ['--concurrency none']), ...(rate === undefined ? [] : ['--rate none'])].join(' ')}'`,
  }
}

/** Describes the limits of starts that a command has set. */
export function startLimits({ settings: { concurrency, rate } }: QueueFacts): readonly string[] {
  return [
    ...(concurrency === undefined ? [] : [`${concurrency} at once`]),
    ...(rate === undefined ? [] : [`${rate.max} per ${formatDuration(rate.perMs)}`]),
  ]
}

/** Finds a queue with a blocked task. Tasks that wait for a circuit breaker are found by {@link openBreakers}. */
function blockedQueue(queue: QueueFacts, facts: DiagnosisFacts): OfQueue | readonly OfQueue[] {
  const { oldestBlocked: oldest, blockedTasks } = queue
  if (oldest === undefined) return []
  const cause = causeOfBlock(oldest, facts.now)
  const problem = waitBesideFreeSlots('the oldest blocked task', oldest.readyAt, queue, facts)
  if (problem === undefined || cause === undefined) return []
  return {
    problem: `${problem}: ${cause}; ${tasks(blockedTasks, 'waiting')} ${blockedTasks === 1 ? 'is' : 'are'} blocked`,
    advice: `'bullpen show ${oldest.id}' shows what the task waits for, and 'bullpen limits --queue ${queue.queue}' the limits; if a running task hangs that holds the place or the permits, cancel it; otherwise, raise the limit, unless it is meant to hold these tasks`,
  }
}

/** Says what keeps the oldest blocked task from starting. Returns undefined if another finding says it. */
export function causeOfBlock(
  { waitsFor, concurrencyKey = '' }: NonNullable<QueueFacts['oldestBlocked']>,
  now: number,
): string | undefined {
  switch (waitsFor?.kind) {
    case undefined:
      return 'a handler has throttled the queue'
    case 'concurrency':
      return `its concurrency key ${concurrencyKey} has as many running tasks as it may have`
    case 'rate':
      return `its concurrency key ${concurrencyKey} may start no task for ${seconds(Math.max(0, (waitsFor.until ?? now) - now))} s`
    case 'permits':
      return `it waits for ${waitsFor.limiter} permits`
    case 'definition':
      return `as many tasks of ${waitsFor.limiter} are running as may run at once`
    case 'turn':
    case 'breaker':
      return undefined
  }
}

export const limitedTasks = ofEach(({ queue, tasks: { waiting }, needs, settings: { limiters = [] } }) => {
  if (waiting === 0) return []
  return limiters.flatMap((limiter) => {
    const limiterName = limiterOf(limiter)
    const neededBy = needs.flatMap(({ task, needs: all }) =>
      all.flatMap((need) => (need.limiter === limiterName ? [{ task, amount: need.amount }] : [])),
    )
    const [first, ...others] = neededBy.filter(({ amount }) => amount > limiter.capacity)
    if (first === undefined) return []
    const more = others.length === 0 ? '' : ` (and ${others.length} more)`
    return {
      problem: `no task of ${first.task}${more} starts: ${shortage(limiter, first.amount, queue)}`,
      advice: `'bullpen limits --queue ${queue}' shows what has set the number, and 'bullpen audit' who; ask why, and then run 'bullpen limit --queue ${queue} ${limiter.kind === 'permits' ? `--permits ${limiter.name}=none` : `--task ${limiter.name} --concurrency none`}'`,
    }
  })
})

export const missingLimits = ofEach(({ queue, tasks: counts, settings, catalogueLimits }) => {
  // A worker stores the limits before its first fetch.
  if (counts.active + counts.retrying + counts.completed + counts.dead === 0) return []
  const stored = new Set((settings.limiters ?? []).map(limiterOf))
  const services = new Set((settings.breakers ?? []).map(({ service }) => service))
  const missing = [
    ...missingKeyLimits(catalogueLimits.perConcurrencyKey, settings.perConcurrencyKey),
    ...catalogueLimits.limiters.filter((limiter) => !stored.has(limiter)).map(limiterText),
    ...catalogueLimits.services
      .filter((service) => !services.has(service))
      .map((name) => `the circuit breaker ${name}`),
  ]
  if (missing.length === 0) return []
  const problem = `tasks of ${queue} start without limits of the API's catalogue that Redis does not have: ${missing.join(', ')}`
  return { problem }
})

function missingKeyLimits(
  defined: QueueFacts['catalogueLimits']['perConcurrencyKey'],
  stored: QueueSettings['perConcurrencyKey'],
): readonly string[] {
  const lacks = (name: 'concurrency' | 'rate'): boolean => defined?.[name] !== undefined && stored?.[name] === undefined
  const lacksSingle = Object.keys(defined?.keys ?? {}).length > 0 && (stored?.ofSingleKeys ?? 0) === 0
  return [
    ...(lacks('concurrency') ? ['the concurrency of each concurrency key'] : []),
    ...(lacks('rate') ? ['the rate of each concurrency key'] : []),
    ...(lacksSingle ? ['the limits of single concurrency keys'] : []),
  ]
}

function limiterText(limiter: string): string {
  const { kind, name } = parseLimiter(limiter) ?? { name: limiter }
  return kind === 'definition' ? `the concurrency of ${name}` : `the permits ${name}`
}

function shortage({ kind, name, capacity }: LimiterStatus, amount: number, queue: string): string {
  if (kind === 'definition') return `its concurrency is ${capacity}`
  return `it needs ${amount} ${name} ${amount === 1 ? 'permit' : 'permits'}, and ${queue} has ${capacity}`
}

export const failingTasks = ofEach(({ queue, tasks: { retrying, waiting, active }, retrying: some, heldRetries }) => {
  if (retrying < MANY_RETRIES || retrying <= waiting + active) return []
  const held = heldRetries === 0 ? '' : ` (retry budgets hold ${heldRetries} of them)`
  return {
    problem: `${retrying} tasks of ${queue} have failed and wait for their retry${held}, which is more than are waiting or running${mostFrequent(some)}`,
    advice: `'bullpen list --queue ${queue} --status retrying' shows them, and 'bullpen show ID' shows their errors`,
  }
})

/** Names the definition and the error that most of these tasks have in common. */
function mostFrequent(failures: readonly FailureFact[]): string {
  const counts = new Map<string, number>()
  for (const { task, error } of failures) {
    const kind = error === undefined ? task : `${task} with the error ${error}`
    counts.set(kind, (counts.get(kind) ?? 0) + 1)
  }
  const [first] = [...counts].sort(([, a], [, b]) => b - a)
  return first === undefined ? '' : `; ${first[1]} of the next ${failures.length} are ${first[0]}`
}

export const poisonTasks = ofEach((facts, { now }) => {
  const poison = recentPoison(facts, now)
  if (poison === undefined) return []
  const { queue } = facts
  const { newestId: id, newestTask: task } = poison
  return {
    problem: `${tasks(poison.tasks, 'dead')} of ${queue} killed ${poison.tasks === 1 ? 'its' : 'their'} processes; the last one, ${id}${task === undefined ? '' : ` (${task})`}, became dead ${seconds(now - poison.newestAt)} s ago`,
    advice: `'bullpen show ${id}' shows how its processes died, and 'bullpen dead list --queue ${queue}' shows all dead tasks; fix the handler before you retry them`,
  }
})

export const pausedQueues = ofEach((queue, facts) => {
  const { paused, drain } = queue.settings
  const pools = poolsOf(queue, facts)
  const waiting = `with ${tasks(queue.tasks.waiting, 'waiting')}`
  const audit =
    "'bullpen audit' shows who did it; ask why, because a pause may protect a service that is down; to continue, run 'bullpen resume"
  if (paused || drain !== undefined) {
    const state = drain === undefined ? 'paused' : `draining (${drain.mode})`
    const advice = `${audit} --queue ${queue.queue}'`
    return { problem: `${queue.queue} is ${state}, ${waiting}`, advice }
  }
  if (pools.length === 0 || pools.some((pool) => !pool.paused)) return []
  const advice = `${audit} --worker WORKER'`
  return { problem: `every pool of ${queue.queue} is paused, ${waiting}`, advice }
})

export const openBreakers = ofEach(({ queue, settings: { breakers = [] } }, { now }) =>
  breakers
    .filter(({ state }) => state !== 'closed')
    .map(({ service, state, mode, since = now, setBy }) => {
      const problem = `the circuit breaker ${service} of ${queue} has been ${state.replace('_', '-')} for ${seconds(now - since)} s`
      if (mode !== 'open') return { problem }
      return {
        problem: `${problem}, set by ${setBy?.by ?? 'a command'}`,
        advice: `it stays open until somebody runs 'bullpen breaker ${service} auto --queue ${queue}'; ask first why it was opened`,
      }
    }),
)

export const lostTasks = ofEach(({ queue, active }, facts) => {
  const { now } = facts
  const running = new Set(
    liveWorkers(facts)
      .flatMap(({ pools }) => pools)
      .flatMap(({ slots }) => slots.flatMap(({ task }) => (task === undefined ? [] : [task.id]))),
  )
  const lost = active.filter(
    ({ id, startedAt }) => startedAt !== undefined && now - startedAt >= PATIENCE_MS && !running.has(id),
  )
  const [first] = lost
  if (first?.startedAt === undefined) return []
  return {
    severity: 'error',
    problem: `no live worker runs ${tasks(lost.length, 'active')} of ${queue}, such as ${first.id}, active for ${seconds(now - first.startedAt)} s`,
    ...(facts.leadership.isLed && { runbook: 'Housekeeping fails' }),
  }
})

export const unattachedWorkers = ofEach(({ queue, unattached }) => {
  if (unattached === undefined) return []
  const { workers, tasks: held, ids } = unattached
  const who = workers.length > 0 ? workers.join(', ') : 'its address is not known'
  const holds = held > 0 ? `; it has held ${held} ${held === 1 ? 'task' : 'tasks'}, such as ${ids[0]}` : ''
  return { problem: `a BullMQ Worker without Bullpen's backend uses ${queue} (${who})${holds}` }
})

export const storeLosses = ofEach(({ queue, lost }, { now }) =>
  lost === undefined
    ? []
    : [
        {
          severity: 'error',
          problem: `Redis has lost ${tasks(lost.tasks, 'acknowledged')} of ${queue}, such as ${lost.newestId}, noticed ${seconds(now - lost.noticedAt)} s ago`,
        },
      ],
)

export const outboxes = ofEach(({ queue, outbox: { entries, oldestAt }, settings: { outboxFull } }, { now }) => {
  const ageMs = oldestAt === undefined ? 0 : now - oldestAt
  if (!outboxFull && entries < LARGE_OUTBOX && ageMs < OLD_OUTBOX_MS) return []
  return {
    severity: outboxFull ? 'error' : 'warning',
    problem: `the outbox of ${queue} ${outboxFull ? 'is full: it ' : ''}has ${entries} ${entries === 1 ? 'entry' : 'entries'}, and the oldest is ${seconds(ageMs)} s old`,
  }
})

export const schedules: Examine = ({ schedules: all }) =>
  all?.flatMap(({ name, queue, troubles }) =>
    troubles.map(
      ({ kind, detail }): Found => ({
        schedule: name,
        queue,
        problem: `the schedule ${name} is in trouble (${kind}): ${detail}`,
        advice: `'bullpen schedules show ${name}' shows its runs`,
      }),
    ),
  )

function tasks(count: number, status: 'waiting' | 'active' | 'dead' | 'acknowledged'): string {
  return `${count} ${status} ${count === 1 ? 'task' : 'tasks'}`
}

function seconds(ms: number): number {
  return Math.round(ms / 1_000)
}

export const differentSchedules: Examine = ({ scheduleChanges }) =>
  scheduleChanges?.flatMap(({ name, queue, action, fields }) =>
    action === 'unchanged'
      ? []
      : [
          {
            queue,
            schedule: name,
            problem: `the schedule ${name} of ${queue} ${DIFFERENCES[action](fields.map(({ field }) => field).join(', '))}`,
          },
        ],
  )

const DIFFERENCES: Readonly<Record<Exclude<ScheduleAction, 'unchanged'>, (fields: string) => string>> = {
  created: () => 'is in the catalogue of the API, but is not stored',
  changed: (fields) => `differs between Redis and the catalogue of the API in: ${fields}`,
  deleted: () => 'was stored from a catalogue, but is not in the catalogue of the API',
}

// Examines the queues and the schedules. Finds tasks that no worker runs, queues that do not accept or start tasks, and outboxes that no process
// empties.
import type { PoolStatus } from '../ports/pool-status.ts'
import type { DiagnosisFacts, Examine, Found, QueueFacts } from './facts.ts'
import { liveWorkers } from './fleet-checks.ts'

/** How long a task may wait although slots are free, and be active although no worker runs it, in ms. */
const PATIENCE_MS = 60_000
/** The age and the size at which an outbox is not just busy. At 10,000 entries, workers stop fetching tasks. */
const OLD_OUTBOX_MS = 60_000
const LARGE_OUTBOX = 5_000

type OfQueue = Omit<Found, 'queue'>

function ofEach(examine: (queue: QueueFacts, facts: DiagnosisFacts) => readonly OfQueue[]): Examine {
  return (facts) =>
    facts.queues.flatMap((queue) => examine(queue, facts).map((found) => ({ ...found, queue: queue.queue })))
}

function poolsOf({ queue }: QueueFacts, facts: DiagnosisFacts): readonly PoolStatus[] {
  return liveWorkers(facts)
    .flatMap(({ pools }) => pools)
    .filter((pool) => pool.queue === queue && RUNNING.includes(pool.state))
}

const RUNNING: readonly PoolStatus['state'][] = ['BG_RUNNING', 'ONLINE_RUNNING']

export const unservedQueues = ofEach((queue, facts) => {
  const { waiting } = queue.tasks
  if (waiting === 0 || poolsOf(queue, facts).length > 0) return []
  return [
    { severity: 'error', problem: `no live worker serves ${queue.queue}, which has ${tasks(waiting, 'waiting')}` },
  ]
})

/** A limit on the starts is not examined further: with one, tasks may wait although slots are free. */
export const stalledQueues = ofEach((queue, facts) => {
  const { readyAt, settings } = queue
  const { paused, outboxFull, drain, concurrency, rate } = settings
  const isHeld = paused || outboxFull || drain !== undefined || concurrency !== undefined || rate !== undefined
  if (isHeld || readyAt === undefined || facts.now - readyAt < PATIENCE_MS) return []
  const ready = poolsOf(queue, facts).filter((pool) => !pool.paused && pool.notReady === undefined)
  const free = ready.reduce((sum, { concurrency: slots, busy }) => sum + Math.max(0, slots - busy), 0)
  if (free === 0) return []
  const age = seconds(facts.now - readyAt)
  return [
    {
      severity: 'warning',
      problem: `the next task of ${queue.queue} has waited for ${age} s, although the workers have ${free} free ${free === 1 ? 'slot' : 'slots'}`,
    },
  ]
})

export const fullQueues = ofEach(({ queue, tasks: { waiting, scheduled, retrying }, maxTasks, maxBytes, bytes }) => {
  const length = waiting + scheduled + retrying
  const reached = [
    ...(maxTasks !== undefined && length >= maxTasks ? [`${length} of at most ${maxTasks} tasks`] : []),
    ...(maxBytes !== undefined && bytes >= maxBytes ? [`${bytes} of at most ${maxBytes} bytes`] : []),
  ]
  return reached.map((limit) => ({ severity: 'error', problem: `${queue} is full: it has ${limit}` }))
})

export const pausedQueues = ofEach((queue, facts) => {
  const { paused, drain } = queue.settings
  const pools = poolsOf(queue, facts)
  const waiting = `with ${tasks(queue.tasks.waiting, 'waiting')}`
  const audit = "'bullpen audit' shows who did it; to continue, run 'bullpen resume"
  if (paused || drain !== undefined) {
    const state = drain === undefined ? 'paused' : `draining (${drain.mode})`
    const advice = `${audit} --queue ${queue.queue}'`
    return [{ severity: 'warning', problem: `${queue.queue} is ${state}, ${waiting}`, advice }]
  }
  if (pools.length === 0 || pools.some((pool) => !pool.paused)) return []
  const advice = `${audit} --worker WORKER'`
  return [{ severity: 'warning', problem: `every pool of ${queue.queue} is paused, ${waiting}`, advice }]
})

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
  return [
    {
      severity: 'error',
      problem: `no live worker runs ${tasks(lost.length, 'active')} of ${queue}, such as ${first.id}, active for ${seconds(now - first.startedAt)} s`,
    },
  ]
})

export const outboxes = ofEach(({ queue, outbox: { entries, oldestAt }, settings: { outboxFull } }, { now }) => {
  const ageMs = oldestAt === undefined ? 0 : now - oldestAt
  if (!outboxFull && entries < LARGE_OUTBOX && ageMs < OLD_OUTBOX_MS) return []
  return [
    {
      severity: outboxFull ? 'error' : 'warning',
      problem: `the outbox of ${queue} ${outboxFull ? 'is full: it ' : ''}has ${entries} ${entries === 1 ? 'entry' : 'entries'}, and the oldest is ${seconds(ageMs)} s old`,
    },
  ]
})

export const schedules: Examine = ({ schedules: all }) =>
  all.flatMap(({ name, queue, troubles }) =>
    troubles.map(
      ({ kind, detail }): Found => ({
        severity: 'warning',
        schedule: name,
        queue,
        problem: `the schedule ${name} is in trouble (${kind}): ${detail}`,
        advice: `'bullpen schedules show ${name}' shows its runs`,
      }),
    ),
  )

function tasks(count: number, status: 'waiting' | 'active'): string {
  return `${count} ${status} ${count === 1 ? 'task' : 'tasks'}`
}

function seconds(ms: number): number {
  return Math.round(ms / 1_000)
}

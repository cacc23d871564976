/**
 * Runs a program on a broker and checks its rules: every task ends, no result is lost or duplicated, every transition is in the
 * tables, no slot is lost, and a final drain requeues the running tasks.
 */
import { isFinal, type TaskId, type TaskStatus } from '@bullpen/contract'
import { TASK_STATUSES } from '@bullpen/contract/internal'
import type { Clock } from '@bullpen/engine/internal'
import type { OpenBackend } from '../conformance/backend.ts'
import { disturber } from './disturbances.ts'
import { rule } from './history.ts'
import { limitsHold } from './key-limits.ts'
import type { Program } from './program.ts'
import { openSimulation, type Simulation } from './simulation.ts'
import { endless, plainTask, QUEUE, rendezvous } from './tasks.ts'

export interface Time {
  readonly clock: Clock
  /** By how much the times of two processes may differ, in ms. */
  readonly inexactMs: number
  pass(ms: number): Promise<void>
  /** Lets time pass until `isTrue`. Rejects if that takes too long. */
  until(isTrue: () => boolean | Promise<boolean>, what: string): Promise<void>
}

export async function runProgram(program: Program, open: OpenBackend, time: Time): Promise<void> {
  const simulation = await openSimulation(program, open, time.clock)
  const { apply, isAway, recover } = disturber(simulation)
  try {
    await simulation.startWorker()
    for (const task of program.tasks) await simulation.plan(task)
    for (const { afterMs, ...disturbance } of program.disturbances) {
      await time.pass(afterMs)
      await apply(disturbance)
      if (!isAway()) await simulation.observe()
    }
    recover()
    simulation.release()
    await everyTaskEnds(simulation, time)
    await noSlotIsLost(simulation, time)
    const records = await simulation.observe()
    simulation.history.check(records)
    limitsHold(records, program.keyLimits, time)
    await statusesAgree(simulation)
    await drainRequeuesEverything(simulation, time)
    await statusesAgree(simulation)
  } finally {
    recover()
    await simulation.close()
  }
}

async function everyTaskEnds(
  { history, running, observe, isDraining, startWorker, workers }: Simulation,
  time: Time,
): Promise<void> {
  if (slots({ running }) === 0) await startWorker()
  await time.until(async () => (await observe()).every(({ status }) => isFinal(status)), 'every task ends')
  await time.until(() => !isDraining(), 'every drain ends')
  const alive = workers.filter(({ name }) => !history.isDead(name))
  await time.until(() => alive.every(({ pool }) => pool.busy() === 0), 'every slot is idle')
  await time.until(() => alive.every(({ pool }) => pool.stuckHandlers() === 0), 'every handler returns')
}

/** Checks that as many tasks can run at once as there are slots. */
async function noSlotIsLost({ backend, enqueue, running, meeting }: Simulation, time: Time): Promise<void> {
  const many = slots({ running })
  meeting.expect(many)
  for (let n = 0; n < many; n++) await enqueue(plainTask(rendezvous, time.clock.now()))
  await time.until(meeting.isComplete, `all ${many} slots work at once`)
  await time.until(() => running().every(({ pool }) => pool.busy() === 0), 'every slot is idle again')
  // A slot is idle before the store has confirmed the commit.
  await time.until(async () => (await backend.broker.counts(QUEUE)).active === 0, 'every commit is confirmed')
}

/**
 * Checks that after a drain, running and waiting tasks are waiting, scheduled tasks are scheduled, no attempts have been used,
 * and no slots are left.
 */
async function drainRequeuesEverything(simulation: Simulation, time: Time): Promise<void> {
  const { backend, history, drain, enqueue, isDraining, running, workers } = simulation
  const tasks = Array.from({ length: slots(simulation) + 2 }, (_, n) =>
    plainTask(endless, time.clock.now(), n === 0 ? 3_600_000 : 0),
  )
  for (const task of tasks) await enqueue(task)
  const last = running()
  await time.until(() => last.every(({ pool }) => pool.busy() === pool.size()), 'every slot works')
  for (const worker of last) drain(worker, 0)
  await time.until(() => !isDraining(), 'the last pools have drained')
  for (const [n, { id }] of tasks.entries()) {
    const record = await backend.broker.find(id)
    const is = `${record?.status} after ${record?.attemptsMade} attempts`
    rule(is === `${n === 0 ? 'scheduled' : 'waiting'} after 0 attempts`, `after a drain ${id} is ${is}`)
  }
  for (const { pool, name } of last) rule(pool.state() === 'SHUTDOWN', `the pool of ${name} is ${pool.state()}`)
  for (const { pool, name } of workers.filter((worker) => !history.isDead(worker.name))) {
    const left = pool.slots().filter(({ state }) => state !== 'TERMINATED')
    rule(left.length === 0, `${left.length} slots of ${name} have not terminated`)
  }
}

const PAGE = 7

/**
 * Checks that the counts equal the listings, that the listings' pages are full, that each task is in one listing, and that every
 * accepted task is accounted for.
 */
async function statusesAgree({ backend: { broker }, observe }: Simulation): Promise<void> {
  const counts = await broker.counts(QUEUE)
  const listed = new Map<TaskId, TaskStatus>()
  for (const status of TASK_STATUSES) {
    let cursor: string | undefined
    let count = 0
    do {
      const { tasks, next } = await broker.list({ queue: QUEUE, status, limit: PAGE, cursor })
      rule(next === undefined || tasks.length === PAGE, `a page of ${status} tasks has ${tasks.length}`)
      for (const { id } of tasks) {
        rule(!listed.has(id), `${id} is listed as ${listed.get(id)} and as ${status}`)
        listed.set(id, status)
      }
      count += tasks.length
      cursor = next
    } while (cursor !== undefined)
    rule(counts[status] === count, `${counts[status]} ${status} tasks are counted, and ${count} are listed`)
  }
  for (const { id, status } of await observe()) {
    rule(listed.get(id) === status, `${id} is ${status}, and listed as ${listed.get(id)}`)
  }
  const { bytes, accepted, removed, unaccounted } = await broker.totals(QUEUE)
  rule(unaccounted === 0, `${unaccounted} tasks are unaccounted for`)
  const unfinished = [...listed.values()].filter((status) => !isFinal(status)).length
  rule((bytes === 0) === (unfinished === 0), `${unfinished} unfinished tasks take ${bytes} bytes`)
  rule(accepted - removed === listed.size, `${accepted} tasks were accepted, and ${listed.size} are listed`)
}

function slots({ running }: Pick<Simulation, 'running'>): number {
  return running().reduce((sum, { pool }) => sum + pool.size(), 0)
}

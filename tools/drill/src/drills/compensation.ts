// Drill `compensation`: workers are killed with SIGKILL while bookings are at each step between registering a compensation and their end.
// One of each two workers dies before Redis has received what it has just sent, the other one after Redis has carried it out.
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isFinal, type TaskId, type TaskRecord, type TaskStatus } from '@bullpen/contract'
import { createTaskId, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import { newTask } from '@bullpen/engine/internal'
import { faultProxy } from '@bullpen/testkit'
import type { Drill } from '../drill.ts'
import { type DrillRedis, type DrillSetup, openRedis, withDrillSetup } from '../environment/drill-setup.ts'
import type { WorkerProcess } from '../environment/fleet.ts'
import type { Figures } from '../figures/figures.ts'
import { figuresOf } from '../figures/tasks.ts'
import { runsOf } from '../followup/runs-of.ts'
import { holdsWithin } from '../holds-within.ts'
import { booking, type POSITIONS, undo } from '../programs/catalogue.ts'
import type { Scale } from '../report.ts'

/** `each` is how many tasks of each case a worker runs when it is killed. */
const PLANS = { small: { rounds: 1, each: 1 }, full: { rounds: 10, each: 5 } } as const

type Position = (typeof POSITIONS)[number]
type Outcome = Extract<TaskStatus, 'completed' | 'dead' | 'cancelled'>

interface Case {
  readonly at: Position
  readonly outcome: Outcome
}

/** At these steps, the worker dies after it has sent a command, which registers the compensation or ends the task. */
const SENDING: readonly Position[] = ['registering', 'ending']
/** A task is cancelled after its worker has died, but only if its compensation was registered. */
const CASES: readonly Case[] = [
  ...(['registering', 'registered', 'stepped', 'ending'] as const).flatMap((at) =>
    (['completed', 'dead'] as const).map((outcome) => ({ at, outcome })),
  ),
  ...(['registered', 'stepped'] as const).map((at) => ({ at, outcome: 'cancelled' as const })),
]

/** What becomes of the commands that the worker sends before it dies. */
const FATES = ['lost', 'carried out'] as const
type Fate = (typeof FATES)[number]

interface Booking extends Case {
  readonly id: TaskId
  readonly of: number
}

const WITHIN_MS = 30_000
/** A task that runs again may start before the leader repeats its cancel, and then has to run for long enough to be cancelled. */
const LONG_MS = 60_000
const QUEUES = [booking.queue, undo.queue]

export const compensation: Drill = {
  name: 'compensation',
  target: () => ({
    text: 'workers are killed at each step between registering a compensation, the step that it undoes, and the end: each task is compensated exactly once if it is dead or cancelled, and never if it is completed; the outboxes are empty',
    atMost: { compensationsWrong: 0, stepsMissed: 0, outboxLeft: 0 },
  }),
  known: undefined,
  comparable: false, // it has no compensations
  run(scale, _seed, system) {
    const { each } = PLANS[scale]
    // A second worker that starts slowly also recovers the tasks of the first one, and must have slots left for its own.
    const slots = FATES.length * each * CASES.length
    const pools = { [booking.queue]: slots, [undo.queue]: slots }
    return withDrillSetup(system, { pools }, (setup) => killAtEachStep(scale, setup), openTwoQueues)
  },
}

async function openTwoQueues(): Promise<DrillRedis> {
  return { ...(await openRedis()), queues: QUEUES }
}

async function killAtEachStep(scale: Scale, setup: DrillSetup): Promise<Figures> {
  const { broker, fleet, untilIdle, records } = setup
  const { rounds, each } = PLANS[scale]
  const bookings: Booking[] = []
  let stepsMissed = 0
  for (let round = 0; round < rounds; round++) {
    // The worker that recovers the tasks of the round before would take those of this round.
    await Promise.all(fleet.workers.map((worker) => worker.end(WITHIN_MS)))
    for (const fate of FATES) {
      const some = Array.from({ length: each }, () => CASES).flat()
      const started = some.map((one, n) => bookingFor(one, bookings.length + n))
      bookings.push(...started)
      stepsMissed += await killAmid(setup, started, fate)
    }
    for (const { id, outcome } of bookings.slice(-FATES.length * each * CASES.length)) {
      if (outcome === 'cancelled') await broker.cancel(id, { stoppable: true })
    }
    await fleet.start()
    // The outboxes are complete only when all bookings have ended, including those that wait for a place in the quarantine.
    await untilIdle(WITHIN_MS)
    await holdsWithin(WITHIN_MS, async () => (await outboxEntries(setup)) === 0)
    await untilIdle(WITHIN_MS)
  }
  const outboxLeft = await outboxEntries(setup)
  const { accepted: added } = await broker.totals(undo.queue)
  const accepted = bookings.map(({ id }) => id)
  const { effects, ends, ...rest } = await records(accepted)
  const compensated = bookings.filter(({ outcome }) => outcome !== 'completed').map(({ of }) => of)
  const runs = runsOf(effects, undo.queue, compensated)
  return {
    ...figuresOf({ accepted, effects, ends, ...rest, interruptions: [], exits: [], counts: undefined }),
    failed: bookings.filter(({ id, outcome }) => ends.has(id) && ends.get(id)?.status !== outcome).length,
    compensated: runs.run,
    compensationsWrong: runs.missing + runs.extra + Math.max(0, added - compensated.length),
    stepsMissed,
    outboxLeft,
  }
}

function bookingFor(one: Case, of: number): Booking {
  const id = createTaskId(booking.queue, Date.now(), randomBytes(ID_RANDOM_BYTES))
  return { ...one, of, id }
}

async function outboxEntries({ broker }: DrillSetup): Promise<number> {
  const totals = await Promise.all(QUEUES.map((queue) => broker.totals(queue)))
  return totals.reduce((sum, { outbox }) => sum + outbox.entries, 0)
}

/** Runs the bookings in one worker, and kills it when each of them is at its step. Returns how many of them were not. */
async function killAmid(setup: DrillSetup, bookings: readonly Booking[], fate: Fate): Promise<number> {
  const { broker, fleet, redisUrl, effects } = setup
  const proxy = await faultProxy(redisUrl)
  const dir = mkdtempSync(join(tmpdir(), 'bullpen-drill-gate-'))
  try {
    const gate = join(dir, 'open')
    const worker: WorkerProcess = await fleet.start({ redisUrl: proxy.url })
    for (const one of bookings) await broker.enqueue(taskOf(one, gate))
    const ids = new Set<string>(bookings.map(({ id }) => id))
    const sending = bookings.filter(({ at }) => SENDING.includes(at))
    const count = (what: string): number => effects().filter((each) => each.what === what && ids.has(each.id)).length
    await holdsWithin(WITHIN_MS, () => count('stop') === bookings.length)
    if (fate === 'lost') proxy.cut()
    else proxy.cutAnswers()
    writeFileSync(gate, '')
    await holdsWithin(WITHIN_MS, () => count('pass') === sending.length)
    const missed = async (): Promise<number> => {
      const found = await Promise.all(bookings.map(({ id }) => broker.find(id)))
      const off = bookings.filter((one, n) => !isAtStep(one, found[n], fate)).length
      const hasEnded = found.some((record) => record !== undefined && isFinal(record.status))
      return off + (hasEnded === (fate === 'carried out') ? 0 : 1)
    }
    await holdsWithin(WITHIN_MS, async () => (await missed()) === 0)
    const off = await missed()
    await worker.kill()
    return off
  } finally {
    await proxy.close()
    rmSync(dir, { recursive: true, force: true })
  }
}

function taskOf({ id, of, at, outcome }: Booking, gate: string) {
  const stop = { at, ...(SENDING.includes(at) && { until: gate }) }
  const input = { of, ms: outcome === 'cancelled' ? LONG_MS : 0, undoes: true, fails: outcome === 'dead', stop }
  return newTask(booking, input, {}, { id, enqueuedAt: Date.now(), correlationId: undefined })
}

/**
 * Returns whether Redis stores what it must store if the worker dies at this step. Ends that come while a call with others waits for its
 * reply have not been sent, so that not all ends of a worker are carried out.
 */
function isAtStep({ at, outcome }: Case, record: TaskRecord | undefined, fate: Fate): boolean {
  if (record === undefined) return false
  if (at === 'ending' && fate === 'carried out' && isFinal(record.status)) return record.status === outcome
  const isRegistered = at !== 'registering' || fate === 'carried out'
  return !isFinal(record.status) && (record.compensations?.length ?? 0) === (isRegistered ? 1 : 0)
}

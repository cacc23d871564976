// What holds after each step of the fuzz, whatever the step was. The sums, the places and the lanes have checks of their own
// (../index-model/full-scan.fixture.ts, ../turns/lane-scan.fixture.ts).
import { membersOf, scanViolations } from '../index-model/full-scan.fixture.ts'
import { laneScanViolations } from '../turns/lane-scan.fixture.ts'
import type { Moment } from './moment.fixture.ts'

/** What the world knows, and Redis does not. */
export interface Known {
  /** Jobs that a plain processor has delayed. */
  readonly delayedByPlain: ReadonlySet<string>
  /** The token with which a worker holds each job. */
  readonly tokens: ReadonlyMap<string, string>
  /** The jobs whose locks an operation has taken away. */
  readonly unlocked: ReadonlySet<string>
  /** The tasks that are enqueued with a queue timeout. */
  readonly expiring: ReadonlySet<string>
  /** The tasks that have waited for children. They wait elsewhere than in their lane, until a fetch returns them there. It is updated. */
  readonly parents: Set<string>
  /** Whether a task may have ended several times in the step, or ended and returned. */
  readonly mayEndTwice: boolean
  /** Whether a worker has taken the marker and knows when to look again. It is updated. */
  readonly turn: { isTaken: boolean }
  /** The active tasks of each key at the moment before, which is updated. */
  readonly activeByKey: Map<string, number>
}

export function momentViolations(before: Moment | undefined, moment: Moment, known: Known): string[] {
  const { scan, lanes, rest } = moment
  updateTurn(moment, known.turn)
  for (const [id] of membersOf(scan, 'waiting-children')) known.parents.add(id)
  const strays = Object.values(lanes.strays).filter((id) => !known.parents.has(id))
  return [
    ...scanViolations(scan, known.delayedByPlain),
    ...laneScanViolations(
      { ...lanes, strays },
      { wakes: !rest.isLimited && !known.turn.isTaken, before: known.activeByKey },
    ),
    ...wrongTotals(before, moment),
    ...wrongFields(moment),
    ...wrongLocks(moment, known),
    ...wrongEvents(before, moment, known),
    ...wrongOutbox(before, moment),
    ...wrongExpiries(moment, known),
    ...missingMarker(moment, known),
  ]
}

const activeIn = ({ scan }: Moment): readonly string[] => membersOf(scan, 'active').map(([id]) => id)

const endedIn = ({ scan }: Moment): ReadonlySet<string> =>
  new Set(['completed', 'failed'].flatMap((set) => membersOf(scan, set).map(([id]) => id)))

/** Every accepted task exists or was removed, and the number of tasks that have ended never falls. */
function wrongTotals(before: Moment | undefined, moment: Moment): string[] {
  const { scan } = moment
  const { accepted = 0, removed = 0, drift = 0 } = scan.totals
  const tasks = Object.keys(scan.jobs).length
  return [
    ...(accepted - removed === tasks ? [] : [`${accepted} accepted, ${removed} removed, ${tasks} exist`]),
    ...(drift === 0 ? [] : [`the leader has repaired ${drift}`]),
    ...(before === undefined || endsIn(before) <= endsIn(moment)
      ? []
      : [`${endsIn(before)} tasks had ended, now ${endsIn(moment)}`]),
  ]
}

/** As the totals of a queue count them (../../queries/counts.ts). */
function endsIn(moment: Moment): number {
  const { accepted = 0, retried = 0 } = moment.scan.totals
  return accepted + retried - (Object.keys(moment.scan.jobs).length - endedIn(moment).size)
}

/** A task says itself whether it has ended, and whether it has started. */
function wrongFields(moment: Moment): string[] {
  const ended = endedIn(moment)
  const found = Object.entries(moment.scan.jobs).flatMap(([id, { finishedOn }]) =>
    ended.has(id) === (finishedOn !== false) ? [] : [`${id} has finishedOn ${finishedOn}, ended: ${ended.has(id)}`],
  )
  const unstarted = activeIn(moment).filter((id) => {
    const { starts, processedOn } = moment.scan.jobs[id] ?? {}
    return !(Number(starts) > 0) || !processedOn
  })
  return unstarted.length === 0 ? found : [...found, `${unstarted} are active and have not started`]
}

/** A lock exists exactly for an active task, with the token of the worker that holds it. */
function wrongLocks(moment: Moment, { tokens, unlocked }: Known): string[] {
  const { locks } = moment.rest
  const active = new Set(activeIn(moment))
  const found = Object.keys(locks).flatMap((id) => (active.has(id) ? [] : [`${id} is not active and has a lock`]))
  for (const id of active) {
    if (unlocked.has(id)) continue
    if (locks[id] === undefined) found.push(`${id} is active and has no lock`)
    else if (locks[id] !== tokens.get(id)) found.push(`${id} is locked by ${locks[id]}, ${tokens.get(id)} holds it`)
  }
  return found
}

/** Each end of a task has one event. */
function wrongEvents(before: Moment | undefined, moment: Moment, { mayEndTwice }: Known): string[] {
  const events = new Map<string, number>()
  for (const [, id] of Object.values(moment.rest.events)) events.set(id, (events.get(id) ?? 0) + 1)
  const ended = endedIn(moment)
  const found: string[] = []
  for (const id of new Set([...events.keys(), ...ended])) {
    const count = events.get(id) ?? 0
    const [was, is] = [before?.scan.jobs[id]?.finishedOn || undefined, moment.scan.jobs[id]?.finishedOn || undefined]
    const wasRemoved = moment.scan.jobs[id] === undefined
    const isNew = is !== undefined && was === undefined
    const least = isNew ? 1 : 0
    const most = isNew || (wasRemoved && was === undefined) ? 1 : 0
    if (count < least || (count > most && !mayEndTwice)) {
      found.push(
        `${id} has ${count} events of its end: finished at ${was} before, ${is ?? (wasRemoved ? 'removed' : 'not')} now`,
      )
    }
  }
  return found
}

/** What follows from an end is stored with the end. */
function wrongOutbox(before: Moment | undefined, moment: Moment): string[] {
  const known = new Set(Object.values(before?.rest.outbox ?? []).map(([entry]) => entry))
  return Object.values(moment.rest.outbox).flatMap(([entry, text]) => {
    const [kind, source = ''] = text.split(' ')
    const job = moment.scan.jobs[source]
    if (known.has(entry) || kind !== 't' || job === undefined || job.finishedOn !== false) return []
    return [`${source} has not ended, and has the entry ${text}`]
  })
}

/** A task that may expire, and has never started, is in the index of expiries. */
function wrongExpiries(moment: Moment, { expiring }: Known): string[] {
  const [indexed, ended] = [new Set(Object.values(moment.rest.expiries)), endedIn(moment)]
  return [...expiring].flatMap((id) => {
    const job = moment.scan.jobs[id]
    if (job === undefined || ended.has(id) || Number(job.starts) > 0 || indexed.has(id)) return []
    return [`${id} may expire, and is not in the index of expiries`]
  })
}

/** A worker that finds the queue at a limit knows when to look again, and keeps the turn until there is a marker or nothing waits. */
function updateTurn(moment: Moment, turn: Known['turn']): void {
  if (moment.rest.marker !== false || waitingIn(moment) === 0) turn.isTaken = false
  else if (moment.rest.isLimited) turn.isTaken = true
}

function waitingIn({ scan }: Moment): number {
  return ['wait', 'prioritized', 'in lanes'].reduce((sum, place) => sum + membersOf(scan, place).length, 0)
}

/** While tasks without a lane could start, a marker wakes a worker, unless one has taken it. */
function missingMarker({ scan, rest }: Moment, { turn }: Known): string[] {
  const waiting = membersOf(scan, 'wait').length + membersOf(scan, 'prioritized').length
  if (waiting === 0 || rest.marker !== false || !rest.isOpen || rest.isLimited || turn.isTaken) return []
  return [`${waiting} tasks wait, and no marker wakes a worker`]
}

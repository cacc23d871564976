// Records a program's history, which consists of every event and every task record that was observed, and checks the rules that
// hold for any program.
import {
  type AttemptRecord,
  type AttemptState,
  isFinal,
  type PoolState,
  type TaskEvent,
  type TaskId,
  type TaskRecord,
} from '@bullpen/contract'
import { ATTEMPT_TRANSITIONS, assertTransition, POOL_TRANSITIONS } from '@bullpen/engine/internal'
import { fragile } from './tasks.ts'

type Ended = TaskEvent & { event: 'attempt.ended' }
type Refused = TaskEvent & { event: 'attempt.commit_refused' }
type Started = TaskEvent & { event: 'attempt.started' }

const MAX_RECORDS = 10
const WORKER_STOPPED: readonly string[] = ['drain', 'parent_closed', 'slot_stopped']

export class History {
  readonly #events: { readonly worker: string; readonly event: TaskEvent }[] = []
  readonly #dead = new Set<string>()
  readonly #handled = new Set<string>()
  /** Tasks whose owner lost its lock, died, or abandoned them in a drain. */
  readonly #ownerLost = new Set<string>()
  readonly #finals = new Map<TaskId, TaskRecord>()

  add(worker: string, event: TaskEvent): void {
    if (!this.#dead.has(worker)) this.#events.push({ worker, event })
  }

  handled(id: TaskId, fencingToken: number): void {
    this.#handled.add(`${id} ${fencingToken}`)
  }

  /** Marks a worker as dead. Its later events are ignored. */
  workerDied(worker: string): void {
    this.#dead.add(worker)
  }

  isDead(worker: string): boolean {
    return this.#dead.has(worker)
  }

  ownerLost(...ids: readonly string[]): void {
    for (const id of ids) this.#ownerLost.add(id)
  }

  get events(): readonly TaskEvent[] {
    return this.#events.map(({ event }) => event)
  }

  /** Checks a record against those that were observed before, because a final status never changes. */
  observe(record: TaskRecord): void {
    const before = this.#finals.get(record.id)
    if (before !== undefined) same(record, before, `${record.id} had ended, and its record has changed`)
    if (isFinal(record.status)) this.#finals.set(record.id, record)
    const tokens = record.attempts.map(({ fencingToken }) => fencingToken)
    // A task that has ended without another start has a last record whose number is 0.
    const started = tokens.filter((token, i) => token > 0 || i < tokens.length - 1)
    rule(strictlyGrows(started), `${record.id} has attempt records twice or out of order: ${tokens.join(', ')}`)
    rule(tokens.length <= MAX_RECORDS, `${record.id} has ${tokens.length} attempt records`)
    rule(
      record.attemptsMade <= record.maxAttempts,
      `${record.id} used ${record.attemptsMade} of ${record.maxAttempts} attempts`,
    )
    rule((tokens.at(-1) ?? 0) <= record.fencingToken, `${record.id} has a record of an attempt that was never started`)
  }

  /** Checks every rule at the end of a program. */
  check(records: readonly TaskRecord[]): void {
    for (const worker of new Set(this.#events.map((each) => each.worker))) this.#checkPool(worker)
    for (const record of records) {
      this.observe(record)
      this.#checkTask(record)
    }
  }

  #checkPool(worker: string): void {
    let state: PoolState = 'NEW'
    for (const { worker: of, event } of this.#events) {
      if (of !== worker || event.event !== 'pool.state') continue
      rule(event.from === state, `the pool of ${worker} was ${state}, and moved from ${event.from}`)
      assertTransition(`the pool of ${worker}`, POOL_TRANSITIONS, event.from, event.to)
      state = event.to
    }
  }

  #checkTask(record: TaskRecord): void {
    const { id, attempts: history } = record
    const about = this.#events.filter(({ event }) => 'id' in event && event.id === id)
    const started = about.flatMap(({ event, worker }) => (isStarted(event) ? [{ ...event, worker }] : []))
    const ended = about.flatMap(({ event }) => (isEnded(event) ? [event] : []))
    const refused = about.flatMap(({ event }) => (isRefused(event) ? [event] : []))
    const tokens = started.map(({ fencingToken }) => fencingToken)
    rule(strictlyGrows(tokens), `${id} started attempts out of order: ${tokens.join(', ')}`)
    /** The attempts whose worker died or abandoned them in a drain. The store may have committed them without an event. */
    const unanswered: number[] = []
    for (const { fencingToken, worker } of started) {
      const { length } = [...ended, ...refused].filter((end) => end.fencingToken === fencingToken)
      const mayBeMissing = this.#dead.has(worker) || this.#hasAbandoned(worker)
      rule(length === 1 || (length === 0 && mayBeMissing), `attempt ${fencingToken} of ${id} ended ${length} times`)
      if (length === 0) unanswered.push(fencingToken)
    }
    for (const end of ended) this.#checkEnd(end, tokens, record)
    for (const { fencingToken } of refused) {
      rule(tokens.includes(fencingToken), `attempt ${fencingToken} of ${id} was refused, and never started`)
      const own = history.find((each) => each.fencingToken === fencingToken)
      rule(own === undefined || isLost(own), `attempt ${fencingToken} of ${id} was refused, and has a record`)
    }
    if (record.task === fragile.name) this.#checkFragile(record)
    // The record of an expired task shows that the task never started, as a record that the sweep writes does.
    const reported = ended.filter(({ verdict }) => verdict !== 'expired').map(({ fencingToken }) => fencingToken)
    const stored = history.filter((end) => end.fencingToken > 0 && !isLost(end)).map(({ fencingToken }) => fencingToken)
    const unreported = stored.filter((token) => !reported.includes(token) && !unanswered.includes(token))
    rule(unreported.length === 0, `${id} has records of attempts without an event: ${unreported.join(', ')}`)
    if (!this.#ownerLost.has(id) && unanswered.length === 0) {
      same(stored, reported.slice(-MAX_RECORDS).slice(-stored.length), `${id} has lost an attempt record`)
      rule(stored.length >= Math.min(reported.length, MAX_RECORDS - 1), `${id} has lost an attempt record`)
    }
    this.#checkFinal(
      record,
      ended,
      about.map(({ event }) => event),
    )
  }

  #checkEnd(end: Ended, tokens: readonly number[], { id, attempts: history }: TaskRecord): void {
    rule(tokens.includes(end.fencingToken), `attempt ${end.fencingToken} of ${id} ended, and never started`)
    const wasHandled = this.#handled.has(`${id} ${end.fencingToken}`)
    const early = (ATTEMPT_TRANSITIONS.NEW as readonly AttemptState[]).includes(end.state)
    assertTransition('an attempt', ATTEMPT_TRANSITIONS, wasHandled || !early ? 'IN_PROCESS' : 'NEW', end.state)
    const stored = history.find(({ fencingToken }) => fencingToken === end.fencingToken)
    if (stored === undefined) return
    rule(!isLost(stored), `attempt ${end.fencingToken} of ${id} has ended, and was recorded as lost`)
    same(
      [stored.state, stored.reason, stored.attempt],
      [end.state, end.reason, end.attempt],
      `attempt ${end.fencingToken} of ${id}`,
    )
  }

  /** Checks that an attempt that its worker interrupted is the last one, unless its handler had not started. */
  #checkFragile({ id, attempts: history }: TaskRecord): void {
    const at = history.findIndex(
      ({ fencingToken, reason = '' }) => WORKER_STOPPED.includes(reason) && this.#handled.has(`${id} ${fencingToken}`),
    )
    rule(at < 0 || at === history.length - 1, `${id} was interrupted by its worker, and started again`)
  }

  #checkFinal(record: TaskRecord, ended: readonly Ended[], about: readonly TaskEvent[]): void {
    const { id, status, output, attempts: history } = record
    rule(isFinal(status), `${id} is ${status} when the program ends`)
    const last = history.at(-1)
    const finals = ended.filter(
      ({ verdict, fencingToken }) =>
        isFinalVerdict(verdict) && history.some((end) => end.fencingToken === fencingToken && !isLost(end)),
    )
    rule(finals.length <= 1, `${id} ended ${finals.length} times`)
    if (status !== 'completed') return
    rule(last?.state === 'DONE_SUCCESS', `${id} is completed, and its last attempt is ${last?.state}`)
    same(output, { n: last?.fencingToken }, `${id} has the output of another attempt`)
    const late = about.flatMap((event) => (event.event === 'attempt.late' ? [event.fencingToken] : []))
    rule(!late.includes(last?.fencingToken ?? 0), `${id} has an output that came too late`)
  }

  /**
   * Returns whether the worker may have abandoned tasks. A drain that times out abandons tasks, whose attempts then do not end.
   */
  #hasAbandoned(worker: string): boolean {
    return this.#events.some(
      ({ worker: of, event }) => of === worker && event.event === 'pool.state' && event.to === 'TERMINATE_TIMEOUT',
    )
  }
}

/**
 * Returns whether a record is that of an attempt that lost its lock, which is written by the process that found it. The attempt
 * may have ended in the meantime.
 */
const isLost = ({ reason }: AttemptRecord): boolean => reason === 'process_lost'
const isStarted = (event: TaskEvent): event is Started => event.event === 'attempt.started'
const isRefused = (event: TaskEvent): event is Refused => event.event === 'attempt.commit_refused'
const isEnded = (event: TaskEvent): event is Ended => event.event === 'attempt.ended'
const isFinalVerdict = (verdict: Ended['verdict']): boolean =>
  verdict === 'completed' || verdict === 'dead' || verdict === 'cancelled' || verdict === 'expired'

function strictlyGrows(numbers: readonly number[]): boolean {
  return numbers.every((number, i) => i === 0 || number > (numbers[i - 1] ?? 0))
}

export function rule(holds: boolean, violation: string): void {
  if (!holds) throw new Error(violation)
}

function same(actual: unknown, expected: unknown, violation: string): void {
  const [now, before] = [JSON.stringify(actual), JSON.stringify(expected)]
  if (now !== before) throw new Error(`${violation}: expected ${before}, got ${now}`)
}

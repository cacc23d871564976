// A chronicle: all that was told during a program, and the rules that hold for it whatever the program was.
import {
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
type Started = TaskEvent & { event: 'attempt.started' }

const HISTORY_LENGTH = 10
const WORKERS_END: readonly string[] = ['drain', 'parent_closed', 'slot_stopped']

export class Chronicle {
  readonly #told: { readonly process: string; readonly event: TaskEvent }[] = []
  readonly #dead = new Set<string>()
  readonly #handled = new Set<string>()
  /** Tasks that their owner has lost, by a lost lock, a dead process, or a drain that abandoned them. */
  readonly #taken = new Set<string>()
  readonly #finals = new Map<TaskId, TaskRecord>()

  hear(process: string, event: TaskEvent): void {
    if (!this.#dead.has(process)) this.#told.push({ process, event })
  }

  handled(id: TaskId, start: number): void {
    this.#handled.add(`${id} ${start}`)
  }

  /** Nothing of it is heard from here on. */
  died(process: string): void {
    this.#dead.add(process)
  }

  isDead(process: string): boolean {
    return this.#dead.has(process)
  }

  tookFromOwner(...ids: readonly string[]): void {
    for (const id of ids) this.#taken.add(id)
  }

  get events(): readonly TaskEvent[] {
    return this.#told.map(({ event }) => event)
  }

  /** A look at a task: an end is for ever. */
  saw(record: TaskRecord): void {
    const before = this.#finals.get(record.id)
    if (before !== undefined) same(record, before, `${record.id} has ended, and is told otherwise later`)
    if (isFinal(record.status)) this.#finals.set(record.id, record)
    const starts = record.attempts.map(({ fencingToken }) => fencingToken)
    rule(strictlyGrows(starts), `${record.id} has an end recorded twice, or out of order: ${starts.join(', ')}`)
    rule(starts.length <= HISTORY_LENGTH, `${record.id} has ${starts.length} ends`)
    rule(
      record.attemptsMade <= record.maxAttempts,
      `${record.id} used ${record.attemptsMade} of ${record.maxAttempts} attempts`,
    )
    rule((starts.at(-1) ?? 0) <= record.fencingToken, `${record.id} has an end of a start that is not counted`)
  }

  /** At the end of a program. */
  check(records: readonly TaskRecord[]): void {
    for (const process of new Set(this.#told.map((told) => told.process))) this.#checkPool(process)
    for (const record of records) {
      this.saw(record)
      this.#checkTask(record)
    }
  }

  #checkPool(process: string): void {
    let state: PoolState = 'NEW'
    for (const told of this.#told) {
      if (told.process !== process || told.event.event !== 'pool.state') continue
      rule(told.event.from === state, `the pool of ${process} was ${state}, and moves from ${told.event.from}`)
      assertTransition(`the pool of ${process}`, POOL_TRANSITIONS, told.event.from, told.event.to)
      state = told.event.to
    }
  }

  #checkTask(record: TaskRecord): void {
    const { id, attempts: history } = record
    const about = this.#told.filter(({ event }) => 'id' in event && event.id === id)
    const started = about.flatMap(({ event, process }) => (isStarted(event) ? [{ ...event, process }] : []))
    const ended = about.flatMap(({ event }) => (isEnded(event) ? [event] : []))
    const starts = started.map(({ fencingToken }) => fencingToken)
    rule(strictlyGrows(starts), `${id} was started as ${starts.join(', ')}`)
    for (const { fencingToken, process } of started) {
      const { length } = ended.filter((end) => end.fencingToken === fencingToken)
      const mayBeMissing = this.#dead.has(process) || this.#isOpen(process)
      rule(length === 1 || (length === 0 && mayBeMissing), `start ${fencingToken} of ${id} ended ${length} times`)
    }
    for (const end of ended) this.#checkEnd(end, starts, record)
    if (record.task === fragile.name) this.#checkFragile(record)
    // An expired one is recorded as never started, as the sweep does it.
    const recorded = ended
      .filter(({ verdict }) => verdict !== 'lost' && verdict !== 'expired')
      .map(({ fencingToken }) => fencingToken)
    const kept = history
      .filter(({ fencingToken, reason }) => fencingToken > 0 && reason !== 'process_lost')
      .map(({ fencingToken }) => fencingToken)
    const strange = kept.filter((start) => !recorded.includes(start))
    rule(strange.length === 0, `${id} has ends that nobody told of: ${strange.join(', ')}`)
    if (!this.#taken.has(id)) same(kept, recorded.slice(-HISTORY_LENGTH).slice(-kept.length), `${id} has lost an end`)
    rule(this.#taken.has(id) || kept.length >= Math.min(recorded.length, HISTORY_LENGTH - 1), `${id} has lost an end`)
    this.#checkFinal(
      record,
      ended,
      about.map(({ event }) => event),
    )
  }

  #checkEnd(end: Ended, starts: readonly number[], { id, attempts: history }: TaskRecord): void {
    rule(starts.includes(end.fencingToken), `${id} ended as start ${end.fencingToken}, which never began`)
    const wasHandled = this.#handled.has(`${id} ${end.fencingToken}`)
    const early = (ATTEMPT_TRANSITIONS.NEW as readonly AttemptState[]).includes(end.state)
    assertTransition('an attempt', ATTEMPT_TRANSITIONS, wasHandled || !early ? 'IN_PROCESS' : 'NEW', end.state)
    const kept = history.find(({ fencingToken }) => fencingToken === end.fencingToken)
    if (kept === undefined) return
    rule(end.verdict !== 'lost', `start ${end.fencingToken} of ${id} had lost its lock, and its end is recorded`)
    same(
      [kept.state, kept.reason, kept.attempt],
      [end.state, end.reason, end.attempt],
      `start ${end.fencingToken} of ${id}`,
    )
  }

  /** A start that its worker's end interrupted is the last. One that reached no handler has interrupted nothing. */
  #checkFragile({ id, attempts: history }: TaskRecord): void {
    const at = history.findIndex(
      ({ fencingToken, reason = '' }) => WORKERS_END.includes(reason) && this.#handled.has(`${id} ${fencingToken}`),
    )
    rule(at < 0 || at === history.length - 1, `${id} was interrupted by its worker's end, and started again`)
  }

  #checkFinal(record: TaskRecord, ended: readonly Ended[], about: readonly TaskEvent[]): void {
    const { id, status, output, attempts: history } = record
    rule(isFinal(status), `${id} is ${status} at the end`)
    const last = history.at(-1)
    const finals = ended.filter(
      ({ verdict, fencingToken }) =>
        isFinalVerdict(verdict) && history.some((end) => end.fencingToken === fencingToken),
    )
    rule(finals.length <= 1, `${id} came to an end ${finals.length} times`)
    if (status !== 'completed') return
    rule(last?.state === 'DONE_SUCCESS', `${id} is completed, and its last end is ${last?.state}`)
    same(output, { n: last?.fencingToken }, `${id} tells the output of another start`)
    const late = about.flatMap((event) => (event.event === 'attempt.late' ? [event.fencingToken] : []))
    rule(!late.includes(last?.fencingToken ?? 0), `${id} tells what came too late`)
  }

  /** Abandoned by its drain: what it runs has no end yet. */
  #isOpen(process: string): boolean {
    return this.#told.some(
      ({ process: of, event }) => of === process && event.event === 'pool.state' && event.to === 'TERMINATE_TIMEOUT',
    )
  }
}

const isStarted = (event: TaskEvent): event is Started => event.event === 'attempt.started'
const isEnded = (event: TaskEvent): event is Ended => event.event === 'attempt.ended'
const isFinalVerdict = (verdict: Ended['verdict']): boolean =>
  verdict === 'completed' || verdict === 'dead' || verdict === 'cancelled' || verdict === 'expired'

function strictlyGrows(numbers: readonly number[]): boolean {
  return numbers.every((number, i) => i === 0 || number > (numbers[i - 1] ?? 0))
}

export function rule(holds: boolean, otherwise: string): void {
  if (!holds) throw new Error(otherwise)
}

function same(is: unknown, was: unknown, otherwise: string): void {
  const [now, then] = [JSON.stringify(is), JSON.stringify(was)]
  if (now !== then) throw new Error(`${otherwise}: ${then}, and now ${now}`)
}

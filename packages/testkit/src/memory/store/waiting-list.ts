// Keeps the waiting tasks of a memory store, and finds the one that runs next.
import type { TaskId, TaskRecord } from '@bullpen/contract'
import { MAX_AHEAD } from '@bullpen/contract/internal'
import { parseLimiter } from '@bullpen/engine/internal'
import type { KeyBlock, KeyStarts } from './key-starts.ts'
import type { Lane } from './lane.ts'
import type { Limiters } from './limiters.ts'
import type { StoredTask } from './stored-task.ts'
import { Turns } from './turns.ts'

type LaneBlock =
  | KeyBlock
  | ({ readonly kind: 'breaker' } & ClosedService)
  | { readonly kind: 'permits' | 'definition'; readonly limiter: string }

/** Where a task joins: as the first task of all, or as the first or the last one of its priority. */
export type WaitingPlace = 'head' | 'first' | 'last'

/** A waiting task, and where it is. */
interface Waiting {
  readonly task: StoredTask
  /** The priority with which the task waits. A task that waits as the first one of all waits with those without a priority, 0. */
  readonly priority: number
  readonly isFirst: boolean
}

/** A service whose circuit breaker lets no task start, and until when, if that is known. */
export interface ClosedService {
  readonly service: string
  readonly until?: number
}

export interface WaitingListOptions {
  readonly starts: KeyStarts
  readonly limiters: Limiters
  /** Returns which service keeps a task from starting now, and until when, if that is known. */
  readonly blockedBy: (task: StoredTask) => ClosedService | undefined
}

export class WaitingList {
  readonly #starts: KeyStarts
  readonly #limiters: Limiters
  readonly #blockedBy: WaitingListOptions['blockedBy']
  /** In the order in which the tasks of a lane run. */
  readonly #waiting: Waiting[] = []
  readonly #turns: Turns

  constructor({ starts, limiters, blockedBy }: WaitingListOptions) {
    this.#starts = starts
    this.#limiters = limiters
    this.#blockedBy = blockedBy
    this.#turns = new Turns({
      ...{ now: starts.now, limiters },
      waits: (lane) =>
        lane === undefined ? this.all.some((task) => task.lane !== undefined) : this.#firstOf(lane) !== undefined,
      limitsKeys: () => starts.limits.exist,
      blockOf: (key) => starts.blockOf(key),
      activeOf: (key) => starts.activeOf(key),
      isFull: (key) => starts.isFull(key),
    })
  }

  /** The tasks by priority. The tasks of the same lane run in this order, and so do those without a lane. */
  get all(): readonly StoredTask[] {
    return this.#waiting.map(({ task }) => task)
  }

  /**
   * Returns the task that runs next. `only`, if given, contains the ids of the tasks that may run. These do not wait behind
   * other lanes, which may have tasks that no worker runs.
   */
  next(only?: readonly TaskId[]): StoredTask | undefined {
    if (only !== undefined) return this.all.find((task) => only.includes(task.id) && this.#mayStart(task))
    const other = this.#firstOf(undefined)
    const lane = this.#turns.next(other !== undefined)
    return lane === undefined ? other : this.#firstOf(lane)
  }

  /** Returns when the first task may start that may not start before, or undefined if time does not let any task start. */
  get nextStartAt(): number | undefined {
    const times = this.all.flatMap((task) => untilOf(this.#blockOf(task)))
    return times.length === 0 ? undefined : Math.min(...times)
  }

  /** Returns what a waiting task waits for, or nothing if the task is not waiting, or has no lane. */
  waitsFor(task: StoredTask): Pick<TaskRecord, 'waitsFor'> {
    if (task.lane === undefined) return {}
    const ahead = this.all.filter(({ lane }) => lane?.name === task.lane?.name).indexOf(task)
    if (ahead < 0) return {}
    return { waitsFor: { ...(this.#blockOf(task) ?? { kind: 'turn' }), ahead: Math.min(ahead, MAX_AHEAD) } }
  }

  /** Adds a task. */
  add(task: StoredTask, where: WaitingPlace): void {
    const added: Waiting = { task, priority: where === 'head' ? 0 : task.priority, isFirst: where !== 'last' }
    const at = this.#waiting.findIndex((each) => isBefore(added, each))
    this.#waiting.splice(at < 0 ? this.#waiting.length : at, 0, added)
    if (task.lane !== undefined) this.#turns.join(task.lane)
  }

  /** Removes a task if it is waiting. Returns whether other tasks may start now because they do not wait behind it any more. */
  remove(task: StoredTask): boolean {
    if (!this.#remove(task)) return false
    if (task.lane === undefined || this.#firstOf(task.lane) !== undefined) return false
    return this.#turns.emptied(task.lane)
  }

  /** Removes a task that starts. It is already active. */
  start(task: StoredTask): void {
    const { lane, turn } = task
    this.#remove(task)
    if (turn !== undefined) this.#starts.started(turn.key)
    this.#turns.started(lane, turn?.weight ?? 1)
  }

  /** Notes that a task has stopped being active. */
  left({ lane }: StoredTask): void {
    if (lane !== undefined) this.#turns.left(lane)
  }

  /** Notes that limits have changed. `lifted` are the limiters that limit nothing any more, although tasks hold something of them. */
  limitsChanged(lifted: readonly string[] = []): void {
    this.#turns.recheck(lifted)
  }

  #remove(task: StoredTask): boolean {
    const at = this.#waiting.findIndex((each) => each.task === task)
    if (at >= 0) this.#waiting.splice(at, 1)
    return at >= 0
  }

  /** Returns the first task of a lane, or the first one without a lane. */
  #firstOf(of: Lane | undefined): StoredTask | undefined {
    return this.#waiting.find(({ task }) => task.lane?.name === of?.name)?.task
  }

  #mayStart({ lane }: StoredTask): boolean {
    if (lane === undefined) return true
    const ofKey = lane.key === '' ? undefined : this.#starts.blockOf(lane.key)
    return ofKey === undefined && !lane.needs.some((need) => this.#limiters.isTooLittle(need))
  }

  #blockOf(task: StoredTask): LaneBlock | undefined {
    const ofKey = task.turn && this.#starts.blockOf(task.turn.key)
    if (ofKey !== undefined) return ofKey
    const service = this.#blockedBy(task)
    if (service !== undefined) return { kind: 'breaker', ...service }
    const ticket = task.lane && this.#turns.ticketOf(task.lane)
    const limiter = ticket === undefined ? undefined : parseLimiter(ticket)
    return limiter && { kind: limiter.kind, limiter: limiter.name }
  }
}

/**
 * Returns whether a task that is added runs before one that waits. Tasks that have returned as the first ones of the same
 * priority are ordered by their ids, because BullMQ gives all of them the same score. Without a priority, the last one to
 * return comes first.
 */
function isBefore(added: Waiting, waiting: Waiting): boolean {
  if (added.priority !== waiting.priority) return added.priority < waiting.priority
  const areOrderedById = added.priority > 0 && added.isFirst && waiting.isFirst
  return areOrderedById ? added.task.id < waiting.task.id : added.isFirst
}

function untilOf(block: LaneBlock | undefined): readonly number[] {
  return block !== undefined && 'until' in block && block.until !== undefined ? [block.until] : []
}

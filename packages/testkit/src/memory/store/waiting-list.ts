// Keeps the waiting tasks of a memory store, and finds the one that runs next.
import type { TaskId, TaskRecord, WaitsFor } from '@bullpen/contract'
import { MAX_AHEAD } from '@bullpen/contract/internal'
import { parseLimiter } from '@bullpen/engine/internal'
import type { KeyBlock, KeyStarts } from './key-starts.ts'
import type { Lane } from './lane.ts'
import type { Limiters } from './limiters.ts'
import type { StoredTask } from './stored-task.ts'
import { Turns } from './turns.ts'

export interface WaitingListOptions {
  readonly starts: KeyStarts
  readonly limiters: Limiters
  /** Returns which service keeps a task from starting now, and until when, if that is known. */
  readonly blockedBy: (task: StoredTask) => Pick<WaitsFor, 'service' | 'until'> | undefined
}

export class WaitingList {
  readonly #starts: KeyStarts
  readonly #limiters: Limiters
  readonly #blockedBy: WaitingListOptions['blockedBy']
  /** Sorted by priority. */
  readonly #tasks: StoredTask[] = []
  readonly #turns: Turns

  constructor({ starts, limiters, blockedBy }: WaitingListOptions) {
    this.#starts = starts
    this.#limiters = limiters
    this.#blockedBy = blockedBy
    this.#turns = new Turns({
      ...{ now: starts.now, limiters },
      waits: (lane) =>
        lane === undefined ? this.#tasks.some((task) => task.lane !== undefined) : this.#firstOf(lane) !== undefined,
      limitsKeys: () => starts.limits.exist,
      blockOf: (key) => starts.blockOf(key),
      isFull: (key) => starts.isFull(key),
    })
  }

  /** The tasks by priority. The tasks of the same lane run in this order, and so do those without a lane. */
  get all(): readonly StoredTask[] {
    return this.#tasks
  }

  /**
   * Returns the task that runs next. `only`, if given, contains the ids of the tasks that may run. These do not wait behind other lanes, which may
   * have tasks that no worker runs.
   */
  next(only?: readonly TaskId[]): StoredTask | undefined {
    if (only !== undefined) return this.#tasks.find((task) => only.includes(task.id) && this.#mayStart(task))
    const other = this.#firstOf(undefined)
    const lane = this.#turns.next(other !== undefined)
    return lane === undefined ? other : this.#firstOf(lane)
  }

  /** Returns when the first task may start that may not start before, or undefined if time does not let any task start. */
  get nextStartAt(): number | undefined {
    const times = this.#tasks.flatMap((task) => this.#blockOf(task)?.until ?? [])
    return times.length === 0 ? undefined : Math.min(...times)
  }

  /** Returns what a waiting task waits for, or nothing if the task is not waiting, or has no lane. */
  waitsFor(task: StoredTask): Pick<TaskRecord, 'waitsFor'> {
    if (task.lane === undefined) return {}
    const ahead = this.#tasks.filter(({ lane }) => lane?.name === task.lane?.name).indexOf(task)
    if (ahead < 0) return {}
    return { waitsFor: { kind: 'turn', ...this.#blockOf(task), ahead: Math.min(ahead, MAX_AHEAD) } }
  }

  /** Adds a task as the first or the last one of its priority. */
  add(task: StoredTask, where: 'first' | 'last'): void {
    const isBehind = ({ priority }: StoredTask) =>
      where === 'first' ? priority >= task.priority : priority > task.priority
    const at = this.#tasks.findIndex(isBehind)
    this.#tasks.splice(at < 0 ? this.#tasks.length : at, 0, task)
    if (task.lane !== undefined) this.#turns.join(task.lane)
  }

  /** Removes a task if it is waiting. Returns whether other tasks may start now because they do not wait behind it any more. */
  remove(task: StoredTask): boolean {
    const at = this.#tasks.indexOf(task)
    if (at < 0) return false
    this.#tasks.splice(at, 1)
    if (task.lane === undefined || this.#firstOf(task.lane) !== undefined) return false
    return this.#turns.emptied(task.lane)
  }

  /** Removes a task that starts. It is already active. */
  start(task: StoredTask): void {
    const { lane, turn } = task
    this.#tasks.splice(this.#tasks.indexOf(task), 1)
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

  /** Returns the first task of a lane, or the first one without a lane. */
  #firstOf(of: Lane | undefined): StoredTask | undefined {
    return this.#tasks.find(({ lane }) => lane?.name === of?.name)
  }

  #mayStart({ lane }: StoredTask): boolean {
    if (lane === undefined) return true
    const ofKey = lane.key === '' ? undefined : this.#starts.blockOf(lane.key)
    return ofKey === undefined && !lane.needs.some((need) => this.#limiters.isTooLittle(need))
  }

  #blockOf(task: StoredTask): (KeyBlock & Pick<WaitsFor, 'limiter' | 'service'>) | undefined {
    const ofKey = task.turn && this.#starts.blockOf(task.turn.key)
    if (ofKey !== undefined) return ofKey
    const service = this.#blockedBy(task)
    if (service !== undefined) return { kind: 'breaker', ...service }
    const ticket = task.lane && this.#turns.ticketOf(task.lane)
    const limiter = ticket === undefined ? undefined : parseLimiter(ticket)
    return limiter && { kind: limiter.kind, limiter: limiter.name }
  }
}

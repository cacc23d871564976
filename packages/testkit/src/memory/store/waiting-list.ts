// Keeps the waiting tasks of a memory store, and finds the one that runs next.
import type { TaskId, TaskRecord, WaitsFor } from '@bullpen/contract'
import { MAX_AHEAD } from '@bullpen/contract/internal'
import type { KeyStarts } from './key-starts.ts'
import type { StoredTask } from './stored-task.ts'
import { Turns } from './turns.ts'

export class WaitingList {
  readonly #starts: KeyStarts
  readonly #blockedBy: (task: StoredTask) => Pick<WaitsFor, 'service' | 'until'> | undefined
  /** Sorted by priority. */
  readonly #tasks: StoredTask[] = []
  readonly #turns: Turns

  /** `blockedBy` returns which service keeps a task from starting now, and until when, if that is known. */
  constructor(starts: KeyStarts, blockedBy: (task: StoredTask) => Pick<WaitsFor, 'service' | 'until'> | undefined) {
    this.#starts = starts
    this.#blockedBy = blockedBy
    const waits = (key: string): boolean => this.#tasks.some(({ turn }) => turn?.key === key)
    this.#turns = new Turns({
      now: starts.now,
      waits,
      // The tasks of a key may depend on different services.
      blockOf: (key) =>
        starts.blockOf(key) ?? (waits(key) && this.#firstOf(key) === undefined ? { kind: 'breaker' } : undefined),
    })
  }

  /** The tasks by priority. The tasks of the same concurrency key run in this order, and so do those without a turn. */
  get all(): readonly StoredTask[] {
    return this.#tasks
  }

  /** Returns the task that runs next. `only`, if given, contains the ids of the tasks that may run. */
  next(only?: readonly TaskId[]): StoredTask | undefined {
    if (only !== undefined)
      return this.#tasks.find((task) => only.includes(task.id) && this.#blockOf(task) === undefined)
    const other = this.#firstOf(undefined)
    const key = this.#turns.next(other !== undefined)
    return key === undefined ? other : this.#firstOf(key)
  }

  /** Returns when the first task may start that may not start before, or undefined if time does not let any task start. */
  get nextStartAt(): number | undefined {
    const times = this.#tasks.flatMap((task) => this.#blockOf(task)?.until ?? [])
    return times.length === 0 ? undefined : Math.min(...times)
  }

  /** Returns what a waiting task waits for, or nothing if the task is not waiting, or neither has a turn nor depends on a service that fails. */
  waitsFor(task: StoredTask): Pick<TaskRecord, 'waitsFor'> {
    const block = this.#blockOf(task)
    const ahead = this.#tasks.filter(({ turn }) => turn?.key === task.turn?.key).indexOf(task)
    if (ahead < 0 || (task.turn === undefined && block === undefined)) return {}
    return { waitsFor: { kind: 'turn', ...block, ahead: Math.min(ahead, MAX_AHEAD) } }
  }

  /** Adds a task as the first or the last one of its priority. */
  add(task: StoredTask, where: 'first' | 'last'): void {
    const isBehind = ({ priority }: StoredTask) =>
      where === 'first' ? priority >= task.priority : priority > task.priority
    const at = this.#tasks.findIndex(isBehind)
    this.#tasks.splice(at < 0 ? this.#tasks.length : at, 0, task)
    if (task.turn !== undefined) this.#turns.join(task.turn.key)
  }

  /** Removes a task if it is waiting. */
  remove(task: StoredTask): void {
    const at = this.#tasks.indexOf(task)
    if (at >= 0) this.#tasks.splice(at, 1)
  }

  /** Removes a task that starts. It is already active. */
  start(task: StoredTask): void {
    this.remove(task)
    if (task.turn !== undefined) this.#starts.started(task.turn.key)
    this.#turns.started(task.turn)
  }

  /** Notes that a task has stopped being active. */
  left({ turn }: StoredTask): void {
    if (turn !== undefined) this.#turns.left(turn.key)
  }

  /** Notes that limits of concurrency keys have changed. */
  limitsChanged(): void {
    this.#turns.recheck(this.#starts.limits.exist)
  }

  /** Returns the first task of a key, or without a key, that no service keeps from starting. */
  #firstOf(key: string | undefined): StoredTask | undefined {
    return this.#tasks.find((task) => task.turn?.key === key && this.#blockedBy(task) === undefined)
  }

  #blockOf(task: StoredTask): ReturnType<KeyStarts['blockOf']> {
    const ofKey = task.turn && this.#starts.blockOf(task.turn.key)
    const service = this.#blockedBy(task)
    return ofKey ?? (service && { kind: 'breaker', ...service })
  }
}

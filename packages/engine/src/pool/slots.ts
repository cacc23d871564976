// The crew: the slots of one pool, who is idle, who runs what, and who is to end.
import type { SlotState, TaskId } from '@bullpen/contract'
import type { CancelCause, CloseReason } from '../ports/attempt-result.ts'
import type { Clock } from '../ports/clock.ts'
import type { FetchedTask, LocalCancel } from '../ports/consumer.ts'
import type { SlotStatus } from '../ports/pool-status.ts'
import { type Interruption, Slot } from './slot.ts'

export type Terminating = Extract<SlotState, `TERMINATING_${string}`>

/** A slot that takes no more tasks. */
const ENDING: readonly SlotState[] = [
  'TERMINATING_STOP_SIGNAL',
  'TERMINATING_PARENT_CTX_CLOSED',
  'TERMINATING_TASK_CH_CLOSED',
  'TERMINATED',
] satisfies readonly (Terminating | 'TERMINATED')[]

export class Slots {
  #slots: readonly Slot[] = []
  /** The last one to have become idle is the next to work. */
  readonly #idle: Slot[] = []
  readonly #stuckHandlers = new Set<Interruption>()
  readonly #onLeftovers: (count: number) => void
  readonly #clock: Clock
  #whenIdle: (() => void)[] = []
  #busy = 0
  /** How many there have ever been. */
  #numbered = 0
  /** What brings tasks is there. */
  #begun = false

  /** `onLeftovers` hears how many handlers go on after their attempt has ended, whenever that number changes. */
  constructor(size: number, clock: Clock, onLeftovers: (count: number) => void) {
    this.#clock = clock
    this.#onLeftovers = onLeftovers
    this.#grow(size)
  }

  /** Workers that are not told to end. */
  get size(): number {
    return this.#lasting().length
  }

  get busy(): number {
    return this.#busy
  }

  get stuckHandlerCount(): number {
    return this.#stuckHandlers.size
  }

  readonly stuckHandlers = {
    add: (run: Interruption): void => {
      this.#stuckHandlers.add(run)
      this.#onLeftovers(this.#stuckHandlers.size)
    },
    delete: (run: Interruption): void => {
      if (this.#stuckHandlers.delete(run)) this.#onLeftovers(this.#stuckHandlers.size)
    },
  }

  status(): readonly SlotStatus[] {
    return this.#slots.map((slot) => slot.status())
  }

  /** What runs now: its attempt has not ended. */
  running(): readonly FetchedTask[] {
    return this.#slots.flatMap(({ task, concluded }) => (task === undefined || concluded ? [] : [task]))
  }

  /** All slots become idle: at the start, and after {@link failed}. Returns how many had failed. */
  begin(): number {
    this.#begun = true
    const failed = this.#slots.filter(({ state }) => state === 'RECOVER_ERR').length
    for (const slot of this.#slots) {
      if (slot.state !== 'NEW' && slot.state !== 'RECOVER_ERR') continue
      slot.moveTo('IDLE')
      this.#idle.push(slot)
    }
    return failed
  }

  /** What brings tasks has failed: idle slots can't go on until it is there again. */
  failed(): void {
    this.#begun = false
    for (const slot of this.#idle.splice(0)) slot.moveTo('RECOVER_ERR')
  }

  /** An idle slot for this task, or undefined when there is none. */
  take(task: FetchedTask): Slot | undefined {
    const slot = this.#idle.pop()
    if (slot === undefined) return undefined
    slot.moveTo('WORKING')
    slot.task = task
    this.#busy++
    return slot
  }

  release(slot: Slot): void {
    slot.task = undefined
    slot.concluded = false
    this.#busy--
    if (slot.state === 'WORKING') {
      slot.moveTo('IDLE')
      this.#idle.push(slot)
    } else {
      slot.moveTo('TERMINATED')
      slot.close()
    }
    if (this.#busy > 0) return
    for (const tell of this.#whenIdle) tell()
    this.#whenIdle = []
  }

  /** Resolves when no slot runs a task. */
  idle(): Promise<void> {
    return this.#busy === 0 ? Promise.resolve() : new Promise((resolve) => this.#whenIdle.push(resolve))
  }

  /** Told to end: idle ones do so at once, the others when their task has ended. Twice is once. */
  end(state: Terminating): void {
    for (const slot of this.#slots) this.#end(slot, state)
  }

  /** As `end`, of those that have a task: the others wait for one that is on its way. */
  endAtWork(state: Terminating): void {
    for (const slot of this.#slots) if (slot.task !== undefined) this.#end(slot, state)
  }

  /** So many that are not told to end. Those that are too many end, idle ones first; those that have ended are forgotten. */
  resize(size: number): void {
    const lasting = this.#lasting()
    const byTurn = lasting.toSorted(
      (a, b) => Number(a.task !== undefined) - Number(b.task !== undefined) || b.number - a.number,
    )
    for (const slot of byTurn.slice(0, Math.max(0, lasting.length - size))) {
      this.#end(slot, 'TERMINATING_STOP_SIGNAL')
    }
    this.#slots = this.#slots.filter(({ state }) => state !== 'TERMINATED')
    this.#grow(size - lasting.length)
  }

  /**
   * Stops one slot: `wait` lets its task end first, `hard` stops it, and it is handed back. False: there is no such
   * slot, or it is ending already.
   */
  stop(number: number, how: 'wait' | 'hard'): boolean {
    const slot = this.#slots.find((each) => each.number === number)
    if (slot === undefined || slot.state === 'TERMINATED') return false
    const ended = this.#end(slot, 'TERMINATING_STOP_SIGNAL')
    if (how === 'hard') slot.interruption?.stop({ reason: 'slot_stopped' })
    return ended || how === 'hard'
  }

  cancel(id: TaskId, cause: CancelCause = { reason: 'cancelled' }): LocalCancel {
    const slot = this.#slots.find(({ task }) => task?.id === id)
    if (slot === undefined) return 'not_found'
    if (slot.interruption === undefined) return 'not_cancellable'
    slot.interruption.stop(cause)
    return 'cancelling'
  }

  /** Closes the context of the attempt of this task, when it runs here: of this start, or of whichever. */
  close(id: TaskId, reason: CloseReason, start?: number): void {
    const slot = this.#slots.find(({ task }) => task?.id === id && (start === undefined || task.fencingToken === start))
    slot?.interruption?.close(reason)
  }

  /** Closes the context of every long attempt, with at most so much grace. */
  closeAll(reason: CloseReason, graceMs: number): void {
    for (const { interruption } of this.#slots) interruption?.close(reason, graceMs)
  }

  #lasting(): readonly Slot[] {
    return this.#slots.filter(({ state }) => !ENDING.includes(state))
  }

  #grow(by: number): void {
    const more = Array.from({ length: Math.max(0, by) }, () => new Slot(++this.#numbered, this.#clock))
    this.#slots = [...this.#slots, ...more]
    if (this.#begun) this.begin()
  }

  #end(slot: Slot, state: Terminating): boolean {
    if (slot.state === 'TERMINATED' || slot.state === state || slot.state === 'TERMINATING_PARENT_CTX_CLOSED') {
      return false
    }
    if (slot.state === 'TERMINATING_STOP_SIGNAL' && state === 'TERMINATING_TASK_CH_CLOSED') return false
    const ending = ENDING.includes(slot.state)
    slot.moveTo(state)
    if (slot.task !== undefined) return !ending
    const at = this.#idle.indexOf(slot)
    if (at >= 0) this.#idle.splice(at, 1)
    slot.moveTo('TERMINATED')
    slot.close()
    return !ending
  }
}

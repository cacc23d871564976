// One attempt while it lasts: the context that its handler sees, and the state that it is in.
import type { AttemptState, Log, Progress, TaskContext, TaskId } from '@bullpen/contract'
import { ATTEMPT_TRANSITIONS } from './attempt-machine.ts'
import { escaped, type Outcome } from './outcome.ts'
import type { TakenTask } from './ports.ts'
import type { Reading } from './reading.ts'
import { assertTransition } from './state-machine.ts'

/** Where a handler runs that can be signalled from outside, and killed. */
interface Interruptible {
  signal(reason: Error): void
  kill(): void
}

/** What an attempt needs of the pool that runs it. */
export interface AttemptHost {
  readonly poolSignal: AbortSignal
  readonly resources: object
  /** A log whose lines carry these fields. */
  readonly logFor: (fields: object) => Log
}

/**
 * A class, where the rest are functions: signal and log are made when first read, from the prototype's getters, so that
 * a task that reads neither pays for neither.
 */
export class Attempt implements TaskContext {
  readonly id: TaskId
  readonly name: TaskContext['name']
  readonly start: number
  readonly attempt: number
  readonly input: unknown
  /** As stored, for an isolate to parse again. */
  readonly rawInput: unknown
  readonly meta: Readonly<Record<string, string>>
  readonly correlationId: string | undefined
  readonly resources: object
  readonly poolSignal: AbortSignal
  readonly #taken: TakenTask
  readonly #host: AttemptHost
  readonly #reading: Reading
  readonly #beganAt: number
  #state: AttemptState = 'NEW'
  #controller: AbortController | undefined
  #abortReason: Error | undefined
  #log: Log | undefined
  #beat: (() => void) | undefined
  #onEscape: ((error: unknown) => void) | undefined
  #escapee: Outcome | undefined
  #isolate: Interruptible | undefined

  constructor(taken: TakenTask, reading: Reading, beganAt: number, host: AttemptHost) {
    this.id = taken.id
    this.name = reading.runnable.definition.name
    this.start = taken.start
    this.attempt = taken.attempt
    this.input = reading.input
    this.rawInput = reading.rawInput
    this.meta = reading.meta
    this.correlationId = reading.correlationId
    this.resources = host.resources
    this.poolSignal = host.poolSignal
    this.#taken = taken
    this.#host = host
    this.#reading = reading
    this.#beganAt = beganAt
  }

  get state(): AttemptState {
    return this.#state
  }

  /** @throws BullpenError `illegal_transition`. */
  moveTo(state: AttemptState): void {
    assertTransition('an attempt', ATTEMPT_TRANSITIONS, this.#state, state)
    this.#state = state
  }

  get enqueuedAt(): Date {
    return new Date(this.#taken.enqueuedAt)
  }

  get startedAt(): Date {
    return new Date(this.#beganAt)
  }

  get signal(): AbortSignal {
    if (this.#reading.runnable.definition.kind === 'short') return this.poolSignal
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#abortReason !== undefined) this.#controller.abort(this.#abortReason)
    }
    return this.#controller.signal
  }

  /** Tells the handler that its attempt is to end; a signal that nobody has read yet is born aborted. */
  abort(reason: Error): void {
    this.#abortReason ??= reason
    this.#controller?.abort(reason)
    this.#isolate?.signal(reason)
  }

  /** The isolate that runs the handler: it hears of the signal, also of one that came before it. */
  onInterrupt(isolate: Interruptible): void {
    this.#isolate = isolate
    if (this.#abortReason !== undefined) isolate.signal(this.#abortReason)
  }

  /** Ends the isolate; an inline handler can't be killed. True when there was one to kill. */
  kill(): boolean {
    this.#isolate?.kill()
    return this.#isolate !== undefined
  }

  get log(): Log {
    this.#log ??= this.#host.logFor({
      task: this.name,
      id: this.id,
      start: this.start,
      attempt: this.attempt,
      ...(this.correlationId === undefined ? {} : { correlationId: this.correlationId }),
    })
    return this.#log
  }

  /** What the first error that escaped the handler makes of this attempt. */
  get escapee(): Outcome | undefined {
    return this.#escapee
  }

  /** Who hears of an error that escaped the handler, at once. */
  onEscape(listener: (error: unknown) => void): void {
    this.#onEscape = listener
  }

  /** False when the attempt has ended already: then the error changes nothing. */
  escape(error: unknown): boolean {
    if (this.#state !== 'IN_PROCESS') return false
    this.#escapee ??= escaped(error)
    this.#onEscape?.(error)
    return true
  }

  get fencing(): number {
    return this.start
  }

  /** Who counts the signs of life; nobody for a short task. */
  onBeat(beat: () => void): void {
    this.#beat = beat
  }

  // Getters, so that a handler may take them out of their context: `({ input, progress }) => …`.

  get heartbeat(): TaskContext['heartbeat'] {
    return () => this.#beat?.()
  }

  get checkpoint(): TaskContext['checkpoint'] {
    return () => {
      if (this.#abortReason !== undefined) throw this.#abortReason
      if (this.#reading.runnable.definition.kind === 'short') this.poolSignal.throwIfAborted()
      this.#beat?.()
    }
  }

  get progress(): TaskContext['progress'] {
    return (fraction, note) => this.#report(fraction, note)
  }

  async #report(fraction: number, note: string | undefined): Promise<void> {
    if (!(fraction >= 0 && fraction <= 1)) {
      throw new RangeError(`progress is a fraction from 0 to 1; got ${fraction}`)
    }
    const progress: Progress = note === undefined ? { fraction } : { fraction, note }
    this.#beat?.()
    // An attempt that has ended owns the task no more: another start may be reporting by now.
    if (this.#state === 'IN_PROCESS') await this.#taken.progress(progress)
  }
}

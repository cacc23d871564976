// One attempt while it lasts: the context that its handler sees, and the state that it is in.
import {
  type AttemptState,
  BullpenError,
  type ChildOptions,
  type HandlerLog,
  type Log,
  type Progress,
  type TaskContext,
  type TaskId,
} from '@bullpen/contract'
import { handlerLog } from '@bullpen/contract/internal'
import { assertTransition } from '../pool/state-machine.ts'
import type { Outcome } from '../ports/attempt-result.ts'
import type { NewTask } from '../ports/broker.ts'
import type { Clock } from '../ports/clock.ts'
import type { FetchedTask } from '../ports/consumer.ts'
import type { EventSink } from '../ports/event-sink.ts'
import type { StepLookup, StepStore } from '../ports/steps.ts'
import { ATTEMPT_TRANSITIONS } from './attempt-machine.ts'
import { childTask, type Sha256 } from './child-task.ts'
import type { DecodedTask } from './decode.ts'
import { uncaughtOutcome } from './outcome.ts'
import type { Registry } from './registry.ts'
import { Snooze } from './snooze.ts'
import { Steps, stepKey } from './steps.ts'

/** Where a handler runs that can be signalled from outside, and killed. */
interface Interruptible {
  signal(reason: Error): void
  kill(): void
}

/** What an attempt needs of the pool that runs it. */
export interface AttemptHost {
  readonly registry: Registry
  readonly clock: Clock
  readonly sink: EventSink
  readonly poolSignal: AbortSignal
  readonly resources: object
  /** A log whose lines carry these fields. */
  readonly logFor: (fields: object) => Log
  /** As the broker's. */
  readonly enqueue: (task: NewTask) => Promise<void>
  readonly sha256: Sha256
  /** The most bytes that an output, or the result of a step, may take as JSON. */
  readonly maxOutputBytes: number
}

const NO_STEPS: ReadonlyMap<string, string> = new Map()

/**
 * A class, where the rest are functions: what a handler may read is made by the prototype's getters when it is read, so
 * that a task pays for what it uses. They return functions of their own, so that a handler may take them out of their
 * context: `({ input, progress }) => …`.
 */
export class Attempt implements TaskContext, StepStore {
  readonly fetched: FetchedTask
  readonly decoded: DecodedTask
  /** On the monotonic clock. */
  readonly startedAtMonotonic: number
  /** The last sign of life, on the monotonic clock; the beginning is one. */
  lastHeartbeatAt: number
  readonly #host: AttemptHost
  #state: AttemptState = 'NEW'
  #controller: AbortController | undefined
  #abortReason: Error | undefined
  #log: HandlerLog | undefined
  #onEscape: ((outcome: Outcome & { kind: 'panicked' }) => void) | undefined
  #escapee: (Outcome & { kind: 'panicked' }) | undefined
  #isolate: Interruptible | undefined
  #children: Set<TaskId> | undefined
  #steps: Steps | undefined
  #storedSteps: Promise<ReadonlyMap<string, string>> | undefined
  #hasLostLock = false

  constructor(fetched: FetchedTask, decoded: DecodedTask, startedAtMonotonic: number, host: AttemptHost) {
    this.fetched = fetched
    this.decoded = decoded
    this.startedAtMonotonic = startedAtMonotonic
    this.lastHeartbeatAt = startedAtMonotonic
    this.#host = host
  }

  get state(): AttemptState {
    return this.#state
  }

  /** @throws BullpenError `illegal_transition`. */
  moveTo(state: AttemptState): void {
    assertTransition('an attempt', ATTEMPT_TRANSITIONS, this.#state, state)
    this.#state = state
  }

  get id(): TaskId {
    return this.fetched.id
  }

  get name(): TaskContext['name'] {
    return this.decoded.runnable.definition.name
  }

  get start(): number {
    return this.fetched.fencingToken
  }

  get fencingToken(): number {
    return this.fetched.fencingToken
  }

  get attempt(): number {
    return this.fetched.attempt
  }

  get input(): unknown {
    return this.decoded.input
  }

  get meta(): Readonly<Record<string, string>> {
    return this.decoded.meta
  }

  get correlationId(): string | undefined {
    return this.decoded.correlationId
  }

  get resources(): object {
    return this.#host.resources
  }

  get poolSignal(): AbortSignal {
    return this.#host.poolSignal
  }

  get enqueuedAt(): Date {
    return new Date(this.fetched.enqueuedAt)
  }

  get startedAt(): Date {
    return new Date(this.#host.clock.at(this.startedAtMonotonic))
  }

  get signal(): AbortSignal {
    if (this.decoded.runnable.definition.kind === 'short') return this.poolSignal
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

  get log(): HandlerLog {
    this.#log ??= handlerLog(
      this.#host.logFor({
        task: this.name,
        id: this.id,
        start: this.start,
        attempt: this.attempt,
        ...(this.correlationId === undefined ? {} : { correlationId: this.correlationId }),
      }),
    )
    return this.#log
  }

  /** What the first error that escaped the handler makes of this attempt. */
  get uncaught(): Outcome | undefined {
    return this.#escapee
  }

  /** Who hears at once that an error has escaped the handler. */
  onUncaught(listener: (outcome: Outcome & { kind: 'panicked' }) => void): void {
    this.#onEscape = listener
  }

  /** False when the attempt has ended already: then the error changes nothing. */
  attributeUncaught(error: unknown): boolean {
    if (this.#state !== 'IN_PROCESS') return false
    const outcome = this.#escapee ?? uncaughtOutcome(error)
    this.#escapee = outcome
    this.#onEscape?.(outcome)
    return true
  }

  #recordHeartbeat(): void {
    this.lastHeartbeatAt = this.#host.clock.monotonic()
  }

  get heartbeat(): TaskContext['heartbeat'] {
    return () => this.#recordHeartbeat()
  }

  get checkpoint(): TaskContext['checkpoint'] {
    return () => {
      if (this.#abortReason !== undefined) throw this.#abortReason
      if (this.decoded.runnable.definition.kind === 'short') this.poolSignal.throwIfAborted()
      this.#recordHeartbeat()
    }
  }

  get snooze(): TaskContext['snooze'] {
    return (delay) => {
      throw new Snooze(delay)
    }
  }

  get progress(): TaskContext['progress'] {
    return (fraction, note) => this.#report(fraction, note)
  }

  get enqueue(): TaskContext['enqueue'] {
    return (definition, input, options) => this.enqueueChild(definition.name, input, options)
  }

  /** As {@link TaskContext.enqueue}, with the child's definition by its name. */
  async enqueueChild(name: string, input: unknown, options: ChildOptions = {}): Promise<TaskId> {
    const { registry, clock, enqueue, sink, sha256 } = this.#host
    if (this.#state !== 'IN_PROCESS') {
      throw new BullpenError('wrong_state', `${this.id} enqueued ${name} after its attempt had ended: ${this.#state}`)
    }
    const definition = registry.get(name)?.definition
    if (definition === undefined) {
      throw new BullpenError(
        'unknown_task',
        `the catalogue of this slot has no task ${name}, so nothing can enqueue it`,
      )
    }
    const child = childTask(this, definition, input, options, clock.now(), sha256)
    if (this.#children?.has(child.id)) {
      throw new BullpenError(
        'duplicate_key',
        `${this.id} has enqueued a ${name} with the key ${JSON.stringify(options.key ?? '')} already; give each child a key of its own`,
      )
    }
    this.#children ??= new Set()
    this.#children.add(child.id)
    try {
      await enqueue(child)
    } catch (error) {
      // It may be tried again: the id is the same.
      this.#children.delete(child.id)
      throw error
    }
    sink({ event: 'task.enqueued', queue: child.queue, task: child.task, id: child.id })
    return child.id
  }

  get once(): TaskContext['once'] {
    this.#steps ??= new Steps(this)
    return this.#steps.once
  }

  async findStep(step: string): Promise<StepLookup> {
    if (this.#state !== 'IN_PROCESS') {
      throw new BullpenError('wrong_state', `${this.id} began step ${step} after its attempt had ended: ${this.#state}`)
    }
    this.#recordHeartbeat()
    // Before the first start there was none that could have finished a step.
    this.#storedSteps ??= this.start === 1 ? Promise.resolve(NO_STEPS) : this.fetched.steps.read()
    try {
      const kept = await this.#storedSteps
      return { key: stepKey(this.id, step, this.#host.sha256), result: kept.get(step) }
    } catch (error) {
      this.#storedSteps = undefined
      throw error
    }
  }

  async storeStep(step: string, result: string): Promise<string> {
    const { maxOutputBytes } = this.#host
    if (result.length > maxOutputBytes) {
      throw new BullpenError(
        'invalid_result',
        `the result of step ${step} takes ${result.length} bytes as JSON; the limit is ${maxOutputBytes}`,
      )
    }
    this.#recordHeartbeat()
    const kept = await this.fetched.steps.keep(step, result)
    if (kept !== undefined) return kept
    this.#hasLostLock = true
    throw new BullpenError(
      'lock_lost',
      `the result of step ${step} was not kept: ${this.id} may have another owner by now`,
    )
  }

  /** It was told so when it kept a step, which may be sooner than its pool is. */
  get hasLostLock(): boolean {
    return this.#hasLostLock
  }

  async #report(fraction: number, note: string | undefined): Promise<void> {
    if (!(fraction >= 0 && fraction <= 1)) {
      throw new RangeError(`progress is a fraction from 0 to 1; got ${fraction}`)
    }
    const progress: Progress = note === undefined ? { fraction } : { fraction, note }
    this.#recordHeartbeat()
    // An attempt that has ended owns the task no more: another start may be reporting by now.
    if (this.#state === 'IN_PROCESS') await this.fetched.progress(progress)
  }
}

// Represents a running attempt: its state, and the context that its handler receives.
import {
  type AttemptState,
  BullpenError,
  type ChildOptions,
  type Enqueued,
  type HandlerLog,
  type Log,
  type Progress,
  type RetryPolicy,
  type TaskContext,
  type TaskDefinition,
  type TaskId,
} from '@bullpen/contract'
import { handlerLog, isStored } from '@bullpen/contract/internal'
import { ATTEMPT_TRANSITIONS } from '../machines/attempt-machine.ts'
import { assertTransition } from '../machines/state-machine.ts'
import type { Outcome } from '../ports/attempt-result.ts'
import type { Clock } from '../ports/clock.ts'
import type { FetchedTask } from '../ports/consumer.ts'
import type { EventSink } from '../ports/event-sink.ts'
import type { NewTask } from '../ports/new-task.ts'
import type { StepLookup, StepStore } from '../ports/steps.ts'
import { childTask, type Sha256 } from '../task/child-task.ts'
import { Snooze, uncaughtOutcome } from '../verdict/outcome.ts'
import { Steps, stepKey } from './steps.ts'
import type { Timeouts } from './timeouts.ts'

/** A task whose stored envelope has been decoded and checked. */
export interface DecodedTask {
  readonly definition: TaskDefinition
  /** The input as parsed by the definition's schema. */
  readonly input: unknown
  /** The input as the caller sent it. */
  readonly rawInput: unknown
  readonly meta: Readonly<Record<string, string>>
  readonly correlationId: string | undefined
  /** The name of the API key for which the task is counted. */
  readonly apiKeyName: string | undefined
  readonly timeouts: Timeouts
  /** The definition's policy, with the caller's own backoff if there is one. */
  readonly retry: RetryPolicy
  /** When the total timeout expires, in ms since 1970. */
  readonly totalTimeoutAt: number | 'none'
}

/** An isolate that runs the handler. */
interface Isolate {
  signal(reason: Error): void
  kill(): void
}

/** What an attempt needs from its pool or processor. */
export interface AttemptHost {
  readonly registry: { get(task: string): { readonly definition: TaskDefinition } | undefined }
  readonly clock: Clock
  readonly sink: EventSink
  /** Aborts when the pool's drain reaches its deadline. Defaults to a signal that never aborts. */
  readonly poolSignal?: AbortSignal
  readonly resources: object
  /** Creates a log whose lines include these fields. */
  readonly logFor: (fields: object) => Log
  /** Works like the broker's `enqueue`. */
  readonly enqueue: (task: NewTask) => Promise<Enqueued>
  readonly sha256: Sha256
  /** The size limit of an output and of a step's result, in bytes as JSON. */
  readonly maxOutputBytes: number
}

const NEVER_ABORTED = new AbortController().signal

const NO_STEPS: ReadonlyMap<string, string> = new Map()

/**
 * The state of a running attempt, and the context that its handler receives. This is a class, so that its getters create each
 * value only when the handler reads it and a task pays only for what it uses. The getters return free functions, so a handler can
 * destructure its context: `({ input, progress }) => …`.
 */
export class Attempt implements TaskContext, StepStore {
  readonly fetched: FetchedTask
  readonly decoded: DecodedTask
  /** When the attempt started, on the monotonic clock. */
  readonly startedAtMonotonic: number
  /** The time of the last heartbeat, on the monotonic clock. The start of the attempt counts as a heartbeat. */
  lastHeartbeatAt: number
  readonly #host: AttemptHost
  #state: AttemptState = 'NEW'
  #controller: AbortController | undefined
  #abortReason: Error | undefined
  #log: HandlerLog | undefined
  #onUncaught: ((outcome: Outcome & { kind: 'panicked' }) => void) | undefined
  #uncaught: (Outcome & { kind: 'panicked' }) | undefined
  #isolate: Isolate | undefined
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

  /** Moves the attempt to another state. @throws BullpenError `illegal_transition`. */
  moveTo(state: AttemptState): void {
    assertTransition('an attempt', ATTEMPT_TRANSITIONS, this.#state, state)
    this.#state = state
  }

  get id(): TaskId {
    return this.fetched.id
  }

  get name(): TaskContext['name'] {
    return this.decoded.definition.name
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

  get apiKeyName(): string | undefined {
    return this.decoded.apiKeyName
  }

  get resources(): object {
    return this.#host.resources
  }

  get poolSignal(): AbortSignal {
    return this.#host.poolSignal ?? NEVER_ABORTED
  }

  get enqueuedAt(): Date {
    return new Date(this.fetched.enqueuedAt)
  }

  get startedAt(): Date {
    return new Date(this.#host.clock.at(this.startedAtMonotonic))
  }

  get signal(): AbortSignal {
    if (this.decoded.definition.kind === 'short') return this.poolSignal
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#abortReason !== undefined) this.#controller.abort(this.#abortReason)
    }
    return this.#controller.signal
  }

  /** Aborts the handler's signal. A handler that has not read its signal yet will find it already aborted. */
  abort(reason: Error): void {
    this.#abortReason ??= reason
    this.#controller?.abort(reason)
    this.#isolate?.signal(reason)
  }

  /** Sets the isolate that runs the handler. The isolate receives the abort even if the attempt was aborted earlier. */
  runIn(isolate: Isolate): void {
    this.#isolate = isolate
    if (this.#abortReason !== undefined) isolate.signal(this.#abortReason)
  }

  /** Kills the isolate. Returns false if there is none, because an inline handler cannot be killed. */
  kill(): boolean {
    this.#isolate?.kill()
    return this.#isolate !== undefined
  }

  get log(): HandlerLog {
    this.#log ??= handlerLog(
      this.#host.logFor({
        task: this.name,
        id: this.id,
        fencingToken: this.fencingToken,
        attempt: this.attempt,
        ...(this.correlationId === undefined ? {} : { correlationId: this.correlationId }),
      }),
    )
    return this.#log
  }

  /** The outcome of the first uncaught error. */
  get uncaught(): Outcome | undefined {
    return this.#uncaught
  }

  /** Registers a listener to be called as soon as an uncaught error is attributed to this attempt. */
  onUncaught(listener: (outcome: Outcome & { kind: 'panicked' }) => void): void {
    this.#onUncaught = listener
  }

  /** Attributes an uncaught error to this attempt. Does nothing and returns false if the attempt has ended. */
  attributeUncaught(error: unknown): boolean {
    if (this.#state !== 'IN_PROCESS') return false
    const outcome = this.#uncaught ?? uncaughtOutcome(error)
    this.#uncaught = outcome
    this.#onUncaught?.(outcome)
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
      if (this.decoded.definition.kind === 'short') this.poolSignal.throwIfAborted()
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

  /** Works like {@link TaskContext.enqueue}, but takes the name of the child's definition. */
  async enqueueChild(name: string, input: unknown, options: ChildOptions = {}): Promise<Enqueued> {
    const { registry, clock, enqueue, sink, sha256 } = this.#host
    if (this.#state !== 'IN_PROCESS') {
      throw new BullpenError(
        'wrong_state',
        `${this.id} cannot enqueue ${name}: the attempt has already ended as ${this.#state}`,
      )
    }
    const definition = registry.get(name)?.definition
    if (definition === undefined) {
      throw new BullpenError(
        'unknown_task',
        `${this.id} cannot enqueue ${name}: this worker's catalogue does not contain a task with this name`,
      )
    }
    const child = childTask(this, definition, input, options, clock.now(), sha256)
    if (this.#children?.has(child.id)) {
      throw new BullpenError(
        'duplicate_child_key',
        `${this.id} has already enqueued ${name} with the childKey ${JSON.stringify(options.childKey ?? '')}; give each child a different childKey`,
      )
    }
    this.#children ??= new Set()
    this.#children.add(child.id)
    let enqueued: Enqueued
    try {
      enqueued = await enqueue(child)
    } catch (error) {
      // The handler may try again with the same id. If this call has stored the child, the next call returns the same action.
      this.#children.delete(child.id)
      throw error
    }
    // A child that an earlier attempt stored is not counted again.
    if (isStored(enqueued.action)) {
      sink({ event: 'task.enqueued', queue: child.queue, task: child.task, id: child.id })
    }
    return enqueued
  }

  get once(): TaskContext['once'] {
    this.#steps ??= new Steps(this)
    return this.#steps.once
  }

  async findStep(step: string): Promise<StepLookup> {
    if (this.#state !== 'IN_PROCESS') {
      throw new BullpenError(
        'wrong_state',
        `${this.id} cannot begin step ${step}: the attempt has already ended as ${this.#state}`,
      )
    }
    this.#recordHeartbeat()
    // The first attempt skips the round trip, because no steps can be stored yet.
    this.#storedSteps ??= this.fencingToken === 1 ? Promise.resolve(NO_STEPS) : this.fetched.steps.read()
    try {
      const stored = await this.#storedSteps
      return { key: stepKey(this.id, step, this.#host.sha256), result: stored.get(step) }
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
    const stored = await this.fetched.steps.keep(step, result)
    if (stored !== undefined) return stored
    this.#hasLostLock = true
    throw new BullpenError(
      'lock_lost',
      `the result of step ${step} was not stored because this attempt has lost the lock on ${this.id}`,
    )
  }

  /** Whether an attempt to store a step has shown that the lock is lost. The consumer may not have noticed yet. */
  get hasLostLock(): boolean {
    return this.#hasLostLock
  }

  async #report(fraction: number, note: string | undefined): Promise<void> {
    if (!(fraction >= 0 && fraction <= 1)) {
      throw new RangeError(`invalid progress: expected a fraction from 0 to 1, got ${fraction}`)
    }
    const progress: Progress = note === undefined ? { fraction } : { fraction, note }
    this.#recordHeartbeat()
    // An attempt that has ended no longer owns the task, and the next attempt may already report its own progress.
    if (this.#state === 'IN_PROCESS') await this.fetched.progress(progress)
  }
}

// Represents a running attempt: its state, and the context that its handler receives.
import {
  type AttemptState,
  BullpenError,
  type ChildOptions,
  type Enqueued,
  type HandlerLog,
  type Log,
  type RegisteredOptions,
  type TaskContext,
  type TaskId,
  type TraceContext,
} from '@bullpen/contract'
import { handlerLog, readGroupId } from '@bullpen/contract/internal'
import { progressEvent } from '../events/event-bodies.ts'
import { reportingLog } from '../events/reporting-log.ts'
import { ATTEMPT_TRANSITIONS } from '../machines/attempt-machine.ts'
import { assertTransition } from '../machines/state-machine.ts'
import type { Outcome } from '../ports/attempt-result.ts'
import type { RunAccess } from '../ports/broker/runs.ts'
import type { Clock } from '../ports/clock.ts'
import type { FetchedTask } from '../ports/consumer.ts'
import type { RegisteredKind, StepLookup, StepStore } from '../ports/steps.ts'
import type { AttemptSpan } from '../ports/tracing.ts'
import { type Redactor, redactingLog, redactorOf } from '../redaction/redactor.ts'
import type { Sha256 } from '../task/digest.ts'
import { decodeCall, encodeCall } from '../task/payload/json-text.ts'
import { Snooze, uncaughtOutcome } from '../verdict/outcome.ts'
import { ChildTasks, type ChildTasksHost } from './child-tasks.ts'
import type { DecodedTask } from './decode.ts'
import { outputLimit } from './output.ts'
import { portableLog } from './portable-fields.ts'
import { progressOf } from './progress.ts'
import { RegisteredTasks } from './registered-tasks.ts'
import { Steps, stepKey } from './steps.ts'

/** An isolate that runs the handler. */
interface Isolate {
  signal(reason: Error): void
  kill(): void
}

/** What an attempt needs from its pool or processor. */
export interface AttemptHost extends ChildTasksHost {
  /** Aborts when the pool's drain reaches its deadline. Defaults to a signal that never aborts. */
  readonly poolSignal?: AbortSignal
  readonly resources: object
  /** Creates a log whose lines include these fields. */
  readonly logFor: (fields: object) => Log
  /** The size limit of an output and of a step's result, in bytes as JSON. */
  readonly maxOutputBytes: number
  /** Where the sources and reductions of pipelines find their runs. Undefined if the store has no pipelines. */
  readonly runs?: RunAccess | undefined
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
  #span: AttemptSpan | undefined
  #children: ChildTasks | undefined
  #steps: Steps | undefined
  #storedSteps: Promise<ReadonlyMap<string, string>> | undefined
  #hasLostLock = false
  #registered: RegisteredTasks | undefined

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

  get traceContext(): TraceContext | undefined {
    return this.#span?.traceContext ?? this.decoded.traceContext
  }

  /** Makes the attempt a part of its trace. */
  set span(span: AttemptSpan) {
    this.#span = span
  }

  get group(): TaskContext['group'] {
    const { group, followUpOf } = this.decoded
    if (group !== undefined || followUpOf === undefined) return group
    const followed = readGroupId(followUpOf)
    return followed && { id: followed.id }
  }

  get followUpOf(): TaskContext['followUpOf'] {
    return this.decoded.followUpOf
  }

  /** The run of the task, if the task belongs to a pipeline and the store has pipelines. */
  get run(): { readonly access: RunAccess; readonly place: NonNullable<DecodedTask['run']> } | undefined {
    const { runs: access } = this.#host
    const place = this.decoded.run
    return access === undefined || place === undefined ? undefined : { access, place }
  }

  get clock(): Clock {
    return this.#host.clock
  }

  get sha256(): Sha256 {
    return this.#host.sha256
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
    if (this.#log === undefined) {
      const log = this.#host.logFor({
        task: this.name,
        id: this.id,
        fencingToken: this.fencingToken,
        attempt: this.attempt,
        ...(this.correlationId === undefined ? {} : { correlationId: this.correlationId }),
      })
      const { events } = this.fetched
      const written = events === undefined ? log : reportingLog(log, events, () => this.#state === 'IN_PROCESS')
      const { redactor } = this
      this.#log = handlerLog(portableLog(redactor === undefined ? written : redactingLog(written, redactor)))
    }
    return this.#log
  }

  /** Removes the sensitive values of the input. Undefined if the definition marks nothing as sensitive. */
  get redactor(): Redactor | undefined {
    const { definition, rawInput, input } = this.decoded
    return redactorOf(definition, [rawInput, input])
  }

  /** The outcome of the first uncaught error. */
  get uncaught(): Outcome | undefined {
    return this.#uncaught
  }

  /** Registers a listener to be called as soon as an uncaught error is attributed to this attempt, or now if one has been. */
  onUncaught(listener: (outcome: Outcome & { kind: 'panicked' }) => void): void {
    this.#onUncaught = listener
    if (this.#uncaught !== undefined) listener(this.#uncaught)
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
    return async ({ name }, input, options) => this.enqueueChild(name, ...asStored(name, input, options))
  }

  /** Works like {@link TaskContext.enqueue}, but takes the name of the child's definition. */
  async enqueueChild(name: string, input: unknown, options: ChildOptions = {}): Promise<Enqueued> {
    this.#children ??= new ChildTasks(this, this.#host)
    return this.#children.enqueue(name, input, options)
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
        `the result of step ${step} takes ${result.length} bytes as JSON; ${outputLimit(maxOutputBytes)}`,
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

  get onSuccess(): TaskContext['onSuccess'] {
    return ({ name }, input, options) => this.addFollowUp(name, ...asStored(name, input, options))
  }

  /** Works like {@link TaskContext.onSuccess}, but takes the name of the follow-up's definition. */
  addFollowUp(name: string, input: unknown, options: RegisteredOptions = {}): void {
    this.#registered ??= new RegisteredTasks(this, this.#host.registry)
    this.#registered.onSuccess(name, input, options)
  }

  /**
   * Adds the follow-ups that the definition has for a success with this output. @throws BullpenError `invalid_follow_up` or
   * `payload_too_large`.
   */
  addDefinedFollowUps(output: unknown): void {
    if (this.decoded.definition.followUps?.success.length === 0) return
    this.#registered ??= new RegisteredTasks(this, this.#host.registry)
    this.#registered.addDefined(this.decoded, output)
  }

  /** The lines of the follow-ups that the attempt has added for a success, or undefined if there are none. */
  get followUps(): string | undefined {
    return this.#registered?.followUps
  }

  get onFailure(): TaskContext['onFailure'] {
    return async ({ name }, input, options) => this.registerTask('failure', name, ...asStored(name, input, options))
  }

  get onEnd(): TaskContext['onEnd'] {
    return async ({ name }, input, options) => this.registerTask('end', name, ...asStored(name, input, options))
  }

  get compensate(): TaskContext['compensate'] {
    return async ({ name }, input, options) =>
      this.registerTask('compensation', name, ...asStored(name, input, options))
  }

  /** Works like {@link TaskContext.compensate} or its counterpart for the kind, but takes the name of the registered task's definition. */
  async registerTask(
    kind: RegisteredKind,
    name: string,
    input: unknown,
    options: RegisteredOptions = {},
  ): Promise<void> {
    this.#recordHeartbeat()
    this.#registered ??= new RegisteredTasks(this, this.#host.registry)
    if (await this.#registered.register(kind, name, input, options)) return
    this.#hasLostLock = true
    throw new BullpenError(
      'lock_lost',
      `the ${kind === 'compensation' ? kind : 'follow-up'} ${name} was not registered because this attempt has lost the lock on ${this.id}`,
    )
  }

  /** Whether this attempt has registered a compensation, or a follow-up of a failure or of any end. */
  get hasRegistered(): boolean {
    return this.#registered?.hasRegistered === true
  }

  /** Whether an attempt to store a step has shown that the lock is lost. The consumer may not have noticed yet. */
  get hasLostLock(): boolean {
    return this.#hasLostLock
  }

  async #report(fraction: number, note: string | undefined): Promise<void> {
    const progress = progressOf(fraction, note)
    this.#recordHeartbeat()
    // An attempt that has ended no longer owns the task, and the next attempt may already report its own progress.
    if (this.#state !== 'IN_PROCESS') return
    const { events } = this.fetched
    events?.report(progressEvent(events.about, progress))
    await this.fetched.progress(progress)
  }
}

/** Returns the arguments of a call as an isolate would send them. */
function asStored<O extends object>(
  name: string,
  input: unknown,
  options: O | undefined,
): readonly [input: unknown, options: O | undefined] {
  const call = decodeCall<O>(encodeCall(name, { input, options }))
  return [call.input, call.options]
}

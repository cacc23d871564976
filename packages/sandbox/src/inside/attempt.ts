// Represents an attempt inside its isolate: the handler's context, and whether the attempt is over.
import type {
  ChildOptions,
  Enqueued,
  HandlerLog,
  Log,
  RegisteredOptions,
  TaskContext,
  TaskDefinition,
} from '@bullpen/contract'
import { handlerLog, refusePrototypeKeys } from '@bullpen/contract/isolate'
import {
  decodeCall,
  encodeCall,
  type IsolatedTask,
  messageOf,
  packFields,
  progressOf,
  type RegisteredKind,
  Snooze,
  type StepLookup,
  type StepStore,
  Steps,
} from '@bullpen/engine/isolate'
import type { AttemptRef, FromIsolate } from '../protocol/messages.ts'
import type { PendingCalls } from './pending-calls.ts'

export interface InnerHost {
  /** Sends a message to the worker. @throws DataCloneError if part of the message can't be cloned. */
  readonly send: (message: FromIsolate) => void
  readonly pendingCalls: PendingCalls
  readonly resources: object
}

export class InnerAttempt implements StepStore {
  readonly of: AttemptRef
  readonly rawInput: unknown
  over = false
  readonly #task: IsolatedTask
  readonly #host: InnerHost
  readonly #controller = new AbortController()

  constructor(task: IsolatedTask, host: InnerHost) {
    const { id, fencingToken, attempt } = task
    this.of = { id, task: task.task, fencingToken, attempt }
    this.rawInput = task.input
    this.#task = task
    this.#host = host
  }

  abort(reason: Error): void {
    this.#controller.abort(reason)
  }

  /** Returns the handler's context, a plain object of values and arrow functions that a handler can destructure. */
  contextFor(definition: TaskDefinition, input: unknown): TaskContext {
    const { id, fencingToken, attempt, meta, correlationId, traceContext, group, followUpOf } = this.#task
    const { enqueuedAt, startedAt } = this.#task
    const { signal } = this.#controller
    return {
      id,
      name: definition.name,
      input,
      attempt,
      fencingToken,
      meta,
      enqueuedAt: new Date(enqueuedAt),
      startedAt: new Date(startedAt),
      correlationId,
      traceContext,
      group,
      followUpOf,
      signal,
      // A drain of the pool reaches an isolate through the attempt's own signal.
      poolSignal: signal,
      log: this.#log(),
      resources: this.#host.resources,
      heartbeat: () => this.#heartbeat(),
      checkpoint: () => {
        signal.throwIfAborted()
        this.#heartbeat()
      },
      progress: (fraction, note) => this.#report(fraction, note),
      snooze: (delay) => {
        throw new Snooze(delay)
      },
      enqueue: (child, childInput, options) => this.#enqueue(child.name, childInput, options),
      onSuccess: (next, nextInput, options) => {
        const values = encodeCall(next.name, { input: nextInput, options })
        // The worker checks everything else, but no response to this message could throw where the handler calls.
        const call = decodeCall<RegisteredOptions>(values)
        refusePrototypeKeys(call.options)
        refusePrototypeKeys(call.input, ['input'])
        this.#host.send({ kind: 'onSuccess', of: this.of, task: next.name, values })
      },
      onFailure: (next, nextInput, options) => this.#register('failure', next.name, nextInput, options),
      onEnd: (next, nextInput, options) => this.#register('end', next.name, nextInput, options),
      compensate: (undo, undoInput, options) => this.#register('compensation', undo.name, undoInput, options),
      once: new Steps(this).once,
    }
  }

  async findStep(step: string): Promise<StepLookup> {
    const { send, pendingCalls } = this.#host
    return (await pendingCalls.call((call) => send({ kind: 'findStep', of: this.of, call, step }))) as StepLookup
  }

  async storeStep(step: string, result: string): Promise<string> {
    const { send, pendingCalls } = this.#host
    return String(await pendingCalls.call((call) => send({ kind: 'storeStep', of: this.of, call, step, result })))
  }

  #log(): HandlerLog {
    const at = (level: keyof Log) => (fields: object, message: string) => {
      const line = { kind: 'log', of: this.of, level, fields: packFields(fields), message: messageOf(message) } as const
      this.#host.send(line)
    }
    return handlerLog({ debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') })
  }

  #heartbeat(): void {
    this.#host.send({ kind: 'heartbeat', of: this.of })
  }

  /**
   * Asks the worker to enqueue a child. The worker validates the input and creates the id, because only the worker has the
   * catalogue and the list of earlier children.
   */
  async #enqueue(task: string, input: unknown, options: ChildOptions | undefined): Promise<Enqueued> {
    const { send, pendingCalls } = this.#host
    const values = encodeCall(task, { input, options })
    return (await pendingCalls.call((call) => send({ kind: 'enqueue', of: this.of, call, task, values }))) as Enqueued
  }

  async #register(
    on: RegisteredKind,
    task: string,
    input: unknown,
    options: RegisteredOptions | undefined,
  ): Promise<void> {
    const { send, pendingCalls } = this.#host
    const values = encodeCall(task, { input, options })
    await pendingCalls.call((call) => send({ kind: 'register', of: this.of, call, on, task, values }))
  }

  async #report(fraction: number, note: string | undefined): Promise<void> {
    const { send, pendingCalls } = this.#host
    const progress = progressOf(fraction, note)
    await pendingCalls.call((call) => send({ kind: 'progress', of: this.of, call, progress }))
  }
}

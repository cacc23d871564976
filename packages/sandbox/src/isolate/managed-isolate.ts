// Manages one isolate in a pool: starting → idle ⇄ busy → ending → gone.
//
// - An isolate has one run at a time. Each message identifies its attempt. If that attempt has ended, the message is refused or
//   dropped, because another attempt may be running by then.
// - Whatever ends the isolate, only `onExit` reports that it is gone. It does so once, with the first cause that was recorded.
// - An error that escapes an attempt leaves the isolate in an unknown state, so the isolate is replaced.
import { randomUUID } from 'node:crypto'
import { BullpenError, type ChildOptions, type Log, type RegisteredOptions } from '@bullpen/contract'
import type { Clock, IsolateCalls, IsolatedTask } from '@bullpen/engine/internal'
import { decodeCall, fromPortable, type PortableError, toPortable, unpackFields } from '@bullpen/engine/isolate'
import { messageFromIsolate } from '../protocol/envelope.ts'
import { type AttemptRef, type FromIsolate, isSameAttempt } from '../protocol/messages.ts'
import { unpackOutcome } from '../protocol/portable-outcome.ts'
import type { Isolate, IsolateExit, StartIsolate } from './isolate.ts'
import type { Run, RunOwner } from './isolated-run.ts'

/** Why an isolate ended. */
export type EndCause =
  /** The isolate ended by itself: it exited, crashed or received a signal from outside. */
  | IsolateExit['reason']
  /** Its attempt had to be killed. */
  | 'killed'
  /** An error escaped its attempt. */
  | 'escaped_error'
  /** An error escaped an attempt that had already ended. */
  | 'late_escape'
  /** Its resources failed to open. */
  | 'unable_to_start'
  /** A handler's module could not be imported. Node caches the failure, so only a new isolate can try again. */
  | 'import_failed'
  /** Earlier tasks left more than half of its memory limit in use. */
  | 'full'
  /** A task has changed something in it that would change what later tasks do, such as a global or the working directory. */
  | 'touched'
  /** A process with another memory limit was needed. */
  | 'made_room'
  /** The isolate did not have a task for some time. */
  | 'idle'
  | 'closed'

/** The parts of its pool that an isolate needs. */
export interface IsolateHost {
  readonly clock: Clock
  readonly log: Log
  readonly resources: string | undefined
  readonly reportMemory: boolean
  readonly idleMs: number
  readonly startIsolate: StartIsolate
  /** Called when the isolate has imported a handler, which shows that isolates can be started. */
  started(): void
  freed(isolate: ManagedIsolate): void
  gone(isolate: ManagedIsolate, cause: EndCause, of: AttemptRef | undefined): void
  /** Returns whether an isolate with a failed import may be replaced now. */
  mayReplaceBroken(): boolean
}

/** How long an isolate may take to close its resources before it is killed, in ms. */
const CLOSING_MS = 1_000

export class ManagedIsolate implements RunOwner {
  state: 'starting' | 'idle' | 'busy' | 'ending' | 'gone' = 'starting'
  /** Whether the isolate has ever imported a handler. */
  started = false
  readonly memoryLimitBytes: number | undefined
  readonly #host: IsolateHost
  readonly #isolate: Isolate
  readonly #gone = Promise.withResolvers<void>()
  #run: Run | undefined
  #cause: EndCause | undefined
  #stopTimer = (): void => {}

  constructor(host: IsolateHost, memoryLimitBytes: IsolatedTask['memoryLimitBytes']) {
    this.#host = host
    this.memoryLimitBytes = memoryLimitBytes
    const key = randomUUID()
    const listener = {
      read: (received: unknown) => this.#orRefuse(() => messageFromIsolate(received, key)),
      onMessage: (message: FromIsolate) => this.#orRefuse(() => this.#onMessage(message)),
      onExit: (exit: IsolateExit) => this.#onExit(exit),
    }
    this.#isolate = host.startIsolate(listener, memoryLimitBytes)
    this.#isolate.send({ kind: 'open', key, resources: host.resources, reportMemory: host.reportMemory })
  }

  get name(): string {
    return this.#isolate.name
  }

  /** Takes a run. May be called only while the isolate is idle, or while it is starting and has no run yet. */
  take(run: Run): void {
    this.#run = run
    run.owner = this
    if (this.state === 'idle') this.#begin(run)
  }

  signal(_: Run, reason: Error): void {
    if (this.state === 'busy') this.#isolate.send({ kind: 'signal', reason: toPortable(reason) })
  }

  kill(run: Run): void {
    if (this.state === 'starting') {
      this.#run = undefined
      run.panic('isolate_died', `the task was killed before ${this.name} started`)
    } else this.#kill('killed')
  }

  /** Asks an idle isolate to close its resources and end. */
  retire(cause: EndCause): void {
    this.#cause ??= cause
    this.state = 'ending'
    this.#stopTimer()
    this.#stopTimer = this.#host.clock.after(CLOSING_MS, () => this.#isolate.kill())
    this.#isolate.send({ kind: 'end' })
  }

  /** Ends the isolate, and kills it if it is not idle. Resolves when the isolate is gone. */
  close(): Promise<void> {
    if (this.state === 'idle') this.retire('closed')
    else if (this.state === 'starting' || this.state === 'busy') this.#kill('closed')
    return this.#gone.promise
  }

  #begin(run: Run): void {
    this.#stopTimer()
    this.state = 'busy'
    try {
      this.#isolate.send({ kind: 'run', task: run.task, aborted: run.aborted && toPortable(run.aborted) })
    } catch (cause) {
      // This can't happen with input that was read from JSON.
      const error = new Error(`the input of ${run.task.task} cannot be cloned: ${String(cause)}`, { cause })
      this.#run = undefined
      run.end({ kind: 'panicked', reason: 'unexpected_error', error })
      this.#kill('killed')
    }
  }

  #becomeIdle(): void {
    this.#run = undefined
    this.state = 'idle'
    this.#stopTimer = this.#host.clock.after(this.#host.idleMs, () => this.retire('idle'))
    this.#host.freed(this)
  }

  #kill(cause: EndCause): void {
    this.#cause ??= cause
    this.state = 'ending'
    this.#stopTimer()
    this.#isolate.kill()
  }

  /** Calls code that throws if a message is malformed. In this case, the attempt ends, and the isolate with it. */
  #orRefuse<T>(code: () => T): T | undefined {
    try {
      return code()
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause)
      const error = new Error(`a message of ${this.name} was forged or is malformed: ${why}`, { cause })
      const run = this.#run
      this.#run = undefined
      if (run !== undefined) run.end({ kind: 'panicked', reason: 'escaped_error', error })
      // Until the isolate is gone, it may send any number of further messages.
      else if (this.state !== 'ending' && this.state !== 'gone')
        this.#host.log.error({ err: error, isolate: this.name }, 'message refused: isolate replaced')
      if (this.state !== 'gone') this.#kill('escaped_error')
      return undefined
    }
  }

  #onMessage(message: FromIsolate): void {
    switch (message.kind) {
      case 'ready':
        if (this.state !== 'starting') return
        if (this.#run === undefined) this.#becomeIdle()
        else this.#begin(this.#run)
        return
      case 'open_failed':
        this.#openFailed(message.error)
        return
      case 'imported':
        this.#started()
        return
      case 'heartbeat':
        this.#runOf(message.of)?.calls.heartbeat()
        return
      case 'progress':
        void this.#answer(message.call, async () => this.#runOf(message.of)?.calls.progress(message.progress))
        return
      case 'enqueue':
        void this.#answer(message.call, async () => {
          const { of, task, values } = message
          const { input, options } = decodeCall<ChildOptions>(values)
          return this.#callsOf(of, `enqueued ${task}`).enqueue(task, input, options)
        })
        return
      case 'onSuccess': {
        const { input, options } = decodeCall<RegisteredOptions>(message.values)
        this.#runOf(message.of)?.calls.onSuccess(message.task, input, options)
        return
      }
      case 'register':
        void this.#answer(message.call, async () => {
          const { of, on, task, values } = message
          const { input, options } = decodeCall<RegisteredOptions>(values)
          return this.#callsOf(of, `registered ${task}`).register(on, task, input, options)
        })
        return
      case 'findStep':
        void this.#answer(message.call, async () => {
          const { of, step } = message
          return this.#callsOf(of, `began step ${step}`).findStep(step)
        })
        return
      case 'storeStep':
        void this.#answer(message.call, async () => {
          const { of, step, result } = message
          return this.#callsOf(of, `finished step ${step}`).storeStep(step, result)
        })
        return
      case 'log': {
        const fields = unpackFields(message.fields)
        const run = message.of && this.#runOf(message.of)
        if (run !== undefined) run.calls.log[message.level](fields, message.message)
        else this.#host.log[message.level]({ ...fields, ...message.of, isolate: this.name }, message.message)
        return
      }
      case 'late':
        this.#late(message)
        return
      case 'outcome':
        this.#outcome(message)
        return
      default:
        throw new Error(`its kind is ${String((message as { readonly kind?: unknown }).kind)}`)
    }
  }

  /** Returns the attempt's run, or undefined if the attempt is over. */
  #runOf(of: AttemptRef): Run | undefined {
    return this.#run !== undefined && isSameAttempt(this.#run.of, of) ? this.#run : undefined
  }

  #callsOf(of: AttemptRef, did: string): IsolateCalls {
    const run = this.#runOf(of)
    if (run !== undefined) return run.calls
    throw new BullpenError('wrong_state', `${of.id} ${did} after its attempt had ended`)
  }

  #started(): void {
    if (this.started) return
    this.started = true
    this.#host.started()
  }

  #openFailed(error: PortableError): void {
    const cause = fromPortable(error)
    this.#host.log.error({ err: cause, isolate: this.name }, "isolate's resources failed to open")
    this.#run?.panic('isolate_died', `${this.name} could not open its resources: ${cause.message}`, cause)
    this.#run = undefined
    this.#kill('unable_to_start')
  }

  /** Responds to a call from the isolate with the value that `does` returns or the error that it throws. */
  async #answer(call: number, does: () => Promise<unknown>): Promise<void> {
    let value: unknown
    let error: PortableError | undefined
    try {
      value = await does()
    } catch (thrown) {
      error = toPortable(thrown)
    }
    if (this.state !== 'gone') this.#isolate.send({ kind: 'answer', call, value, error })
  }

  #late({ of, error }: FromIsolate & { kind: 'late' }): void {
    const whose = of === undefined ? 'outside any task' : 'of a task that had ended'
    this.#host.log.error(
      { err: fromPortable(error), ...of, isolate: this.name },
      `uncaught error ${whose}; the isolate is replaced`,
    )
    this.#cause ??= 'late_escape'
    if (this.state === 'idle') this.retire('late_escape')
  }

  #outcome({ of, outcome, broken, touched }: FromIsolate & { kind: 'outcome' }): void {
    const run = this.#runOf(of)
    if (run === undefined) return
    const ended = unpackOutcome(outcome)
    if (!broken) this.#started()
    this.#run = undefined
    run.end(ended)
    if (this.state === 'ending') return
    if (outcome.kind === 'panicked' && outcome.reason === 'escaped_error') this.#kill('escaped_error')
    else if (this.#cause !== undefined) this.retire(this.#cause)
    else if (broken && this.#host.mayReplaceBroken()) this.retire('import_failed')
    else if (touched !== undefined) {
      this.#host.log.warn({ ...of, isolate: this.name }, `isolate replaced: a task has changed ${touched}`)
      this.retire('touched')
    } else if (this.#isolate.isFull()) this.retire('full')
    else this.#becomeIdle()
  }

  #onExit(exit: IsolateExit): void {
    this.state = 'gone'
    this.#stopTimer()
    const run = this.#run
    run?.panic(exit.reason, exit.message, exit.cause)
    this.#run = undefined
    this.#gone.resolve()
    this.#host.gone(this, this.#cause ?? exit.reason, run?.of)
  }
}

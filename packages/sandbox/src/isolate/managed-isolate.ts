// One isolate's life in its pool: starting → idle ⇄ busy → ending → gone.
import { BullpenError, type Log } from '@bullpen/contract'
import type { Clock, IsolateCalls, IsolatedTask } from '@bullpen/engine/internal'
import { type FromIsolate, isSameStart, type StartOf } from '../protocol/messages.ts'
import { fromPortable, type PortableError, toPortable } from '../protocol/portable-error.ts'
import { unpackFields } from '../protocol/portable-fields.ts'
import { unpackOutcome } from '../protocol/portable-outcome.ts'
import type { Death, Isolate, StartIsolate } from './isolate.ts'
import type { Place, Run } from './isolated-run.ts'

/** Why an isolate's life ended. */
export type EndCause =
  /** It died of itself, by an exit, a crash or a signal. */
  | Death['reason']
  /** Its task had to be ended. */
  | 'killed'
  /** An error escaped its task, so that its state is unknown. */
  | 'escaped_error'
  /** As before, by a task that had ended already. */
  | 'late_escape'
  | 'unable_to_start'
  /** A handler's module could not be imported, which an isolate remembers for ever. */
  | 'import_failed'
  /** Its memory was half full with what tasks had left. */
  | 'full'
  /** It had to make room for a process with another memory limit. */
  | 'made_room'
  /** It had nothing to do. */
  | 'idle'
  | 'closed'

/** What a cell tells its pool, and what it needs of it. */
export interface CellHost {
  readonly clock: Clock
  readonly log: Log
  readonly resources: string | undefined
  readonly reportMemory: boolean
  readonly idleMs: number
  readonly startIsolate: StartIsolate
  /** It has imported a handler: whatever happens from here on, isolates can be started. */
  started(): void
  freed(cell: Cell): void
  gone(cell: Cell, cause: EndCause, of: StartOf | undefined): void
  /** Whether an isolate that remembers a failed import may be replaced already. */
  mayReplaceBroken(): boolean
}

/** From being asked to end to being killed: the time to close resources. */
const CLOSING_MS = 1_000

export class Cell implements Place {
  state: 'starting' | 'idle' | 'busy' | 'ending' | 'gone' = 'starting'
  /** It has once come as far as a handler. */
  started = false
  readonly memoryLimitBytes: number | undefined
  readonly #host: CellHost
  readonly #isolate: Isolate
  readonly #gone = Promise.withResolvers<void>()
  #run: Run | undefined
  #cause: EndCause | undefined
  #stopTimer = (): void => {}

  constructor(host: CellHost, memoryLimitBytes: IsolatedTask['memoryLimitBytes']) {
    this.#host = host
    this.memoryLimitBytes = memoryLimitBytes
    const listener = {
      heard: (message: FromIsolate) => this.#heard(message),
      ended: (death: Death) => this.#ended(death),
    }
    this.#isolate = host.startIsolate(listener, memoryLimitBytes)
    this.#isolate.send({ kind: 'open', resources: host.resources, reportMemory: host.reportMemory })
  }

  get name(): string {
    return this.#isolate.name
  }

  /** While it is idle, or starting and not yet taken. */
  take(run: Run): void {
    this.#run = run
    run.place = this
    if (this.state === 'idle') this.#begin(run)
  }

  signal(_: Run, reason: Error): void {
    if (this.state === 'busy') this.#isolate.send({ kind: 'signal', reason: toPortable(reason) })
  }

  kill(run: Run): void {
    if (this.state === 'starting') {
      this.#run = undefined
      run.panic('isolate_died', `the task was ended before ${this.name} had started`)
    } else this.#kill('killed')
  }

  /** Asks an idle one to close its resources and end. */
  retire(cause: EndCause): void {
    this.#cause ??= cause
    this.state = 'ending'
    this.#stopTimer()
    this.#stopTimer = this.#host.clock.after(CLOSING_MS, () => this.#isolate.kill())
    this.#isolate.send({ kind: 'end' })
  }

  /** Resolves when nothing is left of it. What runs in it is killed. */
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
      // Only what no broker stores: what was read from JSON can be cloned.
      const error = new Error(`the input of ${run.task.task} can't be cloned: ${String(cause)}`, { cause })
      this.#run = undefined
      run.end({ kind: 'panicked', reason: 'unexpected_error', error })
      this.#kill('killed')
    }
  }

  #rest(): void {
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

  #heard(message: FromIsolate): void {
    switch (message.kind) {
      case 'ready':
        if (this.state !== 'starting') return
        if (this.#run === undefined) this.#rest()
        else this.#begin(this.#run)
        return
      case 'unable':
        this.#unable(message.error)
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
          const { of, task, input, options } = message
          return this.#callsOf(of, `enqueued ${task}`).enqueue(task, input, options)
        })
        return
      case 'findStep':
        void this.#answer(message.call, async () => {
          const { of, step } = message
          return this.#callsOf(of, `began step ${step}`).findStep(step)
        })
        return
      case 'keepStep':
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
    }
  }

  /** The run that is meant, unless it is over. */
  #runOf(of: StartOf): Run | undefined {
    return this.#run !== undefined && isSameStart(this.#run.of, of) ? this.#run : undefined
  }

  #callsOf(of: StartOf, did: string): IsolateCalls {
    const run = this.#runOf(of)
    if (run !== undefined) return run.calls
    throw new BullpenError('wrong_state', `${of.id} ${did} after its attempt had ended`)
  }

  #started(): void {
    if (this.started) return
    this.started = true
    this.#host.started()
  }

  #unable(error: PortableError): void {
    const cause = fromPortable(error)
    this.#host.log.error({ err: cause, isolate: this.name }, 'the resources of an isolate did not open')
    this.#run?.panic('isolate_died', `${this.name} could not open its resources: ${cause.message}`, cause)
    this.#run = undefined
    this.#kill('unable_to_start')
  }

  /** A progress report of an attempt that has ended is dropped: another start may be reporting by now. */
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
    const whose = of === undefined ? 'no task that is known' : 'a task that had ended'
    this.#host.log.error(
      { err: fromPortable(error), ...of, isolate: this.name },
      `an error escaped ${whose}; the isolate is replaced`,
    )
    this.#cause ??= 'late_escape'
    if (this.state === 'idle') this.retire('late_escape')
  }

  #outcome({ of, outcome, broken }: FromIsolate & { kind: 'outcome' }): void {
    const run = this.#runOf(of)
    if (run === undefined) return
    if (!broken) this.#started()
    this.#run = undefined
    run.end(unpackOutcome(outcome))
    if (this.state === 'ending') return
    if (outcome.kind === 'panicked' && outcome.reason === 'escaped_error') this.#kill('escaped_error')
    else if (this.#cause !== undefined) this.retire(this.#cause)
    else if (broken && this.#host.mayReplaceBroken()) this.retire('import_failed')
    else if (this.#isolate.isFull()) this.retire('full')
    else this.#rest()
  }

  #ended(death: Death): void {
    this.state = 'gone'
    this.#stopTimer()
    const run = this.#run
    run?.panic(death.reason, death.message, death.cause)
    this.#run = undefined
    this.#gone.resolve()
    this.#host.gone(this, this.#cause ?? death.reason, run?.of)
  }
}

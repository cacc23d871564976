// One run of a task, from its enqueue to its end, that is interrupted at planned points.
import type { Resources } from '@bullpen/contract'
import type { Middleware } from '@bullpen/engine'
import { DEFAULT_TIMEOUTS } from '@bullpen/engine/internal'
import type { RunDirector } from '../run/run-task.ts'
import type { TestWorker, Workers } from '../run/workers.ts'
import { createEffectLedger, type EffectLedger } from './effect-ledger.ts'
import type { InterruptionKind, InterruptionPoint, Plan } from './interruption.ts'
import { SimulatedAttempt } from './simulated-attempt.ts'

/** A point that an attempt has reached. */
export interface ReachedPoint extends Omit<InterruptionPoint, 'isAwaited'> {
  /**
   * Whether the call is awaited. Undefined until the call returns, and also after that if the call is neither awaited nor an
   * effect. The attempt cannot be interrupted at such a call.
   */
  isAwaited: boolean | undefined
}

/** The run as an attempt sees it. */
export interface AttemptHost {
  readonly ledger: EffectLedger
  /** Called when the handler adds or registers a follow-up. */
  readonly noteFollowUp: () => void
  /** Resolves when the task has ended. */
  readonly ended: Promise<void>
  /** The names of calls that are known to be awaited. All runs of a simulation share the set. */
  readonly awaitedCalls: Set<string>
  /** Records that an attempt has reached a point. Returns the interruption that is planned there, if any. */
  reach(point: ReachedPoint): Plan[number] | undefined
  /** Carries out an interruption of the attempt. A timeout needs nothing, because the clock advances while the attempt waits. */
  interrupt(kind: InterruptionKind, attempt: SimulatedAttempt): void
}

/** One run. This is a class because its parts share the state of the run. */
export class SimulatedRun<R extends Resources> implements RunDirector, AttemptHost {
  readonly ledger = createEffectLedger()
  readonly awaitedCalls: Set<string>
  /** Whether the handler has added or registered a follow-up. */
  addsFollowUps = false
  readonly noteFollowUp = (): void => {
    this.addsFollowUps = true
  }
  readonly #plan: Plan
  readonly #ended = Promise.withResolvers<void>()
  readonly #attempts: { readonly attempt: SimulatedAttempt; readonly worker: TestWorker }[] = []
  readonly #reached: ReachedPoint[] = []
  /** How many of the planned interruptions have happened. */
  #interrupted = 0
  #workers: Workers | undefined
  #loseLock = (): void => {}

  constructor(plan: Plan, awaitedCalls: Set<string>) {
    this.#plan = plan
    this.awaitedCalls = awaitedCalls
  }

  get ended(): Promise<void> {
    return this.#ended.promise
  }

  /** The first planned point that was not reached. */
  get missed(): InterruptionPoint | undefined {
    return this.#plan[this.#interrupted]?.point
  }

  /** The points at which the run could have been interrupted once more. */
  get points(): readonly InterruptionPoint[] {
    return this.#reached.flatMap(({ isAwaited, ...point }) =>
      isAwaited === undefined ? [] : [{ ...point, isAwaited }],
    )
  }

  /** Wraps every attempt. It is the outermost middleware, so that the simulation sees what the other middleware does. */
  readonly middleware: Middleware<R> = async (context, next) => {
    const attempt = new SimulatedAttempt(context, this)
    this.#attempts.push({ attempt, worker: this.#known().of(context.fencingToken) })
    // A slot cannot interrupt an attempt until the handler has returned a promise.
    await undefined
    return attempt.run(next)
  }

  readonly begin = (workers: Workers, loseLock: () => void): void => {
    this.#workers = workers
    this.#loseLock = loseLock
  }

  readonly onEnded = (): void => this.#ended.resolve()

  readonly isRunning = (): boolean => this.#attempts.some(({ attempt }) => attempt.isRunning)

  readonly isOver = (): boolean => this.#attempts.every(({ attempt }) => attempt.isOver)

  reach(point: ReachedPoint): Plan[number] | undefined {
    const next = this.#plan[this.#interrupted]
    if (next?.point.id === point.id) {
      this.#interrupted++
      return next
    }
    // One more interruption is possible only after all planned ones have happened, and only in the newest attempt.
    const isNewest = this.#attempts.at(-1)?.attempt.fencingToken === point.attempt
    if (next === undefined && isNewest) this.#reached.push(point)
    return undefined
  }

  interrupt(kind: InterruptionKind, attempt: SimulatedAttempt): void {
    const workers = this.#known()
    const worker = workers.of(attempt.fencingToken)
    switch (kind) {
      case 'crash':
        for (const other of this.#attempts) if (other.worker === worker) other.attempt.cutOff()
        worker.kill()
        break
      case 'drain':
        void worker.pool.drain({ drainMs: 0, graceMs: GRACE_MS })
        break
      case 'lock_lost':
        this.#loseLock()
        break
      case 'timeout':
        return
    }
    // The next attempt runs in another worker, because this one is dead, drains or has no slot left.
    void workers.add()
  }

  #known(): Workers {
    if (this.#workers === undefined) throw new Error('the run has not begun')
    return this.#workers
  }
}

const GRACE_MS = DEFAULT_TIMEOUTS.graceMs === 'none' ? 5_000 : DEFAULT_TIMEOUTS.graceMs

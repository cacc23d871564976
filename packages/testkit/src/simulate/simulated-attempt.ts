// One attempt of a simulated run. It makes the calls that the handler makes of its context and its resources, and interrupts the
// attempt at the points that are planned.
import type { TaskContext } from '@bullpen/contract'
import type { CallSite } from './call-site.ts'
import { attemptScope } from './effect.ts'
import { interceptContext } from './intercepted-context.ts'
import type { InterruptionKind, Plan, PointPhase } from './interruption.ts'
import type { AttemptHost, ReachedPoint } from './simulated-run.ts'

/** A call of the handler. */
export interface InterceptedCall {
  readonly name: string
  readonly site: CallSite
  /** The signal that the call passes on. The call ends if this signal aborts. */
  readonly signal?: AbortSignal | undefined
  /** Whether the attempt can be interrupted at the call even if the handler does not await it. */
  readonly isEffect: boolean
  /** The point after an awaited call. Defaults to 'after'. */
  readonly lastPhase?: PointPhase
  /** Makes the call. `occurrence` is its number among the attempt's calls with the same name. */
  readonly make: (occurrence: number) => unknown
  /** Called with the result when the call has succeeded. */
  readonly onSuccess?: (result: unknown) => void
}

type NumberedCall = InterceptedCall & { readonly occurrence: number }

/** Returns a promise that never settles, because a call of an attempt whose worker has died never returns. */
function never(): Promise<never> {
  return new Promise(() => {})
}

/**
 * Thrown by a call that is not awaited if the worker has died. A handler that catches the error goes on, but none of its later calls
 * does anything.
 */
class WorkerDied extends Error {
  override readonly name = 'WorkerDied'
  override readonly message = 'simulated crash: the worker that runs this attempt has died'
}

/** One attempt. This is a class because all calls of the attempt share its state. */
export class SimulatedAttempt {
  readonly fencingToken: number
  readonly #context: TaskContext
  readonly #host: AttemptHost
  readonly #occurrences = new Map<string, number>()
  /** How many calls wait for the simulation. */
  #held = 0
  #hasEnded = false
  #isCutOff = false
  #hasLostLock = false

  constructor(context: TaskContext, host: AttemptHost) {
    this.fencingToken = context.fencingToken
    this.#context = context
    this.#host = host
  }

  /** Whether the handler is running and does not wait for the simulation. */
  get isRunning(): boolean {
    return !this.isOver && this.#held === 0
  }

  /** Whether the handler has ended or its worker has died. */
  get isOver(): boolean {
    return this.#hasEnded || this.#isCutOff
  }

  /** Cuts the attempt off from its context and its resources, because its worker has died. */
  cutOff(): void {
    this.#isCutOff = true
  }

  async run(handle: () => Promise<unknown>): Promise<unknown> {
    const intercept = interceptContext(this.#context, this, this.#host)
    try {
      const output = await attemptScope.run({ intercept, step: undefined }, handle)
      const kind = this.#reach({ phase: 'returned', name: '', occurrence: 1, site: undefined, isAwaited: true })
      // The attempt is not held, because its handler has nothing left to do.
      if (kind !== undefined) this.#interrupt(kind)
      return this.#isCutOff ? never() : output
    } catch (error) {
      if (this.#isCutOff) return never()
      throw error
    } finally {
      this.#hasEnded = true
    }
  }

  /** Makes a call of the handler. Returns what the call returns, or throws what it throws. */
  call(intercepted: InterceptedCall): unknown {
    const { name } = intercepted
    if (this.#isCutOff) {
      if (this.#host.awaitedCalls.has(name)) return never()
      throw new WorkerDied()
    }
    const occurrence = (this.#occurrences.get(name) ?? 0) + 1
    this.#occurrences.set(name, occurrence)
    const call = { ...intercepted, occurrence }
    const before = this.#point({ phase: 'before', ...call, isAwaited: undefined })
    const planned = this.#plannedAt(before)
    if (planned === undefined) return this.#make(call, before)
    if (planned.point.isAwaited) return this.#hold(planned.kind, call.signal).then(() => this.#make(call, before))
    this.#interrupt(planned.kind)
    throw new WorkerDied()
  }

  /** Reaches the point at which the function of `ctx.once` has returned and its result is not stored. */
  async stepReturned<T>(result: T, call: { name: string; occurrence: number; site: CallSite }): Promise<T> {
    const kind = this.#reach({ phase: 'unrecorded', ...call, isAwaited: true })
    if (kind !== undefined) await this.#hold(kind, undefined)
    return this.#isCutOff ? never() : result
  }

  #make(call: NumberedCall, before: ReachedPoint): unknown {
    const result = call.make(call.occurrence)
    if (result instanceof Promise) {
      before.isAwaited = true
      this.#host.awaitedCalls.add(call.name)
      return this.#settle(call, result)
    }
    call.onSuccess?.(result)
    if (!call.isEffect) return result
    before.isAwaited = false
    const kind = this.#reach({ phase: 'after', ...call, isAwaited: false })
    if (kind === undefined) return result
    this.#interrupt(kind)
    throw new WorkerDied()
  }

  async #settle(call: NumberedCall, pending: Promise<unknown>): Promise<unknown> {
    let result: unknown
    try {
      result = await pending
    } catch (error) {
      if (this.#isCutOff) return never()
      throw error
    }
    call.onSuccess?.(result)
    const kind = this.#reach({ phase: call.lastPhase ?? 'after', ...call, isAwaited: true })
    if (kind !== undefined) await this.#hold(kind, call.signal)
    return this.#isCutOff ? never() : result
  }

  /**
   * Interrupts the attempt while one of its calls is waiting. Resolves when the call goes on, and rejects with the reason of the
   * signal that the call has passed on, if that signal has aborted.
   */
  async #hold(kind: InterruptionKind, passedOn: AbortSignal | undefined): Promise<void> {
    this.#held++
    try {
      this.#interrupt(kind)
      if (kind === 'crash') await never()
      if (kind !== 'lock_lost') await aborted(this.#context.signal)
      if (passedOn?.aborted) throw passedOn.reason
      if (kind === 'lock_lost') await this.#host.ended
    } finally {
      this.#held--
    }
  }

  #interrupt(kind: InterruptionKind): void {
    if (kind === 'lock_lost') this.#hasLostLock = true
    this.#host.interrupt(kind, this)
  }

  /** Works like {@link #plannedAt}, for a point that is reached when a call has returned. */
  #reach(at: PointOfCall): InterruptionKind | undefined {
    return this.#plannedAt(this.#point(at))?.kind
  }

  /** Returns the interruption that is planned at a point. An attempt that has lost its lock or its worker is not interrupted again. */
  #plannedAt(point: ReachedPoint): Plan[number] | undefined {
    return this.#hasLostLock || this.#isCutOff ? undefined : this.#host.reach(point)
  }

  #point({ phase, name, occurrence, site, isAwaited }: PointOfCall): ReachedPoint {
    const attempt = this.fencingToken
    const id = [attempt, name, occurrence, phase].join(' ')
    return { id, attempt, call: name, occurrence, phase, site, isAwaited, isSignalled: this.#context.signal.aborted }
  }
}

interface PointOfCall {
  readonly phase: PointPhase
  readonly name: string
  readonly occurrence: number
  readonly site: CallSite | undefined
  readonly isAwaited: boolean | undefined
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

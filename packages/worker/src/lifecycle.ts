// The lifecycle of a worker: new → opening → running → draining → closed.
//
// - `start` and `online` are legal only on a new worker. `drain` is legal in every state; the first call decides when the drain
//   begins, and later calls can only make it harsher.
// - A drain that comes while the worker opens does not wait for what has not opened yet: the opening is cancelled at its next
//   step, and what it opened is closed.
// - Everything that is opened goes on one stack, which is disposed once, in the reverse order of opening: after the pools have
//   drained, or when the opening fails. Closing is bounded: what does not close in time is left to the end of the process.
import { BullpenError, type Log } from '@bullpen/contract'
import { assertTransition, type Transitions } from '@bullpen/engine/internal'
import { settlesWithin } from '@bullpen/engine/node'
import { type DrainSummary, logDrainSummary, summarizeDrain } from './drain-summary.ts'
import type { DrainRequest, PoolSupervisor } from './pools/pool-supervisor.ts'

export type WorkerState = 'new' | 'opening' | 'running' | 'draining' | 'closed'

/** `start` and `online` leave `new`; `drain` or a closed parent leads to `draining`; a failed opening leads straight to `closed`. */
export const WORKER_TRANSITIONS = {
  new: ['opening', 'draining'],
  opening: ['running', 'draining', 'closed'],
  running: ['draining'],
  draining: ['closed'],
  closed: [],
} as const satisfies Transitions<WorkerState>

/** How long an opening that was cancelled may take to stop, in ms. */
const CANCEL_OPENING_MS = 2_000

export interface Opening {
  /** Registers how to close what has just been opened. When the worker is closed already, closes it at once. */
  owns(close: () => unknown): void
  /** @throws BullpenError `wrong_state` when a drain has begun meanwhile. */
  assertWanted(): void
}

export interface LifecycleOptions<P> {
  /** Opens the parts of the worker. Called once. */
  open(opening: Opening): Promise<P>
  /** How long closing may take, in ms. */
  readonly closeMs: number
  readonly log: Log
}

export interface Lifecycle<P> {
  state(): WorkerState
  /** What `open` returned; undefined before, and when it failed. */
  parts(): P | undefined
  /** Opens the worker. `call`: for the error. @throws BullpenError `wrong_state` unless the worker is new. */
  open(call: string): Promise<P>
  /** @throws BullpenError `wrong_state` when a drain has begun. */
  assertStarted(): void
  /** Drains the pools, then closes the worker. Every call resolves with the summary of the same drain. */
  drain(request: DrainRequest): Promise<DrainSummary>
  /** Resolves when a drain has ended, whatever began it. */
  readonly ended: Promise<DrainSummary>
}

export function createLifecycle<P extends { readonly pools: PoolSupervisor }>(
  options: LifecycleOptions<P>,
): Lifecycle<P> {
  const { log, closeMs } = options
  const stack = new AsyncDisposableStack()
  const ended = Promise.withResolvers<DrainSummary>()
  /** Requests that came before there were pools. */
  const pending: DrainRequest[] = []
  let state: WorkerState = 'new'
  let opening: Promise<P> | undefined
  let parts: P | undefined
  let drained: Promise<DrainSummary> | undefined

  const moveTo = (to: WorkerState): void => {
    assertTransition('the worker', WORKER_TRANSITIONS, state, to)
    state = to
  }

  const close = (): Promise<boolean> => settlesWithin(stack.disposeAsync(), closeMs)

  const assertIn = (wanted: WorkerState): void => {
    if (state !== wanted) throw wrongState('it was drained before it had started', state)
  }

  const steps: Opening = {
    owns(closeOne) {
      if (stack.disposed) void closeOne()
      else stack.defer(async () => void (await closeOne()))
    },
    assertWanted: () => assertIn('opening'),
  }

  const openOnce = async (): Promise<P> => {
    try {
      parts = await options.open(steps)
      moveTo('running')
      return parts
    } catch (error) {
      await close()
      if (state === 'opening') moveTo('closed')
      throw error
    }
  }

  const drainOnce = async (): Promise<DrainSummary> => {
    if (opening !== undefined && parts === undefined) await settlesWithin(opening, CANCEL_OPENING_MS)
    // Concurrent drains of a pool merge, so that all requests have the same reports.
    const [reports = []] = await Promise.all(pending.map((request) => parts?.pools.end(request)))
    const summary = summarizeDrain(reports)
    logDrainSummary(log, summary)
    await close()
    moveTo('closed')
    return summary
  }

  return {
    state: () => state,
    parts: () => parts,
    async open(call) {
      if (state !== 'new') throw wrongState(`${call}() is legal only on a new worker`, state)
      moveTo('opening')
      opening = openOnce()
      return opening
    },
    assertStarted: () => assertIn('running'),
    drain(request) {
      pending.push(request)
      if (drained !== undefined) {
        void parts?.pools.end(request)
        return drained
      }
      // A worker that failed to open has nothing to drain.
      if (state === 'closed') drained = Promise.resolve(summarizeDrain([]))
      else {
        moveTo('draining')
        drained = drainOnce()
      }
      drained.then(ended.resolve, () => {})
      return drained
    },
    ended: ended.promise,
  }
}

function wrongState(why: string, state: WorkerState): BullpenError {
  return new BullpenError('wrong_state', `the worker is ${state}: ${why}`)
}

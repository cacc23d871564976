// Manages the lifecycle of a worker: new → opening → running → draining → closed.
//
// - `start` and `online` may be called only on a new worker. `drain` may be called in any state. The first call decides
//   when the drain begins, and later calls can only make it harsher.
// - If a drain begins while the worker is opening, the opening is cancelled at its next step, and the parts that it has
//   opened are closed. The drain waits up to 2 s for a part that is still opening.
// - Everything that is opened is pushed on one stack. The stack is disposed once, in the reverse order of opening,
//   after the pools have drained or when the opening fails: first the isolated handlers and the fleet agent, then the
//   broker, the clock, the resources, the probes and the event-loop monitor (open-worker.ts). Closing the fleet agent
//   removes the worker from the registry. Closing the broker resigns the leader's lease. The worker is not ready from
//   the moment the drain begins. The time for closing is limited, and parts that do not close in time stay open until
//   the process exits.
import { BullpenError, type Log } from '@bullpen/contract'
import { assertTransition, type Transitions } from '@bullpen/engine/internal'
import { settlesWithin } from '@bullpen/engine/node'
import { type DrainSummary, logDrainSummary, summarizeDrain } from './drain-summary.ts'
import type { DrainRequest, PoolSupervisor } from './pools/pool-supervisor.ts'

export type WorkerState = 'new' | 'opening' | 'running' | 'draining' | 'closed'

/**
 * `start` and `online` move the worker out of `new`. `drain` or a closed parent leads to `draining`. If the opening
 * fails, the worker moves straight to `closed`.
 */
export const WORKER_TRANSITIONS = {
  new: ['opening', 'draining'],
  opening: ['running', 'draining', 'closed'],
  running: ['draining'],
  draining: ['closed'],
  closed: [],
} as const satisfies Transitions<WorkerState>

/** How long a cancelled opening may take to stop, in ms. */
const CANCEL_OPENING_MS = 2_000

export interface Opening {
  /**
   * Registers the function that closes the part just opened. If the worker is already closed, the part is closed at
   * once.
   */
  owns(close: () => unknown): void
  /** @throws BullpenError `wrong_state` if a drain has begun in the meantime. */
  assertWanted(): void
}

export interface LifecycleOptions<P> {
  /** Opens the worker's parts. This function is called once. */
  open(opening: Opening): Promise<P>
  /** How long closing may take, in ms. */
  readonly closeMs: number
  readonly log: Log
}

export interface Lifecycle<P> {
  state(): WorkerState
  /** Returns what `open` returned, or undefined if `open` has not finished yet or has failed. */
  parts(): P | undefined
  /**
   * Opens the worker. `call` is the name of the calling method, for the error message.
   *
   * @throws BullpenError `wrong_state` if the worker is not new.
   */
  open(call: string): Promise<P>
  /** @throws BullpenError `wrong_state` if a drain has begun. */
  assertStarted(): void
  /** Drains the pools, then closes the worker. Every call resolves with the summary of the same drain. */
  drain(request: DrainRequest): Promise<DrainSummary>
  /** Resolves when a drain has ended, regardless of what started it. */
  readonly ended: Promise<DrainSummary>
}

export function createLifecycle<P extends { readonly pools: PoolSupervisor }>(
  options: LifecycleOptions<P>,
): Lifecycle<P> {
  const { log, closeMs } = options
  const stack = new AsyncDisposableStack()
  const ended = Promise.withResolvers<DrainSummary>()
  /** The requests so far. Requests made before the pools exist are applied once they do. */
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
    if (state !== wanted) throw wrongState('it was drained before it started', state)
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
    // Concurrent drains of a pool are merged, so all requests get the same reports.
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
      if (state !== 'new') throw wrongState(`${call}() can be called only on a new worker`, state)
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

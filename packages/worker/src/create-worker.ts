// Creates a worker, which runs pools on a catalogue's queues, with resources, probes, metrics, remote commands and a graceful
// drain.
import { CLOSING_MS } from '@bullpen/config'
import type { Catalogue, Log, Resources, TaskId } from '@bullpen/contract'
import { attributeUncaught, type OnlineReport, type UncaughtFate } from '@bullpen/engine/internal'
import type { DrainSummary } from './drain-summary.ts'
import { createLifecycle, type WorkerState } from './lifecycle.ts'
import { type OpenWorker, type WorkerOptions, wireWorker } from './open-worker.ts'
import type { DrainRequest } from './pools/pool-supervisor.ts'
import { byQueue } from './resolve-config.ts'

export type DrainOptions = DrainRequest

/** What happened to the tasks that were passed to {@link BullpenWorker.online}, and a summary of the drain that followed. */
export interface OnlineSummary extends DrainSummary {
  /** The given tasks that have not ended. */
  readonly left: readonly TaskId[]
}

export interface BullpenWorker {
  /**
   * Opens the probes and then the resources, connects to Redis and starts to fetch tasks. Resolves with the address of the probes
   * and metrics. If a resource fails to open or the port is already in use, everything is closed again and the call rejects.
   *
   * @throws BullpenError `wrong_state` if the worker is not new, or if it is drained before it has started.
   */
  start(): Promise<{ readonly url: string }>
  /**
   * Starts the worker as `start` does, runs tasks until the given ones have ended, in this worker or in another one, and then
   * drains. A drain or an aborted `parent` ends the work earlier. Other tasks in the same queues run as well.
   *
   * @throws BullpenError `queue_not_found` if this worker has no pool for the queue of a task, and `wrong_state` in the same
   * cases as for `start`.
   */
  online(tasks: readonly TaskId[]): Promise<OnlineSummary>
  /**
   * Drains the worker in this order: report not ready, stop fetching, wait for running tasks, signal them at the deadline, wait
   * for the grace period, requeue, and close connections and resources. Resolves within the timeout plus the grace period plus
   * 2 s, except in the modes `light` and `soft`, which wait for as long as tasks are running. Concurrent drains are merged, and
   * the harsher setting wins. This method may be called in any state and is idempotent.
   */
  drain(options?: DrainOptions): Promise<DrainSummary>
  /** Resolves when the worker has drained, whether the drain was started by a call, a remote command or the parent. */
  readonly ended: Promise<DrainSummary>
  state(): WorkerState
  /**
   * Attributes an error that escaped a handler to the handler's attempt. {@link runUntilSignalled} calls this for you. A program
   * that handles signals itself should call it on `uncaughtException` and `unhandledRejection`, and should drain and exit if it
   * returns `unattributed`.
   */
  attributeUncaught(error: unknown): UncaughtFate
  readonly log: Log
}

/** How much of CLOSING_MS pools may use, after their grace period, to acknowledge the tasks that have ended. */
const ACKNOWLEDGING_MS = 500

/**
 * Creates a worker. It does not open anything until it is started.
 *
 * @throws BullpenError `invalid_configuration` if settings are unknown, invalid or contradictory. Also throws `invalid_handler`
 * and `isolation_unavailable`.
 */
export function createWorker<C extends Catalogue, R extends Resources = object>(
  options: WorkerOptions<C, R>,
): BullpenWorker {
  const { parent } = options
  const { log, context, sizes, open } = wireWorker(options)
  const lifecycle = createLifecycle<OpenWorker>({
    open: (opening) => open(opening, (request) => void lifecycle.drain(request)),
    closeMs: CLOSING_MS - ACKNOWLEDGING_MS,
    log,
  })
  const drain = (how: DrainOptions = {}): Promise<DrainSummary> => lifecycle.drain(how)

  const onParentClosed = (): void => void drain()
  parent?.addEventListener('abort', onParentClosed, { once: true })
  void lifecycle.ended.then(() => parent?.removeEventListener('abort', onParentClosed))

  /** Opens the worker and runs its pools. If they can't be started, the worker is closed again. */
  const run = async (call: 'start' | 'online', work: (open: OpenWorker) => Promise<void>): Promise<void> => {
    if (parent?.aborted) void drain()
    const opened = await lifecycle.open(call)
    try {
      // Pools may start only after the agent has read which queues are draining.
      await opened.fleetAgent.start()
      await work(opened)
    } catch (error) {
      await drain({ mode: 'hard' })
      throw error
    }
  }

  return {
    log,
    attributeUncaught(err) {
      const fate = attributeUncaught(err, context)
      if (fate === 'late') log.warn({ err }, 'error escaped a handler whose attempt had already ended')
      return fate
    },
    ended: lifecycle.ended,
    state: lifecycle.state,
    async start() {
      let url = ''
      await run('start', async (opened) => {
        await opened.pools.start()
        url = opened.url
      })
      // A drain may have begun in the meantime, for example while Redis was unreachable. In that case, the pools have never run.
      lifecycle.assertStarted()
      return { url }
    },
    async online(tasks) {
      const sets = byQueue(tasks, sizes)
      const reports = new Map<string, OnlineReport>()
      await run('online', async ({ url, pools, broker }) => {
        log.info({ url }, 'running a given set of tasks')
        await pools.start((pool) => {
          const ids = sets.get(pool.queue)
          return ids && pool.online(ids, broker.waitUntilFinished).then((report) => reports.set(pool.queue, report))
        })
      })
      const summary = await drain()
      return { ...summary, left: [...sets].flatMap(([queue, ids]) => reports.get(queue)?.unfinished ?? ids) }
    },
    drain,
  }
}

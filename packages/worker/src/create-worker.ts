// A worker: pools on the queues of a catalogue, with resources, probes, metrics, remote commands and an orderly drain.
import { CLOSING_MS } from '@bullpen/config'
import type { Catalogue, Log, Resources, TaskId } from '@bullpen/contract'
import { attributeUncaught, type OnlineReport, type UncaughtFate } from '@bullpen/engine/internal'
import type { DrainSummary } from './drain-summary.ts'
import { createLifecycle, type WorkerState } from './lifecycle.ts'
import { type OpenWorker, type WorkerOptions, wireWorker } from './open-worker.ts'
import type { DrainRequest } from './pools/pool-supervisor.ts'
import { byQueue } from './resolve-config.ts'

/** Default mode: `soft_timeout`. */
export type DrainOptions = Partial<DrainRequest>

/** What became of the tasks that {@link BullpenWorker.online} was given, and of the drain after them. */
export interface OnlineSummary extends DrainSummary {
  /** The given tasks that have not ended. */
  readonly left: readonly TaskId[]
}

export interface BullpenWorker {
  /**
   * Opens the probes, then the resources, then connects to Redis and starts to fetch. Resolves with the address of the probes
   * and metrics. Rejects, with everything closed again, when a resource does not open or the port is taken.
   *
   * @throws BullpenError `wrong_state` unless the worker is new, or when it is drained before it has started.
   */
  start(): Promise<{ readonly url: string }>
  /**
   * Starts as `start` does, works until the given tasks have ended, here or elsewhere, and then drains. A drain or a closed
   * parent ends it earlier. Other tasks of the same queues run as well.
   *
   * @throws BullpenError `queue_not_found` for a task whose queue this worker has no pool for, and `wrong_state` as `start`.
   */
  online(tasks: readonly TaskId[]): Promise<OnlineSummary>
  /**
   * Not ready → stop fetching → wait → at the deadline, signal → grace → requeue → close connections and resources. Resolves
   * within the timeout + grace + 2 s; the modes `light` and `soft` wait as long as tasks run. Concurrent drains merge; the
   * harsher setting wins. Legal in every state, and idempotent.
   */
  drain(options?: DrainOptions): Promise<DrainSummary>
  /** Resolves when the worker has drained, whatever started the drain: a call, a remote command, or the parent. */
  readonly ended: Promise<DrainSummary>
  state(): WorkerState
  /**
   * Attributes an error that escaped a handler to its attempt. {@link runUntilSignalled} calls it; a program that handles
   * signals itself calls it from `uncaughtException` and `unhandledRejection`, and drains and exits on `unattributed`.
   */
  attributeUncaught(error: unknown): UncaughtFate
  readonly log: Log
}

/** Of CLOSING_MS: what pools may need beyond their grace period to acknowledge what has ended. */
const ACKNOWLEDGING_MS = 500

/**
 * Opens nothing until it is started.
 *
 * @throws BullpenError `invalid_configuration` for settings that are unknown, wrong or contradictory, `invalid_handler`,
 * `isolation_unavailable`.
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
  const drain = (how: DrainOptions = {}): Promise<DrainSummary> => lifecycle.drain({ mode: 'soft_timeout', ...how })

  const onParentClosed = (): void => void drain()
  parent?.addEventListener('abort', onParentClosed, { once: true })
  void lifecycle.ended.then(() => parent?.removeEventListener('abort', onParentClosed))

  /** Opens the worker and runs its pools; closes it again when they can't start. */
  const run = async (call: 'start' | 'online', work: (open: OpenWorker) => Promise<void>): Promise<void> => {
    if (parent?.aborted) void drain()
    const opened = await lifecycle.open(call)
    try {
      // Pools may start only when the agent knows which queues are draining.
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
      // While Redis was away, for instance: its pools have never run.
      lifecycle.assertStarted()
      return { url }
    },
    async online(tasks) {
      const sets = byQueue(tasks, sizes)
      const reports = new Map<string, OnlineReport>()
      await run('online', async ({ url, pools, broker }) => {
        log.info({ url }, 'working a given set of tasks')
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

// Creates a worker, which runs pools on a catalogue's queues, with resources, probes, metrics, remote commands and a
// graceful drain.
import { CLOSING_MS } from '@bullpen/config'
import {
  BullpenError,
  type Catalogue,
  type GroupId,
  type GroupView,
  type Log,
  type Resources,
  type TaskId,
} from '@bullpen/contract'
import { groupId } from '@bullpen/contract/internal'
import { attributeUncaught, groupView, type OnlineReport, readable, type UncaughtFate } from '@bullpen/engine/internal'
import type { DrainSummary } from './drain-summary.ts'
import { createLifecycle, type WorkerState } from './lifecycle.ts'
import { type OpenWorker, type WorkerOptions, wireWorker } from './open-worker.ts'
import type { DrainRequest } from './pools/pool-supervisor.ts'
import { byQueue } from './resolve-config.ts'

export type DrainOptions = DrainRequest

/**
 * What happened to the tasks that were passed to {@link BullpenWorker.online}, and a summary of the drain that
 * followed.
 */
export interface OnlineSummary extends DrainSummary {
  /** The given tasks that have not ended. */
  readonly left: readonly TaskId[]
}

/** A group that a worker has run, as the worker has last read it, and a summary of the drain that followed. */
export interface OnlineGroupSummary extends DrainSummary {
  readonly group: GroupView
}

export interface BullpenWorker {
  /**
   * Opens the probes and then the resources, connects to Redis and starts to fetch tasks. Resolves with the address of
   * the probes and metrics. If a resource fails to open or the port is already in use, everything is closed again and
   * the call rejects.
   *
   * @throws BullpenError `wrong_state` if the worker is not new, or if it is drained before it has started, and
   * `invalid_configuration` if the setting `group` is set.
   */
  start(): Promise<{ readonly url: string }>
  /**
   * Starts the worker as `start` does, runs tasks until the given ones have ended, in this worker or in another one,
   * and then drains. A drain or an aborted `parent` ends the work earlier. Other tasks in the same queues run as well.
   *
   * @throws BullpenError `queue_not_found` if this worker has no pool for the queue of a task, and `wrong_state` in the
   * same cases as for `start`.
   */
  online(tasks: readonly TaskId[]): Promise<OnlineSummary>
  /**
   * Starts the worker as `start` does, runs the members of one group until the group has ended, and then drains. The
   * worker takes no other tasks. The members may also run in other workers, which take them as usual. A member that
   * starts to wait is noticed within 250 ms, or within 5 s if the group has 100,000 unfinished members of which none
   * waits.
   *
   * A drain or an aborted `parent` ends the work earlier. So do members that are added in a queue for which this worker
   * has no pool, and the loss of the group: the worker logs the error and drains. If `group.state` of the summary is
   * not `ended`, the group has not ended.
   *
   * @throws BullpenError `group_not_found`, `queue_not_found` if this worker has no pool for a queue of the group, and
   * `wrong_state` in the same cases as for `start`.
   */
  online(work: { readonly group: string }): Promise<OnlineGroupSummary>
  /** The group that the setting `group` names. {@link runUntilSignalled} then runs this group. */
  readonly group: GroupId | undefined
  /**
   * Drains the worker in this order: report not ready, stop fetching, wait for running tasks, signal them at the
   * deadline, wait for the grace period, requeue, and close connections and resources. Resolves within the timeout plus
   * the grace period plus 2 s, except in the modes `light` and `soft`, which wait for as long as tasks are running.
   * Concurrent drains are merged, and the harsher setting wins. This method may be called in any state and is
   * idempotent.
   */
  drain(options?: DrainOptions): Promise<DrainSummary>
  /** Resolves when the worker has drained, whether the drain was started by a call, a remote command or the parent. */
  readonly ended: Promise<DrainSummary>
  state(): WorkerState
  /**
   * Attributes an error that escaped a handler to the handler's attempt. {@link runUntilSignalled} calls this for you.
   * A program that handles signals itself should call it on `uncaughtException` and `unhandledRejection`, and should
   * drain and exit if it returns `unattributed`.
   */
  attributeUncaught(error: unknown): UncaughtFate
  readonly log: Log
}

/** How much of CLOSING_MS pools may use, after their grace period, to acknowledge the tasks that have ended. */
const ACKNOWLEDGING_MS = 1_000

/**
 * Creates a worker. It does not open anything until it is started.
 *
 * @throws BullpenError `invalid_configuration` if settings are unknown, invalid or contradictory. Also throws
 * `invalid_handler` and `isolation_unavailable`.
 */
export function createWorker<C extends Catalogue, R extends Resources = object>(
  options: WorkerOptions<C, R>,
): BullpenWorker {
  const { parent } = options
  const { log, context, sizes, group, open } = wireWorker(options)
  /** Aborts when a drain begins, whatever its cause. */
  const drainBegun = new AbortController()
  /** The only group to run. Set before the worker is opened. */
  let onlyGroup: GroupId | undefined
  const lifecycle = createLifecycle<OpenWorker>({
    open: (opening) => open(opening, (request) => void drain(request), onlyGroup),
    closeMs: CLOSING_MS - ACKNOWLEDGING_MS,
    log,
  })
  const drain = (how: DrainOptions = {}): Promise<DrainSummary> => {
    drainBegun.abort()
    return lifecycle.drain(how)
  }

  // The pools listen as well, and drain first, so that their attempts end with the reason `parent_closed`.
  const onParentClosed = (): void => queueMicrotask(() => void drain())
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

  const onlineTasks = async (tasks: readonly TaskId[]): Promise<OnlineSummary> => {
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
  }

  const onlineGroup = async (id: GroupId): Promise<OnlineGroupSummary> => {
    if (lifecycle.state() === 'new') onlyGroup = id
    let online: OpenWorker['onlineGroup']
    await run('online', async (opened) => {
      online = opened.onlineGroup
      await online?.open(drainBegun.signal)
      // A drain may have begun while Redis was unreachable.
      if (online?.group() === undefined) return
      const { url, pools } = opened
      log.info({ url, id }, 'running one group')
      const group = online
      const running = pools.start((pool) => pool.onlineGroup(group))
      // A pool that a command has drained may be resumed, so the worker waits for the group, whatever becomes of its
      // pools.
      const ended = group.ended(drainBegun.signal)
      const err = await Promise.race([ended, group.failed, running.then(() => ended)])
      if (err !== undefined) log.error({ err, id }, 'group cannot be run to its end: draining')
      if (group.isDone()) await running
    })
    const summary = await drain()
    const last = online?.group()
    if (last === undefined)
      throw new BullpenError(
        'wrong_state',
        'the worker was drained before it had read the group; start it again with the same group',
      )
    return { ...summary, group: groupView(last) }
  }

  function online(tasks: readonly TaskId[]): Promise<OnlineSummary>
  function online(work: { readonly group: string }): Promise<OnlineGroupSummary>
  async function online(
    work: readonly TaskId[] | { readonly group: string },
  ): Promise<OnlineSummary | OnlineGroupSummary> {
    return 'group' in work ? onlineGroup(groupId(work.group)) : onlineTasks(work)
  }

  return {
    log,
    group,
    attributeUncaught(err) {
      const fate = attributeUncaught(err, context)
      const redactor = fate === 'late' ? context.current()?.redactor : undefined
      const shown = redactor === undefined ? readable(err) : redactor.value(err)
      if (fate === 'late') log.warn({ err: shown }, 'error escaped a handler whose attempt had already ended')
      return fate
    },
    ended: lifecycle.ended,
    state: lifecycle.state,
    async start() {
      if (group !== undefined) {
        throw new BullpenError(
          'invalid_configuration',
          `invalid configuration: group (BULLPEN_WORKER_GROUP) is ${group}, but start() runs all tasks; call online({ group }) or runUntilSignalled(worker), or unset the group`,
        )
      }
      let url = ''
      await run('start', async (opened) => {
        await opened.pools.start()
        url = opened.url
      })
      // A drain may have begun in the meantime, for example while Redis was unreachable. In that case, the pools have
      // never run.
      lifecycle.assertStarted()
      return { url }
    },
    online,
    drain,
  }
}

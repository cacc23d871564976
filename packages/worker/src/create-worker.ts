// A worker process: pools on the catalogue's queues, with their resources, probes, metrics and drain.

import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { openBroker } from '@bullpen/bullmq'
import { openFleet, type SkewWatch, watchSkew } from '@bullpen/bullmq/internal'
import { CLOSING_MS, checkSettings, WORKER_RULES, WORKER_SETTINGS, type WorkerConfig } from '@bullpen/config'
import {
  BullpenError,
  type Catalogue,
  type DrainMode,
  type Handlers,
  type Log,
  milliseconds,
  type Resources,
  type TaskId,
  VERSION,
} from '@bullpen/contract'
import type { Broker, EventSink, Middleware } from '@bullpen/engine'
import {
  attributeUncaught,
  createRegistry,
  type DrainLimits,
  drainLimits,
  type OnlineReport,
  type UncaughtFate,
} from '@bullpen/engine/internal'
import { attemptContext, clockOf, keepWrappersGeneric } from '@bullpen/engine/node'
import { openIsolator } from '@bullpen/sandbox/internal'
import { createLog, createTelemetry, logEvents } from '@bullpen/telemetry/internal'
import { type DrainSummary, logDrainSummary, summarizeDrain } from './drain-summary.ts'
import { type EventLoopMonitor, openEventLoopMonitor } from './event-loop/event-loop-monitor.ts'
import { type FleetAgent, openFleetAgent } from './fleet-agent/fleet-agent.ts'
import { poolFactory } from './pools/create-pool.ts'
import { createPoolSupervisor, type PoolSupervisor } from './pools/pool-supervisor.ts'
import { type Probes, serveProbes } from './probes.ts'
import { byQueue, defaultTimeouts, graceWarnings, isolatorFor, poolSizes } from './resolve-config.ts'
import { type OpenResources, openResources, type ResourceOpeners } from './resources.ts'

export interface WorkerOptions<C extends Catalogue, R extends Resources> {
  readonly catalogue: C
  /** One for each task of the catalogue. */
  readonly handlers: Handlers<C, R>
  /** What handlers find in `ctx.resources`. */
  readonly resources?: ResourceOpeners<R>
  /**
   * URL of a module whose default export is a record of openers like `resources`: what isolated handlers find in
   * `ctx.resources`, opened once in each thread or child process.
   */
  readonly isolatedResources?: string
  /** Around every attempt, in this process; the first is the outermost. */
  readonly middleware?: readonly Middleware<R>[]
  readonly config?: WorkerConfig
  /** Closed: every pool drains hard, by itself. */
  readonly parent?: AbortSignal
}

export interface DrainOptions {
  /** Default: `soft_timeout`. */
  readonly mode?: DrainMode
  /** Of `soft_timeout`, in ms. Default: the setting drainTimeout. */
  readonly timeoutMs?: number | undefined
  /** Ends the wait for running tasks at once, as a second signal does. */
  readonly hurry?: AbortSignal
  /** Nobody knows what is broken in this process: its pools end as RECOVER_ERR. */
  readonly broken?: boolean
}

/** Of CLOSING_MS: what pools may need beyond their grace, and what resources may need to close. */
const ACKNOWLEDGING_MS = 500
const RESOURCES_MS = 1_200

/** What opening leaves at hand. */
interface Opened {
  readonly url: string
  readonly tasks: Broker
  readonly keeper: PoolSupervisor
  readonly steward: FleetAgent
}

export interface BullpenWorker {
  /**
   * Opens resources, then probes, then connects to Redis and begins to fetch. Resolves with the address of probes and
   * metrics. Rejects, with everything closed again, when a resource does not open or the port is taken.
   *
   * @throws BullpenError `wrong_state` when it has been started, or told to end, also while it starts.
   */
  start(): Promise<{ readonly url: string }>
  /**
   * As `start`, until these tasks have ended, here or elsewhere; then drains itself. A drain, or a closed parent, ends it
   * before. Other tasks of the same queues are worked as well. `left`: those of the set that have not ended.
   *
   * @throws BullpenError `queue_not_found` for a task of a queue that this process does not work, `wrong_state` as `start`.
   */
  online(tasks: readonly TaskId[]): Promise<DrainSummary & { readonly left: readonly TaskId[] }>
  /**
   * Not ready → fetch nothing more → wait → at the deadline signal → grace → hand back → close resources and
   * connections. Resolves within the timeout + grace + 2 s; the modes `light` and `soft` wait as long as it takes. Twice is
   * one drain, with the harshest of what was asked for.
   */
  drain(how?: DrainOptions): Promise<DrainSummary>
  /** Resolves when a drain has ended, whoever began it. */
  readonly ended: Promise<DrainSummary>
  /** Whether a drain has begun. */
  ending(): boolean
  /**
   * Charges an error that escaped a handler to its attempt. Called by {@link runUntilSignalled}; a program with a life of
   * its own calls it from its uncaughtException and unhandledRejection, and drains and exits on `unattributed`.
   */
  escaped(error: unknown): UncaughtFate
  readonly log: Log
}

/**
 * @throws BullpenError `invalid_configuration` for settings that are unknown, wrong or contradictory, `invalid_handler`,
 * `isolation_unavailable`.
 */
export function createWorker<C extends Catalogue, R extends Resources = object>(
  options: WorkerOptions<C, R>,
): BullpenWorker {
  const { catalogue, handlers, middleware = [] } = options
  const settings = checkSettings(WORKER_SETTINGS, WORKER_RULES, options.config ?? {})
  const sizes = poolSizes(catalogue, settings)
  const logAs = { level: settings.logLevel, name: 'bullpen-worker' }
  const log = createLog(logAs)
  const telemetry = createTelemetry({ role: 'worker', version: VERSION })
  const tell = logEvents(log)
  const sink: EventSink = (event) => {
    telemetry.sink(event)
    tell(event)
  }
  // Distinct over hosts, containers that share a host's name, and restarts that reuse a process id.
  const { pid } = process
  const process_ = `${hostname()}:${pid}:${randomUUID().slice(0, 8)}`
  const context = attemptContext()
  let keeper: PoolSupervisor | undefined
  /** It may have been resized; those that are to end may still be at work. */
  const sizeOf = (queue: string): number => {
    const pool = keeper?.pool(queue)
    return Math.max(sizes.get(queue) ?? 0, pool?.size() ?? 0, pool?.busy() ?? 0)
  }
  const isolator = isolatorFor(catalogue, sizeOf, (most) =>
    openIsolator({
      threads: { max: () => most('thread') },
      processes: { max: () => most('process') },
      log,
      resources: options.isolatedResources,
      onReplaced: ({ isolation, isolate, cause }) => sink({ event: 'isolate.replaced', isolation, isolate, cause }),
    }),
  )
  const registry = createRegistry(catalogue, handlers, { middleware, limits: defaultTimeouts(settings), isolator })
  const graceMs = milliseconds(settings.grace)
  const drainMs = milliseconds(settings.drainTimeout)
  const { namespace, redisUrl } = settings
  const startedAt = performance.now()
  let broker: Broker | undefined
  let steward: FleetAgent | undefined
  let resources: OpenResources<R> | undefined
  let probes: Probes | undefined
  let loopWatch: EventLoopMonitor | undefined
  let skew: SkewWatch | undefined
  let opening: Promise<Opened> | undefined
  let drained: Promise<DrainSummary> | undefined
  /** Of every drain that was asked for, as long as there may be no pools yet. */
  const asked: DrainLimits[] = []
  let closing: Promise<void> | undefined
  const ended = Promise.withResolvers<DrainSummary>()

  const limitsOf = (mode: DrainMode, timeoutMs = drainMs): DrainLimits =>
    drainLimits(mode, { drainMs: timeoutMs, graceMs })
  const notReady = (): string | undefined => (keeper === undefined ? 'starting' : keeper.notReady())

  /** Once. What it opened is closed again when it fails, or when a drain has come meanwhile. */
  const open = async (): Promise<Opened> => {
    try {
      return await openAll()
    } catch (error) {
      await close()
      throw error
    }
  }
  const begin = (): Promise<Opened> => {
    if (options.parent?.aborted) void drain({})
    if (drained !== undefined) throw wrong('it has been told to end')
    if (opening !== undefined) throw wrong('it has been started')
    opening = open()
    return opening
  }

  const openAll = async (): Promise<Opened> => {
    resources = await openResources(options.resources ?? ({} as ResourceOpeners<R>), log)
    if (drained !== undefined) throw wrong('it was told to end while its resources opened')
    // The watch is a thread too, and one more that may end beside the isolated handlers'.
    keepWrappersGeneric()
    loopWatch = openEventLoopMonitor({ warnAfter: settings.eventLoopStallWarning, context, sink, log, logAs })
    probes = await serveProbes({ notReady, exposition: telemetry.exposition }, settings)
    if (drained !== undefined) throw wrong('it was told to end while it started')
    const watch = watchSkew({ redisUrl, log })
    skew = watch
    telemetry.onScrape(() => telemetry.clockSkew(watch.skewMs()))
    broker = openBroker({
      namespace,
      redisUrl,
      log,
      now: watch.now,
      queues: catalogue.queues,
      sizeLimit: settings.maxChildBytes,
      admission: 'open',
      onExpired: (expired) => sink({ event: 'task.expired', ...expired }),
      onCancelled: (cancelled) => sink({ event: 'task.cancelled', ...cancelled }),
    })
    for (const why of graceWarnings(catalogue, sizes, graceMs)) log.warn(why)
    const process = process_
    const common = { settings, registry, context, clock: watch, sink, process, log, parent: options.parent }
    const make = poolFactory({ ...common, resources: resources.values, tasks: broker })
    keeper = createPoolSupervisor({ sizes, make, watch: telemetry.watchPool, log })
    steward = openFleetAgent({
      fleet: openFleet({ namespace, redisUrl, log, queues: [...sizes.keys()] }),
      clock: clockOf(watch),
      skewMs: () => Math.round(watch.skewMs() ?? 0),
      log,
      keeper,
      about: { worker: process, host: hostname(), pid, version: VERSION, drainTimeoutMs: drainMs, graceMs },
      startedAt,
      limitsOf,
      endProcess: (mode, timeoutMs) => void drain({ mode, timeoutMs }),
      ending: () => drained !== undefined,
    })
    return { url: probes.url, tasks: broker, keeper, steward }
  }

  /** Handlers use all this until they end, and probes tell of the drain until it is over. */
  const close = (): Promise<void> => {
    closing ??= Promise.race([closeAll(), sleep(CLOSING_MS - ACKNOWLEDGING_MS, undefined, { ref: false })])
    return closing
  }
  const closeAll = async (): Promise<void> => {
    await Promise.all([isolator?.close(), steward?.end()])
    await broker?.close()
    skew?.close()
    await Promise.race([resources?.close(), sleep(RESOURCES_MS, undefined, { ref: false })])
    await probes?.close()
    await loopWatch?.end()
  }

  const drainOnce = async (): Promise<DrainSummary> => {
    // What is opening at this moment is closed with the rest; what hangs is left to the process's end.
    await Promise.race([opening?.catch(() => {}), sleep(CLOSING_MS, undefined, { ref: false })])
    // Each has the same reports: the pools' only drain, as the harshest says.
    const [reports] = await Promise.all(asked.map((limits) => keeper?.end(limits)))
    const end = summarizeDrain(reports ?? [])
    logDrainSummary(log, end)
    await close()
    return end
  }
  const drain = ({ mode = 'soft_timeout', timeoutMs, ...how }: DrainOptions): Promise<DrainSummary> => {
    const limits = { ...limitsOf(mode, timeoutMs), ...how }
    asked.push(limits)
    if (drained === undefined) {
      drained = drainOnce()
      drained.then(ended.resolve, () => {})
    } else void keeper?.end(limits)
    return drained
  }

  options.parent?.addEventListener('abort', () => void drain({}), { once: true })

  return {
    log,
    escaped(err) {
      const fate = attributeUncaught(err, context)
      if (fate === 'late') log.warn({ err }, 'an error escaped a handler after its attempt had ended')
      return fate
    },
    ended: ended.promise,
    ending: () => drained !== undefined,
    async start() {
      const { url, keeper, steward } = await begin()
      await steward.begin()
      await keeper.start()
      return { url }
    },
    async online(tasks) {
      const sets = byQueue(tasks, sizes)
      const { url, tasks: broker, keeper, steward } = await begin()
      log.info({ url }, 'working a given set of tasks')
      const reports = new Map<string, OnlineReport>()
      await steward.begin()
      await keeper.start((pool) => {
        const ids = sets.get(pool.queue)
        return ids && pool.online(ids, broker.waitUntilFinished).then((report) => reports.set(pool.queue, report))
      })
      const end = await drain({})
      return { ...end, left: [...sets].flatMap(([queue, ids]) => reports.get(queue)?.unfinished ?? ids) }
    },
    drain: (how = {}) => drain(how),
  }
}

function wrong(why: string): BullpenError {
  return new BullpenError('wrong_state', `a worker starts once; ${why}`)
}

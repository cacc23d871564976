// A worker process: pools on the catalogue's queues, with their resources, probes, metrics and drain.
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { openBroker, openFeed } from '@bullpen/bullmq'
import {
  BullpenError,
  type Catalogue,
  type Handlers,
  type Log,
  milliseconds,
  type Resources,
  type TaskId,
  VERSION,
} from '@bullpen/contract'
import {
  type Broker,
  chargeEscape,
  checkSettings,
  type DrainReport,
  type EscapeFate,
  type EventSink,
  type Middleware,
  makePool,
  makeRegistry,
  type Pool,
} from '@bullpen/engine'
import { attemptContext, keepWrappersGeneric, sha256, systemClock } from '@bullpen/engine/node'
import { openIsolator } from '@bullpen/sandbox'
import { createLog, createTelemetry, logEvents } from '@bullpen/telemetry'
import { type LoopWatch, watchLoop } from './loop-watch/index.ts'
import { type Probes, serveProbes } from './probes.ts'
import { type OpenResources, openResources, type ResourceOpeners } from './resource-stack.ts'
import { CLOSING_MS, WORKER_RULES, WORKER_SETTINGS, type WorkerConfig } from './settings.ts'
import { byQueue, defaultLimits, isolatorFor, poolSizes } from './worker-plan.ts'

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
  /** Ends the wait for running tasks at once, as a second signal does. */
  readonly hurry?: AbortSignal
  /** Nobody knows what is broken in this process: its pools end as RECOVER_ERR. */
  readonly broken?: boolean
}

export interface DrainEnd {
  /** What still ran at the end, and will be recovered by others. */
  readonly abandoned: DrainReport['abandoned']
}

/** What opening leaves at hand. */
interface Opened {
  readonly url: string
  readonly tasks: Broker
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
  online(tasks: readonly TaskId[]): Promise<DrainEnd & { readonly left: readonly TaskId[] }>
  /**
   * Not ready → fetch nothing more → wait → at the deadline signal → grace → hand back → close resources and
   * connections. Resolves within drainTimeout + grace + 2 s. Twice is one drain.
   */
  drain(how?: DrainOptions): Promise<DrainEnd>
  /** Resolves when a drain has ended, whoever began it. */
  readonly ended: Promise<DrainEnd>
  /** Whether a drain has begun. */
  ending(): boolean
  /**
   * Charges an error that escaped a handler to its attempt. Called by {@link runUntilSignalled}; a program with a life of
   * its own calls it from its uncaughtException and unhandledRejection, and drains and exits on `unattributed`.
   */
  escaped(error: unknown): EscapeFate
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
  const process_ = `${hostname()}:${process.pid}:${randomUUID().slice(0, 8)}`
  const context = attemptContext()
  const isolator = isolatorFor(catalogue, sizes, (most) =>
    openIsolator({
      threads: { max: most('thread') },
      processes: { max: most('process') },
      log,
      resources: options.isolatedResources,
      onReplaced: ({ isolation, isolate, cause }) => sink({ event: 'isolate.replaced', isolation, isolate, cause }),
    }),
  )
  const registry = makeRegistry(catalogue, handlers, { middleware, limits: defaultLimits(settings), isolator })
  const graceMs = milliseconds(settings.grace)
  const { namespace, redisUrl } = settings
  const keepCompletedMs = milliseconds(settings.keepCompleted)
  const maxLoopBlockMs = settings.maxLoopBlock === 'none' ? undefined : milliseconds(settings.maxLoopBlock)
  let broker: Broker | undefined
  let pools: readonly Pool[] = []
  let resources: OpenResources<R> | undefined
  let probes: Probes | undefined
  let loopWatch: LoopWatch | undefined
  let opening: Promise<Opened> | undefined
  let drained: Promise<DrainEnd> | undefined
  let closing: Promise<void> | undefined
  const ended = Promise.withResolvers<DrainEnd>()

  const openPools = (values: R, tasks: Broker): readonly Pool[] =>
    [...sizes].map(([queue, concurrency]) => {
      const pool = makePool({
        queue,
        concurrency,
        maxLeftovers: settings.maxLeftovers,
        graceMs,
        parent: options.parent,
        feed: (work, fed) =>
          openFeed({ queue, concurrency, namespace, redisUrl, keepCompletedMs, maxLoopBlockMs, log }, work, fed),
        host: {
          registry,
          context,
          clock: systemClock,
          random: Math.random,
          sink,
          enqueue: (task) => tasks.enqueue(task),
          sha256,
          outputLimitBytes: settings.outputLimit,
          process: process_,
          resources: values,
          logFor: (fields) => log.child(fields),
        },
      })
      telemetry.watchPool(pool)
      return pool
    })

  const notReady = (): string | undefined => {
    if (pools.length === 0) return 'starting'
    return pools.map((pool) => pool.notReady()).find((why) => why !== undefined)
  }

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
    loopWatch = watchLoop({ warnAfter: settings.loopBlockWarning, context, sink, log, logAs })
    probes = await serveProbes({ notReady, exposition: telemetry.exposition }, settings)
    if (drained !== undefined) throw wrong('it was told to end while it started')
    broker = openBroker({
      namespace,
      redisUrl,
      log,
      queues: catalogue.queues,
      sizeLimit: settings.childLimit,
      onExpired: (expired) => sink({ event: 'task.expired', ...expired }),
      onCancelled: (cancelled) => sink({ event: 'task.cancelled', ...cancelled }),
    })
    pools = openPools(resources.values, broker)
    return { url: probes.url, tasks: broker }
  }

  /** Handlers use all this until they end, and probes tell of the drain until it is over. */
  const close = (): Promise<void> => {
    closing ??= closeAll()
    return closing
  }
  const closeAll = async (): Promise<void> => {
    await isolator?.close()
    await broker?.close()
    await Promise.race([resources?.close(), sleep(CLOSING_MS, undefined, { ref: false })])
    await probes?.close()
    await loopWatch?.end()
  }

  const drainOnce = async (how: DrainOptions): Promise<DrainEnd> => {
    // What is opening at this moment is closed with the rest; what hangs is left to the process's end.
    await Promise.race([opening?.catch(() => {}), sleep(CLOSING_MS, undefined, { ref: false })])
    const limits = { drainMs: milliseconds(settings.drainTimeout), graceMs, ...how }
    const reports = await Promise.all(pools.map((pool) => pool.drain(limits)))
    await close()
    const abandoned = reports.flatMap((report) => report.abandoned)
    for (const { id, task } of abandoned) log.error({ id, task }, 'abandoned: still running at the end of the drain')
    return { abandoned }
  }
  const drain = (how: DrainOptions): Promise<DrainEnd> => {
    drained ??= drainOnce(how)
    drained.then(ended.resolve, () => {})
    return drained
  }

  options.parent?.addEventListener('abort', () => void drain({}), { once: true })

  return {
    log,
    escaped(err) {
      const fate = chargeEscape(err, context)
      if (fate === 'late') log.warn({ err }, 'an error escaped a handler after its attempt had ended')
      return fate
    },
    ended: ended.promise,
    ending: () => drained !== undefined,
    async start() {
      const { url } = await begin()
      await Promise.all(pools.map((pool) => pool.start()))
      return { url }
    },
    async online(tasks) {
      const sets = [...byQueue(tasks, sizes)]
      const { url, tasks: broker } = await begin()
      log.info({ url }, 'working a given set of tasks')
      const reports = await Promise.all(
        sets.map(([queue, ids]) => pools.find((pool) => pool.queue === queue)?.online(ids, broker.settled)),
      )
      const { abandoned } = await drain({})
      return { left: reports.flatMap((report) => report?.left ?? []), abandoned }
    },
    drain: (how = {}) => drain(how),
  }
}

function wrong(why: string): BullpenError {
  return new BullpenError('wrong_state', `a worker starts once; ${why}`)
}

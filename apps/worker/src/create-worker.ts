// A worker process: pools on the catalogue's queues, with their resources, probes, metrics and drain.
import { createHash, randomUUID } from 'node:crypto'
import { availableParallelism, hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { openBroker, openFeed } from '@bullpen/bullmq'
import {
  BullpenError,
  type Catalogue,
  type Handlers,
  type Log,
  milliseconds,
  nearest,
  type Resources,
  VERSION,
} from '@bullpen/contract'
import {
  chargeEscape,
  checkSettings,
  type DrainReport,
  type EscapeFate,
  type EventSink,
  type Isolator,
  type Limits,
  type Middleware,
  makePool,
  makeRegistry,
  type Pool,
} from '@bullpen/engine'
import { openIsolator } from '@bullpen/sandbox'
import { createLog, createTelemetry, logEvents } from '@bullpen/telemetry'
import { attemptContext } from './attempt-context.ts'
import { type Probes, serveProbes } from './probes.ts'
import { type OpenResources, openResources, type ResourceOpeners } from './resource-stack.ts'
import { CLOSING_MS, WORKER_RULES, WORKER_SETTINGS, type WorkerConfig, type WorkerSettings } from './settings.ts'
import { systemClock } from './system-clock.ts'

export interface WorkerOptions<C extends Catalogue, R extends Resources> {
  readonly catalogue: C
  /** One for each task of the catalogue. */
  readonly handlers: Handlers<C, R>
  /** What handlers find in `ctx.resources`. */
  readonly resources?: ResourceOpeners<R>
  /**
   * URL of a module whose default export is a record of openers like `resources`: what isolated handlers find in
   * `ctx.resources`, opened once in each child process.
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

export interface BullpenWorker {
  /**
   * Opens resources, then probes, then connects to Redis and begins to fetch. Resolves with the address of probes and
   * metrics. Rejects, with everything closed again, when a resource does not open or the port is taken.
   */
  start(): Promise<{ readonly url: string }>
  /**
   * Not ready → fetch nothing more → wait → at the deadline signal → grace → hand back → close resources and
   * connections. Resolves within drainTimeout + grace + 2 s. Twice is one drain.
   */
  drain(how?: DrainOptions): Promise<{ readonly abandoned: DrainReport['abandoned'] }>
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
  const log = createLog({ level: settings.logLevel, name: 'bullpen-worker' })
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
      processes: { max: most },
      log,
      resources: options.isolatedResources,
      onReplaced: ({ isolation, isolate, cause }) => sink({ event: 'isolate.replaced', isolation, isolate, cause }),
    }),
  )
  const registry = makeRegistry(catalogue, handlers, { middleware, limits: defaultLimits(settings), isolator })
  const graceMs = milliseconds(settings.grace)
  const feedOptions = {
    namespace: settings.namespace,
    redisUrl: settings.redisUrl,
    keepCompletedMs: milliseconds(settings.keepCompleted),
    log,
  }
  const broker = openBroker({
    ...feedOptions,
    queues: catalogue.queues,
    sizeLimit: settings.childLimit,
    onExpired: (expired) => sink({ event: 'task.expired', ...expired }),
  })
  let pools: readonly Pool[] = []
  let resources: OpenResources<R> | undefined
  let probes: Probes | undefined
  let drained: Promise<{ abandoned: DrainReport['abandoned'] }> | undefined

  const openPools = (values: R): readonly Pool[] =>
    [...sizes].map(([queue, concurrency]) => {
      const pool = makePool({
        queue,
        concurrency,
        maxLeftovers: settings.maxLeftovers,
        graceMs,
        parent: options.parent,
        feed: (work, fed) => openFeed({ ...feedOptions, queue, concurrency }, work, fed),
        host: {
          registry,
          context,
          clock: systemClock,
          random: Math.random,
          sink,
          enqueue: (task) => broker.enqueue(task),
          sha256: (text) => createHash('sha256').update(text).digest(),
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

  const drain = async (how: DrainOptions): Promise<{ abandoned: DrainReport['abandoned'] }> => {
    const limits = { drainMs: milliseconds(settings.drainTimeout), graceMs, ...how }
    const reports = await Promise.all(pools.map((pool) => pool.drain(limits)))
    await isolator?.close()
    await broker.close()
    // Handlers use resources until they end, and probes tell of the drain until it is over.
    await Promise.race([resources?.close(), sleep(CLOSING_MS, undefined, { ref: false })])
    await probes?.close()
    const abandoned = reports.flatMap((report) => report.abandoned)
    for (const { id, task } of abandoned) log.error({ id, task }, 'abandoned: still running at the end of the drain')
    return { abandoned }
  }

  return {
    log,
    escaped(err) {
      const fate = chargeEscape(err, context)
      if (fate === 'late') log.warn({ err }, 'an error escaped a handler after its attempt had ended')
      return fate
    },
    async start() {
      resources = await openResources(options.resources ?? ({} as ResourceOpeners<R>), log)
      try {
        probes = await serveProbes({ notReady, exposition: telemetry.exposition }, settings)
        pools = openPools(resources.values)
        await Promise.all(pools.map((pool) => pool.start()))
      } catch (error) {
        await isolator?.close()
        await broker.close()
        await probes?.close()
        await resources.close()
        throw error
      }
      return { url: probes.url }
    },
    drain(how = {}) {
      drained ??= drain(how)
      return drained
    },
  }
}

/** Every queue of the catalogue unless the settings name some; 0 is cores x 2 (row P11 of the seeds). */
function poolSizes(catalogue: Catalogue, { pools }: WorkerSettings): ReadonlyMap<string, number> {
  const wanted = pools ?? Object.fromEntries(catalogue.queues.map((queue) => [queue, 0]))
  const unknown = Object.keys(wanted).find((queue) => !catalogue.queues.includes(queue))
  if (unknown !== undefined) {
    const near = nearest(unknown, catalogue.queues) ?? catalogue.queues.join(', ')
    throw new BullpenError(
      'invalid_configuration',
      `pools (BULLPEN_WORKER_POOLS) names the queue '${unknown}', which no task of the catalogue uses; did you mean ${near}?`,
    )
  }
  return new Map(Object.entries(wanted).map(([queue, size]) => [queue, size === 0 ? availableParallelism() * 2 : size]))
}

/** Made only where a task asks for it. As many isolates as isolated tasks can run at once: none of them waits for one. */
function isolatorFor(
  catalogue: Catalogue,
  sizes: ReadonlyMap<string, number>,
  open: (most: number) => Isolator,
): Isolator | undefined {
  const isolated = catalogue.definitions.filter(({ isolation }) => isolation !== 'inline')
  const queues = new Set(isolated.map(({ queue }) => queue))
  const most = [...queues].reduce((sum, queue) => sum + (sizes.get(queue) ?? 0), 0)
  return isolated.length === 0 ? undefined : open(Math.max(1, most))
}

function defaultLimits(settings: WorkerSettings): Limits {
  const ms = (limit: string): number | 'none' => (limit === 'none' ? limit : milliseconds(limit))
  return {
    timeoutMs: ms(settings.taskTimeout),
    heartbeatMs: ms(settings.heartbeatTimeout),
    queueMs: ms(settings.queueTimeout),
    deadlineMs: ms(settings.deadline),
    graceMs: milliseconds(settings.grace),
  }
}

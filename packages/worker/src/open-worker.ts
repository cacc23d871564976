// Wires a worker: what can be made from its options at once, and what is opened when it starts, in this order:
//
// 1. the event-loop monitor and the probes, which watch everything else and so are closed last
// 2. resources, which handlers use until they end
// 3. the measurement of the clock, and the broker
// 4. pools, the isolator and the fleet agent, which are closed first
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { openBroker } from '@bullpen/bullmq'
import { openFleet, watchSkew } from '@bullpen/bullmq/internal'
import { checkSettings, originOf, WORKER_RULES, WORKER_SETTINGS, type WorkerConfig } from '@bullpen/config'
import { type Catalogue, type Handlers, type Log, milliseconds, type Resources, VERSION } from '@bullpen/contract'
import type { Broker, EventSink, Middleware } from '@bullpen/engine'
import { type AsyncContext, createRegistry, openResources, type ResourceOpeners } from '@bullpen/engine/internal'
import { attemptContext, clockOf, keepWrappersGeneric, settlesWithin } from '@bullpen/engine/node'
import { openIsolator } from '@bullpen/sandbox/internal'
import { createLog, createTelemetry, logEvents } from '@bullpen/telemetry/internal'
import { openEventLoopMonitor } from './event-loop/event-loop-monitor.ts'
import { type FleetAgent, openFleetAgent } from './fleet-agent/fleet-agent.ts'
import type { Opening } from './lifecycle.ts'
import { poolFactory } from './pools/create-pool.ts'
import { createPoolSupervisor, type DrainRequest, type PoolSupervisor } from './pools/pool-supervisor.ts'
import { openProbes } from './probes.ts'
import { defaultTimeouts, graceWarnings, isolatorFor, poolSizes } from './resolve-config.ts'

export interface WorkerOptions<C extends Catalogue, R extends Resources> {
  readonly catalogue: C
  /** One for each task of the catalogue. */
  readonly handlers: Handlers<C, R>
  /** What handlers find in `ctx.resources`: opened before the first task, closed after the last. */
  readonly resources?: ResourceOpeners<R>
  /**
   * URL of a module whose default export is a record of openers like `resources`: what isolated handlers find in
   * `ctx.resources`, opened once in each thread or child process.
   */
  readonly isolatedResources?: string
  /** Around every attempt, in this process; the first is the outermost. */
  readonly middleware?: readonly Middleware<R>[]
  /** Settings that are left out have their defaults. `workerConfig()` reads them from flags, environment and a file. */
  readonly config?: WorkerConfig
  /** When it aborts, every pool drains hard and the worker closes. */
  readonly parent?: AbortSignal
}

/** What is open while the worker runs. */
export interface OpenWorker {
  /** The address of the probes and metrics. */
  readonly url: string
  readonly broker: Broker
  readonly pools: PoolSupervisor
  readonly fleetAgent: FleetAgent
}

export interface WiredWorker {
  readonly log: Log
  readonly context: AsyncContext
  /** Concurrency by queue. */
  readonly sizes: ReadonlyMap<string, number>
  /** `drain`: begins to drain the worker, as a remote command asks. */
  open(opening: Opening, drain: (request: DrainRequest) => void): Promise<OpenWorker>
}

/** How long resources may take to close, in ms: less than all that is closed, so that the probes close in order. */
const CLOSE_RESOURCES_MS = 1_200

/** Opens nothing. @throws BullpenError as {@link createWorker}. */
export function wireWorker<C extends Catalogue, R extends Resources>(options: WorkerOptions<C, R>): WiredWorker {
  const { catalogue, handlers, middleware = [], parent } = options
  const settings = checkSettings(WORKER_SETTINGS, WORKER_RULES, options.config ?? {})
  const sizes = poolSizes(catalogue, settings)
  const logAs = { level: settings.logLevel, name: 'bullpen-worker' }
  const log = createLog(logAs)
  const telemetry = createTelemetry({ role: 'worker', version: VERSION })
  const logEvent = logEvents(log)
  const sink: EventSink = (event) => {
    telemetry.sink(event)
    logEvent(event)
  }
  const context = attemptContext()
  const startedAt = performance.now()
  let pools: PoolSupervisor | undefined

  /** The slots of a queue: its pool may have been resized, and slots that are stopping may still run a task. */
  const slotsOf = (queue: string): number => {
    const pool = pools?.pool(queue)
    return Math.max(sizes.get(queue) ?? 0, pool?.size() ?? 0, pool?.busy() ?? 0)
  }
  const isolator = isolatorFor(catalogue, slotsOf, (max) =>
    openIsolator({
      threads: { max: () => max('thread') },
      processes: { max: () => max('process') },
      log,
      resources: options.isolatedResources,
      onReplaced: ({ isolation, isolate, cause }) => sink({ event: 'isolate.replaced', isolation, isolate, cause }),
    }),
  )
  const registry = createRegistry(catalogue, handlers, { middleware, timeouts: defaultTimeouts(settings), isolator })
  const notReady = (): string | undefined => {
    if (pools === undefined) return 'starting'
    return pools.ending() ? 'draining' : pools.notReady()
  }

  async function open(opening: Opening, drain: (request: DrainRequest) => void): Promise<OpenWorker> {
    // The monitor is a thread, and one more that may end beside the isolated handlers'.
    keepWrappersGeneric()
    const warnAfter = settings.eventLoopStallWarning
    const monitor = openEventLoopMonitor({ warnAfter, context, sink, log, logAs })
    opening.owns(monitor.close)
    const { host, port } = settings
    const address = { host, port, portOrigin: originOf(options.config ?? {}, 'port') }
    const probes = await openProbes({ notReady, exposition: telemetry.exposition }, address, log)
    opening.owns(probes.close)

    const resources = await openResources(options.resources ?? ({} as ResourceOpeners<R>), (err, resource) =>
      log.error({ err, resource }, 'resource failed to close'),
    )
    opening.owns(() => settlesWithin(resources.close(), CLOSE_RESOURCES_MS))
    opening.assertWanted()

    const { namespace, redisUrl } = settings
    const skew = watchSkew({ redisUrl, log })
    opening.owns(skew.close)
    telemetry.onScrape(() => telemetry.clockSkew(skew.skewMs()))
    const broker = openBroker({
      namespace,
      redisUrl,
      log,
      now: skew.now,
      queues: catalogue.queues,
      sizeLimit: settings.maxChildBytes,
      admission: 'open',
      onExpired: (expired) => sink({ event: 'task.expired', ...expired }),
      onCancelled: (cancelled) => sink({ event: 'task.cancelled', ...cancelled }),
    })
    opening.owns(broker.close)

    const [drainMs, graceMs] = [milliseconds(settings.drainTimeout), milliseconds(settings.grace)]
    for (const warning of graceWarnings(catalogue, sizes, graceMs)) log.warn(warning)
    // Distinct across hosts, across containers that share a host name, and across restarts that reuse a process id.
    const worker = `${hostname()}:${process.pid}:${randomUUID().slice(0, 8)}`
    const catalogueQueues = catalogue.queues
    const common = { settings, catalogueQueues, registry, context, clock: skew, sink, worker, log, parent }
    pools = createPoolSupervisor({
      sizes,
      drainTimes: { drainMs, graceMs },
      createPool: poolFactory({ ...common, resources: resources.values, tasks: broker }),
      observe: telemetry.watchPool,
      log,
    })
    const fleetAgent = openFleetAgent({
      fleet: openFleet({ namespace, redisUrl, log, queues: [...sizes.keys()], catalogueQueues }),
      clock: clockOf(skew),
      skewMs: () => Math.round(skew.skewMs() ?? 0),
      log,
      pools,
      drain,
      about: { worker, host: hostname(), pid: process.pid, version: VERSION, drainTimeoutMs: drainMs, graceMs },
      startedAt,
    })
    // Both may take long, and neither needs the other.
    opening.owns(() => Promise.all([isolator?.close(), fleetAgent.close()]))
    return { url: probes.url, broker, pools, fleetAgent }
  }

  return { log, context, sizes, open }
}

// Wires a worker. Some parts are created from its options immediately, and the others are opened when it starts, in
// this order:
//
// 1. the event-loop monitor and the probes, which watch everything else and are therefore closed last
// 2. the resources, which handlers use until they end
// 3. the clock-skew watch and the broker
// 4. the pools, the isolator and the fleet agent, which are closed first
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { openBroker } from '@bullpen/bullmq'
import { createConnectionWatch, openFleet, openSkewMonitor } from '@bullpen/bullmq/internal'
import {
  checkSettings,
  originOf,
  redisUrlOf,
  settingsOfPool,
  WORKER_RULES,
  WORKER_SETTINGS,
  type WorkerConfig,
} from '@bullpen/config'
import {
  type Catalogue,
  type GroupId,
  type Handlers,
  type Log,
  milliseconds,
  type Resources,
  VERSION,
} from '@bullpen/contract'
import { groupId } from '@bullpen/contract/internal'
import type { Broker, EventSink, Middleware, PayloadCodec, Tracing } from '@bullpen/engine'
import {
  type AsyncContext,
  catalogueDigests,
  createOnlineGroup,
  createRegistry,
  type OnlineGroup,
  openDeclareLoop,
  openResources,
  type ResourceOpeners,
  tracedBroker,
} from '@bullpen/engine/internal'
import { attemptContext, clockOf, keepWrappersGeneric, settlesWithin, sha256, systemClock } from '@bullpen/engine/node'
import { type IsolatorOptions, openIsolator, processFit } from '@bullpen/sandbox/internal'
import {
  childLog,
  createLog,
  createLogLevel,
  createTelemetry,
  logEvents,
  summarizeAttempts,
} from '@bullpen/telemetry/internal'
import { openEventLoopMonitor } from './event-loop/event-loop-monitor.ts'
import { createStallMemory } from './event-loop/recent-stalls.ts'
import { type FleetAgent, openFleetAgent } from './fleet-agent/fleet-agent.ts'
import { restoring } from './kept-built-ins.ts'
import type { Opening } from './lifecycle.ts'
import { poolFactory } from './pools/create-pool.ts'
import { assertIsolable, isolateByPool } from './pools/pool-isolation.ts'
import { createPoolSupervisor, type DrainRequest, type PoolSupervisor } from './pools/pool-supervisor.ts'
import { openProbes } from './probes.ts'
import {
  defaultTimeouts,
  drainSettings,
  graceWarnings,
  isolatorFor,
  poolSizes,
  quarantineProcesses,
} from './resolve-config.ts'

export interface WorkerOptions<C extends Catalogue, R extends Resources> {
  readonly catalogue: C
  /** One handler for each task in the catalogue. */
  readonly handlers: Handlers<C, R>
  /**
   * The resources that handlers can use as `ctx.resources`. They are opened before the first task and closed after the
   * last one.
   */
  readonly resources?: ResourceOpeners<R>
  /**
   * The URL of a module whose default export is a record of openers like `resources`. Isolated handlers can use these
   * resources as `ctx.resources`. They are opened once in each thread or child process.
   */
  readonly isolatedResources?: string
  /** Functions that wrap every attempt, in this process. The first one is the outermost. */
  readonly middleware?: readonly Middleware<R>[]
  /**
   * Encodes inputs, outputs and the results of steps before they are stored, and decodes them after they are read. The
   * API and all workers of a namespace need the same codec. By default, payloads are stored as they are.
   */
  readonly codec?: PayloadCodec
  /**
   * Records a span for each attempt, and for each child task that a handler enqueues, such as `openTelemetry()` of
   * `@bullpen/telemetry/opentelemetry`. By default, nothing is traced.
   */
  readonly tracing?: Tracing
  /**
   * The worker's settings. Settings that are omitted have their default values. `workerConfig()` reads settings from
   * flags, the environment and a file.
   */
  readonly config?: WorkerConfig
  /** When this signal aborts, every pool drains hard and the worker closes. */
  readonly parent?: AbortSignal
}

/** The parts that are open while the worker runs. */
export interface OpenWorker {
  /** The address of the probes and metrics. */
  readonly url: string
  readonly broker: Broker
  readonly pools: PoolSupervisor
  readonly fleetAgent: FleetAgent
  /** The only group whose tasks the pools run. Undefined if they run all tasks. */
  readonly onlineGroup: OnlineGroup | undefined
}

export interface WiredWorker {
  readonly log: Log
  readonly context: AsyncContext
  /** The concurrency of each queue. */
  readonly sizes: ReadonlyMap<string, number>
  /** The group that the settings name. */
  readonly group: GroupId | undefined
  /**
   * Opens the worker's parts. `drain` is called when a remote command requests a drain of the worker. `group`, if
   * given, is the only group whose tasks the pools run.
   */
  open(opening: Opening, drain: (request: DrainRequest) => void, group?: GroupId): Promise<OpenWorker>
}

/**
 * How long resources may take to close, in ms. This is less than the total closing time, so that there is time left to
 * close the probes.
 */
const CLOSE_RESOURCES_MS = 1_200

const NO_HEARTBEAT = 'Redis has accepted no heartbeat for 15 s'

/** Wires the worker without opening anything. @throws BullpenError the same errors as {@link createWorker}. */
export function wireWorker<C extends Catalogue, R extends Resources>(options: WorkerOptions<C, R>): WiredWorker {
  const { catalogue, handlers, middleware = [], codec, parent, tracing } = options
  const settings = checkSettings(WORKER_SETTINGS, WORKER_RULES, options.config ?? {})
  const sizes = poolSizes(catalogue, settings)
  const logAs = { level: settings.logLevel, name: 'bullpen-worker' }
  const log = createLog(logAs)
  const telemetry = createTelemetry({ role: 'worker', version: VERSION })
  telemetry.publishTasks(catalogue.definitions.filter(({ queue }) => sizes.has(queue)))
  telemetry.watchObjectives(catalogue.definitions)
  const logEvent = logEvents(log, systemClock)
  const every = settings.logSummaryInterval
  const summaries = every === 'none' ? undefined : summarizeAttempts(log, systemClock, milliseconds(every))
  let pools: PoolSupervisor | undefined
  let fleetAgent: FleetAgent | undefined
  const sink: EventSink = (event) => {
    telemetry.sink(event)
    logEvent(event)
    summaries?.sink(event)
    tracing?.sink(event)
    if (event.event === 'pool.state') fleetAgent?.poolMoved(event)
  }
  const context = attemptContext()
  const startedAt = performance.now()

  /**
   * Returns the number of slots of a queue. Its pool may have been resized, and slots that are stopping may still be
   * running a task.
   */
  const slotsOf = (queue: string): number => {
    const pool = pools?.pool(queue)
    return Math.max(sizes.get(queue) ?? 0, pool?.size() ?? 0, pool?.busy() ?? 0)
  }
  const isolates: Pick<IsolatorOptions, 'log' | 'resources' | 'onReplaced'> = {
    log,
    resources: options.isolatedResources,
    onReplaced: ({ isolation, isolate, cause }) => sink({ event: 'isolate.replaced', isolation, isolate, cause }),
  }
  const effective = isolateByPool(catalogue, handlers, (queue) => settingsOfPool(settings, queue).isolation)
  const isolator = isolatorFor(effective.catalogue, slotsOf, (max) =>
    openIsolator({ ...isolates, threads: { max: () => max('thread') }, processes: { max: () => max('process') } }),
  )
  const fit = processFit({
    resources: Object.keys(options.resources ?? {}),
    isolatedResources: options.isolatedResources,
  })
  const quarantine = quarantineProcesses(settings, fit, (max) =>
    openIsolator({ ...isolates, threads: { max: 1 }, processes: { max } }),
  )
  const timeouts = (queue: string) => defaultTimeouts(settings, queue)
  const registry = createRegistry(effective.catalogue, effective.handlers, {
    middleware,
    timeouts,
    isolator,
    wrapInline: restoring,
    quarantine,
  })
  const notReady = (): string | undefined => {
    if (pools === undefined) return 'starting'
    if (pools.isDraining()) return 'draining'
    const isStoreUsable = fleetAgent?.isAccepted() ?? false
    return pools.notReady(isStoreUsable) ?? (isStoreUsable ? undefined : NO_HEARTBEAT)
  }

  async function open(opening: Opening, drain: (request: DrainRequest) => void, group?: GroupId): Promise<OpenWorker> {
    await assertIsolable(effective.isolated, fit)
    // The monitor is also a thread, and like isolated handlers' threads, it may end before this process does.
    keepWrappersGeneric()
    opening.owns(() => summaries?.close())
    const warnAfter = settings.eventLoopStallWarning
    const stalls = createStallMemory(() => performance.now())
    const sinkStall: EventSink = (event) => {
      sink(event)
      if (event.event === 'event_loop.stalled') stalls.note(event)
    }
    const monitor = openEventLoopMonitor({ warnAfter, context, sink: sinkStall, log, logAs })
    opening.owns(monitor.close)
    const logLevel = createLogLevel({
      configured: settings.logLevel,
      apply(level) {
        log.level = level
        monitor.setLogLevel(level)
      },
      clock: systemClock,
      log,
    })
    opening.owns(logLevel.close)
    const { host, port } = settings
    const address = { host, port, portOrigin: originOf(options.config ?? {}, 'port') }
    const probes = await openProbes({ notReady, exposition: telemetry.exposition }, address, log)
    opening.owns(probes.close)

    const resources = await openResources(options.resources ?? ({} as ResourceOpeners<R>), (err, resource) =>
      log.error({ err, resource }, 'resource failed to close'),
    )
    opening.owns(() => settlesWithin(resources.close(), CLOSE_RESOURCES_MS))
    opening.assertWanted()

    const { namespace } = settings
    const redisUrl = redisUrlOf(settings)
    const skew = openSkewMonitor({ redisUrl, namespace, log })
    opening.owns(skew.close)
    const watch = createConnectionWatch(telemetry.redisReplied)
    const broker = openBroker({
      namespace,
      redisUrl,
      watch,
      log,
      now: skew.now,
      measured: skew.measured,
      queues: catalogue.queues,
      sizeLimit: settings.maxChildBytes,
      codec,
      admission: 'open',
      replicationTimeoutMs: milliseconds(settings.replicationTimeout),
      onExpired: (expired) => sink({ event: 'task.expired', ...expired }),
      onCancelled: (cancelled) => sink({ event: 'task.cancelled', ...cancelled }),
      onScheduled: (scheduled) => sink({ event: 'task.enqueued', ...scheduled }),
      onForwarded: (forwarded) => sink({ event: 'task.enqueued', ...forwarded }),
      ...telemetry.brokerEvents,
    })
    opening.owns(broker.close)
    telemetry.onScrape(() =>
      telemetry.setProcessGauges({ isLeading: broker.isLeading(), connections: watch.count(), skewMs: skew.skewMs() }),
    )

    const [drainMs, graceMs] = [milliseconds(settings.drainTimeout), milliseconds(settings.grace)]
    const graceOf = (queue: string): number => drainSettings(settings, queue).graceMs
    for (const warning of graceWarnings(catalogue, sizes, graceOf)) log.warn(warning)
    // The name is distinct across hosts, across containers that share a host name, and across restarts that reuse a
    // process id.
    const worker = `${hostname()}:${process.pid}:${randomUUID().slice(0, 8)}`
    const clock = clockOf(skew)
    const { schedules } = broker
    opening.owns(openDeclareLoop({ schedules, definitions: catalogue.schedules, clock: systemClock, log }))
    const ofGroup = { groups: broker.groups, queues: [...sizes.keys()], clock, sha256 }
    const onlineGroup = group === undefined ? undefined : createOnlineGroup({ id: group, ...ofGroup })
    const common = {
      settings,
      catalogue,
      registry,
      context,
      clock: skew,
      sink,
      tracing,
      worker,
      codec,
      onlineGroup,
      log,
      logFor: (fields: object) => childLog(log, fields),
      parent,
    }
    pools = createPoolSupervisor({
      sizes,
      drainSettings: (queue) => drainSettings(settings, queue),
      createPool: poolFactory({
        ...common,
        resources: resources.values,
        tasks: tracedBroker(broker, tracing),
        watch,
        onLateLocks: (queue, locks) => telemetry.count('bullpen_late_lock_renewals_total', { queue }, locks),
        onLockThreadEnded: () => telemetry.count('bullpen_lock_threads_restarted_total', {}),
        quarantineProcesses: quarantine?.pool,
      }),
      observe: telemetry.watchPool,
      log,
    })
    fleetAgent = openFleetAgent({
      fleet: openFleet({
        namespace,
        redisUrl,
        watch,
        log,
        queues: [...sizes.keys()],
        catalogueQueues: catalogue.queues,
      }),
      clock,
      skewMs: () => Math.round(skew.skewMs() ?? 0),
      stalls: stalls.recent,
      log,
      logLevel,
      pools,
      drain,
      about: {
        ...{ worker, host: hostname(), pid: process.pid, version: VERSION, drainTimeoutMs: drainMs, graceMs },
        catalogue: catalogueDigests(catalogue, [...sizes.keys()], sha256),
      },
      startedAt,
    })
    // All of them may take a long time to close and none depends on another, so they are closed at the same time.
    opening.owns(() => Promise.all([isolator?.close(), quarantine?.isolator.close(), fleetAgent?.close()]))
    return { url: probes.url, broker, pools, fleetAgent, onlineGroup }
  }

  const named = settings.group === undefined ? undefined : groupId(settings.group)
  return { log, context, sizes, group: named, open }
}

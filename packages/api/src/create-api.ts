// Creates the API for a catalogue: connects to Redis, builds the server, and closes everything in reverse order.
//
// The server closes first, so that requests in progress can still use Redis and are counted. The metrics server closes next, so
// that the final numbers can be read, and because a scrape reads from Redis. The connections to Redis close last.

import { randomBytes } from 'node:crypto'
import { type BullmqBroker, openBroker } from '@bullpen/bullmq'
import { createConnectionWatch, ENQUEUE_REFUSALS, openFleet, openSkewMonitor } from '@bullpen/bullmq/internal'
import { API_RULES, API_SETTINGS, type ApiConfig, checkSettings, DEV_KEY_NAME, redisUrlOf } from '@bullpen/config'
import { type Catalogue, type Log, milliseconds, type OnShutdown, VERSION } from '@bullpen/contract'
import type { Broker, PayloadCodec, ProducerTracing } from '@bullpen/engine'
import { createBlockedCallers, type Fleet, openDeclareLoop, tracedBroker } from '@bullpen/engine/internal'
import { clockOf, createRandomPool, settlesWithin, systemClock } from '@bullpen/engine/node'
import { createLog, createTelemetry, type Telemetry } from '@bullpen/telemetry/internal'
import type { FastifyInstance } from 'fastify'
import { enqueueRateOf } from './auth/key-limits.ts'
import { createKeyring } from './auth/keyring.ts'
import { avoidPretenuring } from './avoid-pretenuring.ts'
import { followLogLevel } from './follow-log-level.ts'
import { createMetricsServer } from './http/metrics-server.ts'
import { createOpenStreams, STREAM_SUBJECTS } from './http/open-streams.ts'
import { buildServer } from './http/server.ts'
import { ApiLifecycle } from './lifecycle.ts'
import { type Addresses, openPorts, redisAnswers, waitForRedis } from './listen.ts'

export interface ApiOptions {
  readonly catalogue: Catalogue
  readonly config?: ApiConfig
  /**
   * Encodes tasks' inputs before they are stored, and decodes the payloads of tasks that are read. The namespace's workers need
   * the same codec. By default, payloads are stored as they are.
   */
  readonly codec?: PayloadCodec
  /**
   * Records a span for each call that enqueues tasks, such as `openTelemetry()` of `@bullpen/telemetry/opentelemetry`. The parent of these
   * spans is the active span, or else the one in the request's `traceparent` header. By default, nothing is traced, and the tasks of a
   * request belong to the trace in that header.
   */
  readonly tracing?: ProducerTracing
  /** Defaults to a JSON log on standard output, with the level from the settings. */
  readonly log?: Log
}

export interface Api {
  /**
   * Waits up to 1 s for Redis and then opens the ports, even if Redis is not available yet. If a port cannot be opened, closes the
   * API.
   *
   * @throws BullpenError `invalid_configuration` if an address is already in use, or `wrong_state` if listen() is called twice or
   * after close().
   */
  listen(): Promise<Addresses>
  /** Resolves to true when Redis has answered, which may be after listen() has resolved. Resolves to false if the API is closed first. */
  ready(): Promise<boolean>
  /**
   * Finishes the requests that have arrived, responds to long polls at once, and then closes the connections to Redis. Can be
   * called repeatedly.
   */
  close(): Promise<void>
  readonly app: FastifyInstance
  readonly log: Log
}

/** The space that is reserved for data stored with the input, such as labels, times and ids, in bytes. */
const ENVELOPE_BYTES = 16_384

/**
 * A request that has arrived completely gets a response within about a second. Any connection left after this time is still
 * sending its request.
 */
const FINISH_WITHIN_MS = 5_000

/**
 * Creates an API. Sets the flag `--no-allocation-site-pretenuring` of V8 for the whole process (avoid-pretenuring.ts).
 *
 * @throws BullpenError `invalid_configuration`, naming every setting that is unknown, invalid or contradictory.
 */
export async function createApi({ catalogue, config = {}, codec, tracing, log }: ApiOptions): Promise<Api> {
  const settings = checkSettings(API_SETTINGS, API_RULES, config)
  avoidPretenuring()
  const { namespace, bodyLimit } = settings
  const redisUrl = redisUrlOf(settings)
  const { queues } = catalogue
  const ownLog = createLog({ level: settings.logLevel, name: 'bullpen-api' })
  const logger = log ?? ownLog
  const telemetry = createTelemetry({ role: 'api', version: VERSION })
  telemetry.publishTasks(catalogue.definitions)
  telemetry.publishRefusals(queues, ENQUEUE_REFUSALS)
  telemetry.watchObjectives(catalogue.definitions)
  telemetry.expectedDurations(catalogue.definitions)
  const isDevelopment = settings.environment === 'development'
  const devKey = isDevelopment ? (settings.devKey ?? generateKey()) : undefined
  const keyring = createKeyring(settings.keys, devKey === undefined ? undefined : `${DEV_KEY_NAME}:${devKey}`)
  const closing = new AbortController()

  await using opened = new AsyncDisposableStack()
  const skew = opened.adopt(openSkewMonitor({ redisUrl, namespace, log: logger }), (each) => each.close())
  const watch = createConnectionWatch(telemetry.redisReplied)
  const broker = opened.adopt(
    openBroker({
      redisUrl,
      namespace,
      queues,
      watch,
      sizeLimit: bodyLimit + ENVELOPE_BYTES,
      codec,
      now: skew.now,
      measured: skew.measured,
      log: logger,
      onExpired: (expired) => telemetry.sink({ event: 'task.expired', ...expired }),
      onCancelled: (cancelled) => telemetry.sink({ event: 'task.cancelled', ...cancelled }),
      onScheduled: (scheduled) => telemetry.sink({ event: 'task.enqueued', ...scheduled }),
      onForwarded: (forwarded) => telemetry.sink({ event: 'task.enqueued', ...forwarded }),
      ...telemetry.brokerEvents,
      onRefused: ({ queue, code }) => telemetry.count('bullpen_enqueues_refused_total', { queue, code }),
      memoryWatermark: settings.memoryWatermark,
      queueMemoryShare: settings.queueMemoryShare,
      idempotencyMemoryShare: settings.idempotencyMemoryShare,
      replicationTimeoutMs: milliseconds(settings.replicationTimeout),
      allowEviction: settings.allowEviction || isDevelopment,
      enqueueRateOf: enqueueRateOf(settings.keyLimits),
      serverProblems: isDevelopment ? 'info' : 'warn',
    }),
    (each) => each.close(),
  )
  const onShutdownOf = (queue: string): OnShutdown => catalogue.queue(queue).onShutdown
  const fleetOptions = { redisUrl, namespace, queues, onShutdownOf, watch, log: logger }
  const fleet = opened.adopt(openFleet(fleetOptions), (each) => each.close())
  if (logger === ownLog) {
    opened.defer(followLogLevel(fleet, { log: ownLog, configured: settings.logLevel, clock: clockOf(skew) }))
  }
  const { schedules } = broker
  opened.defer(openDeclareLoop({ schedules, definitions: catalogue.schedules, clock: systemClock, log: logger }))
  reportQueues(telemetry, { broker, fleet, catalogue, now: skew.now })
  const blocked = createBlockedCallers(systemClock)
  const streams = createOpenStreams()
  telemetry.onScrape(() => {
    for (const subject of STREAM_SUBJECTS) {
      telemetry.set('bullpen_event_streams', { subject }, streams.count(subject))
    }
    for (const queue of queues) telemetry.set('bullpen_blocked_requests', { queue }, blocked.count(queue))
    telemetry.setProcessGauges({ isLeading: broker.isLeading(), connections: watch.count(), skewMs: skew.skewMs() })
    const memory = broker.memory()
    telemetry.set('bullpen_redis_memory_used_bytes', {}, memory?.usedBytes)
    telemetry.set('bullpen_redis_memory_limit_bytes', {}, memory?.limitBytes)
    telemetry.set('bullpen_idempotency_records_bytes', {}, broker.idempotencyBytes())
    for (const [check, isProblem] of broker.serverProblems())
      telemetry.set('bullpen_redis_unsafe', { check }, isProblem)
  })
  const metrics = opened.adopt(createMetricsServer(telemetry.exposition, logger), (each) => each.close())
  const app = await buildServer({
    catalogue,
    broker: tracedBroker(broker, tracing),
    fleet,
    blocked,
    streams,
    rates: broker.rates,
    apiKeyNames: keyring.names,
    platform: {
      isDevelopment,
      memoryWatermark: settings.memoryWatermark,
      clockSkewMs: skew.skewMs,
      servers: broker.servers,
      leadership: broker.leadership,
      unreachableNodes: broker.unreachableNodes,
      head: broker.head,
      lostTasks: broker.lostTasks,
      recentEnds: broker.recentEnds,
    },
    emit: telemetry.sink,
    enqueueTimed: telemetry.enqueueTimed,
    log: logger,
    now: skew.now,
    randomBytes: createRandomPool(),
    closing: closing.signal,
    tracing,
    keyring,
    version: VERSION,
    bodyLimit,
    bulkBodyLimit: settings.bulkBodyLimit,
    minBodyRate: settings.minBodyRate,
    idempotencyLifeS: milliseconds(settings.idempotencyLife) / 1_000,
    corsOrigins: settings.corsOrigins,
    secureCookie: settings.environment === 'production',
    observe: telemetry.httpObserved,
    boardQueues: broker.boardQueues,
    boardJobs: broker.boardJobs,
    allowBoardChanges: settings.allowBoardChanges,
    grafanaUrl: settings.grafanaUrl,
  })
  opened.defer(() => closeServer(app, logger))

  const resources = opened.move()
  const lifecycle = new ApiLifecycle()
  let opening: Promise<Addresses> | undefined
  let closed: Promise<void> | undefined

  async function open(): Promise<Addresses> {
    await waitForRedis({ broker, fleet, skew }, closing.signal)
    return openPorts({ app, metrics, settings, devKey }, closing.signal)
  }

  async function drain(): Promise<void> {
    // This turns readiness off and ends long polls, which would otherwise keep the server open for up to 30 s.
    closing.abort()
    lifecycle.moveTo('draining')
    // If a port were opened while everything else is closing, it would stay open.
    await opening?.catch(() => {})
    await resources.disposeAsync()
    lifecycle.moveTo('closed')
  }

  const api: Api = {
    app,
    log: logger,
    async listen() {
      lifecycle.beginListening()
      opening = open()
      try {
        const addresses = await opening
        lifecycle.moveTo('running')
        return addresses
      } catch (error) {
        await api.close()
        throw error
      }
    },
    ready: () => redisAnswers(broker, closing.signal),
    close: () => (closed ??= drain()),
  }
  return api
}

async function closeServer(app: FastifyInstance, log: Log): Promise<void> {
  const closed = app.close()
  if (!(await settlesWithin(closed, FINISH_WITHIN_MS))) {
    log.warn({ withinMs: FINISH_WITHIN_MS }, 'closing connections whose requests are still incomplete')
    app.server.closeAllConnections()
  }
  await closed
}

interface Reported {
  readonly broker: BullmqBroker
  readonly fleet: Pick<Fleet, 'queueSettings'>
  readonly catalogue: Catalogue
  readonly now: () => number
}

/**
 * Reports the whole fleet's queues. Every API process does this, so the numbers are available as long as any API process is up.
 */
function reportQueues(telemetry: Telemetry, { broker, fleet, catalogue, now }: Reported): void {
  const { queues, definitions } = catalogue
  telemetry.onScrape(async () => {
    const up = await broker.ping().then(
      () => true,
      () => false,
    )
    telemetry.set('bullpen_redis_up', {}, up)
    if (!up) return
    for (const queue of queues) telemetry.queueLimits(queue, broker.limitsOf(queue, catalogue.queue(queue).limits))
    await waitForAll([
      ...queues.flatMap((queue) =>
        catalogue.queue(queue).breakers === undefined
          ? []
          : [fleet.queueSettings(queue).then(({ breakers = [] }) => telemetry.breakers(queue, breakers))],
      ),
      broker.lastWrites().then((writes) => {
        for (const [write, hasFailed] of writes) telemetry.set('bullpen_redis_write_failed', { write }, hasFailed)
      }),
      broker.groups.count().then((groups) => telemetry.set('bullpen_unfinished_groups', {}, groups)),
      broker.runs.count().then((runs) => telemetry.set('bullpen_unfinished_runs', {}, runs)),
      ...queues.flatMap((queue) => [
        broker.counts(queue).then((counts) => telemetry.queueTasks(queue, counts)),
        broker.totals(queue).then((totals) => telemetry.queueTotals(queue, totals, now())),
        broker.head(queue).then((head) => telemetry.queueHead(queue, head, now())),
        broker.schedules.troubles(queue).then((counts) => {
          for (const [trouble, schedules] of Object.entries(counts)) {
            telemetry.set('bullpen_troubled_schedules', { queue, trouble }, schedules)
          }
        }),
        reportHeldRetries(telemetry, broker, queue, definitions),
      ]),
    ])
  })
}

/**
 * Waits until every read has ended, because the values that one sets after the scrape would be missing from it.
 *
 * @throws AggregateError with the error of each read that failed
 */
async function waitForAll(reads: readonly Promise<void>[]): Promise<void> {
  const ended = await Promise.allSettled(reads)
  const errors = ended.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []))
  if (errors.length > 0) throw new AggregateError(errors, `${errors.length} of ${reads.length} reads failed`)
}

/** Reports how many retries the budget of each definition of a queue holds. */
async function reportHeldRetries(
  telemetry: Telemetry,
  broker: Broker,
  queue: string,
  definitions: Catalogue['definitions'],
): Promise<void> {
  const tasks = definitions.flatMap((each) =>
    each.queue === queue && each.retry.budget !== undefined ? [each.name] : [],
  )
  const counts = await broker.heldRetries(queue, tasks)
  for (const [i, task] of tasks.entries()) telemetry.set('bullpen_held_retries', { queue, task }, counts[i] ?? 0)
}

function generateKey(): string {
  return randomBytes(24).toString('base64url')
}

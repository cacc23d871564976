// The API of one catalogue: opens Redis and the metrics, puts the server before them, and closes all in the right order.

import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { openBroker } from '@bullpen/bullmq'
import { openFleet, type SkewWatch, watchSkew } from '@bullpen/bullmq/internal'
import { API_RULES, API_SETTINGS, type ApiConfig, type ApiSettings, checkSettings } from '@bullpen/config'
import { BullpenError, type Catalogue, type Log, VERSION } from '@bullpen/contract'
import type { Broker } from '@bullpen/engine'
import type { Fleet } from '@bullpen/engine/internal'
import { createLog, createTelemetry, type Telemetry } from '@bullpen/telemetry/internal'
import type { FastifyInstance } from 'fastify'
import { createKeyring } from './auth/keyring.ts'
import { createMetricsServer, type MetricsServer } from './http/metrics-server.ts'
import { buildServer } from './http/server.ts'

export interface ApiOptions {
  readonly catalogue: Catalogue
  readonly config?: ApiConfig
  /** One made from the settings unless given. */
  readonly log?: Log
}

export interface Addresses {
  readonly url: string
  readonly metricsUrl: string
  /** In development with the key that logs the browser in. */
  readonly boardUrl: string
}

export interface Api {
  /** Waits up to a second for Redis, which may come later, and starts listening. Rejects with `invalid_configuration` when an address is taken. */
  listen(): Promise<Addresses>
  /** Finishes the requests that have come in, waiting ones at once, then closes Redis. Never rejects twice. */
  close(): Promise<void>
  readonly app: FastifyInstance
  readonly log: Log
}

/** Room in Redis for what goes with the input: labels, times, ids. */
const ENVELOPE_BYTES = 16_384

const CONNECT_WITHIN_MS = 1_000

/** Every request that is whole is answered within a second or so; what is left then sends its own too slowly. */
const FINISH_WITHIN_MS = 5_000

/** @throws BullpenError `invalid_configuration`, naming every setting that is unknown, wrong or contradictory. */
export async function createApi({ catalogue, config = {}, log }: ApiOptions): Promise<Api> {
  const settings = checkSettings(API_SETTINGS, API_RULES, config)
  const logger = log ?? createLog({ level: settings.logLevel, name: 'bullpen-api' })
  const telemetry = createTelemetry({ role: 'api', version: VERSION })
  const { redisUrl, namespace, bodyLimit } = settings
  const { queues } = catalogue
  const skew = watchSkew({ redisUrl, log: logger })
  telemetry.onScrape(() => telemetry.clockSkew(skew.skewMs()))
  const broker = openBroker({
    redisUrl,
    namespace,
    queues,
    sizeLimit: bodyLimit + ENVELOPE_BYTES,
    now: skew.now,
    log: logger,
    onCancelled: (cancelled) => telemetry.sink({ event: 'task.cancelled', ...cancelled }),
  })
  const fleet = openFleet({ redisUrl, namespace, queues, log: logger })
  watchQueues(telemetry, broker, queues)
  const devKey = settings.environment === 'development' ? (settings.devKey ?? makeKey()) : undefined
  const closing = new AbortController()
  const app = await buildServer({
    catalogue,
    broker,
    fleet,
    emit: telemetry.sink,
    log: logger,
    now: skew.now,
    randomBytes,
    closing: closing.signal,
    keyring: createKeyring(settings.keys, devKey),
    version: VERSION,
    bodyLimit,
    secureCookie: settings.environment === 'production',
    observe: telemetry.httpObserved,
    boardQueues: broker.boardQueues,
  })
  const metrics = createMetricsServer(telemetry.exposition, logger)
  let closed: Promise<void> | undefined
  return {
    app,
    log: logger,
    async listen() {
      await giveRedisAMoment(broker, fleet, skew)
      return listen(app, metrics, settings, devKey)
    },
    close() {
      closed ??= closeInOrder(closing, app, metrics, [fleet, broker, skew], logger)
      return closed
    },
  }
}

/** The first requests should not meet a connection that is still being made. Redis may be away: then it listens all the same. */
async function giveRedisAMoment(broker: Broker, fleet: Fleet, skew: SkewWatch): Promise<void> {
  const deadline = performance.now() + CONNECT_WITHIN_MS
  while (performance.now() < deadline) {
    const answers = await Promise.all([broker.ping(), fleet.commands(1)]).then(
      () => true,
      () => false,
    )
    if (answers) break
    await sleep(20)
  }
  // Nothing is dated before it is known what time it is.
  await Promise.race([skew.measured, sleep(Math.max(0, deadline - performance.now()), undefined, { ref: false })])
}

async function listen(
  app: FastifyInstance,
  metrics: MetricsServer,
  { host, port, metricsHost, metricsPort }: ApiSettings,
  devKey: string | undefined,
): Promise<Addresses> {
  const metricsAt = await metrics
    .listen(metricsHost, metricsPort)
    .catch((cause) =>
      Promise.reject(cantListen('metrics', 'BULLPEN_API_METRICS_PORT', metricsHost, metricsPort, cause)),
    )
  await app
    .listen({ host, port })
    .catch((cause) => Promise.reject(cantListen('the API', 'BULLPEN_API_PORT', host, port, cause)))
  const address = app.server.address()
  const url = httpUrl(host, typeof address === 'object' && address !== null ? address.port : port)
  return {
    url,
    metricsUrl: `${httpUrl(metricsHost, metricsAt)}/metrics`,
    boardUrl: devKey === undefined ? `${url}/board/` : `${url}/board/login?key=${encodeURIComponent(devKey)}`,
  }
}

function cantListen(what: string, variable: string, host: string, port: number, cause: Error): BullpenError {
  const message = `${what} can't listen on ${host}:${port} (${variable}): ${cause.message}`
  return new BullpenError('invalid_configuration', message, { cause })
}

async function closeInOrder(
  closing: AbortController,
  app: FastifyInstance,
  metrics: MetricsServer,
  stores: readonly (Broker | Fleet | SkewWatch)[],
  log: Log,
): Promise<void> {
  // Not ready any more, and whoever waits is answered: otherwise the server would stay for their half minute.
  closing.abort()
  const cutOff = setTimeout(() => {
    log.warn({ afterMs: FINISH_WITHIN_MS }, 'connections whose requests did not end are cut off')
    app.server.closeAllConnections()
  }, FINISH_WITHIN_MS)
  await app.close()
  clearTimeout(cutOff)
  // After the requests: their last numbers can still be read. Before Redis: a scrape asks it.
  await metrics.close()
  for (const store of stores) await store.close()
}

/** Every process reports the whole fleet's queues, so that there are numbers as long as any API is up. */
function watchQueues(telemetry: Telemetry, broker: Broker, queues: readonly string[]): void {
  telemetry.onScrape(async () => {
    const up = await broker.ping().then(
      () => true,
      () => false,
    )
    telemetry.redisUp(up)
    if (!up) return
    await Promise.all(queues.map(async (queue) => telemetry.queueTasks(queue, await broker.counts(queue))))
  })
}

function httpUrl(host: string, port: number): string {
  // "All addresses" is no address that a browser can open.
  const name = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}`
}

function makeKey(): string {
  return randomBytes(24).toString('base64url')
}

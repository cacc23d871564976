// Opens the API's ports after giving Redis a moment to respond.
import { setTimeout as sleep } from 'node:timers/promises'
import type { BullmqBroker } from '@bullpen/bullmq'
import type { SkewMonitor } from '@bullpen/bullmq/internal'
import type { ApiSettings } from '@bullpen/config'
import { BullpenError, type ErrorCode } from '@bullpen/contract'
import type { Fleet } from '@bullpen/engine/internal'
import { settlesWithin } from '@bullpen/engine/node'
import type { FastifyInstance } from 'fastify'
import type { MetricsServer } from './http/metrics-server.ts'

export interface Addresses {
  readonly url: string
  readonly metricsUrl: string
  /** In development, this URL contains the key that logs the browser in, so do not log it. */
  readonly boardUrl: string
  /**
   * The development key, if the API has generated it. Undefined in production, or if the settings contain a development key. Show
   * the key to the developer, because it is stored nowhere, but do not log it.
   */
  readonly generatedKey: string | undefined
}

interface Ports {
  readonly app: FastifyInstance
  readonly metrics: MetricsServer
  readonly settings: ApiSettings
  readonly devKey: string | undefined
}

const CONNECT_WITHIN_MS = 1_000
const RETRY_MS = 20
const PING_EVERY_MS = 100
/** The errors that would not disappear if the API waited longer. */
const NEVER_COMPATIBLE: readonly ErrorCode[] = ['incompatible_schema', 'unsupported_redis', 'unsafe_redis']

/**
 * Waits until Redis responds, so that the first requests do not arrive while the connection is still being opened. If Redis is
 * down, resolves after 1 s.
 *
 * @throws BullpenError `incompatible_schema` if another version of Bullpen wrote the namespace, `unsupported_redis` if the server is
 * too old, and `unsafe_redis` if it may delete tasks.
 */
export async function waitForRedis(
  { broker, fleet, skew }: { readonly broker: BullmqBroker; readonly fleet: Fleet; readonly skew: SkewMonitor },
  closing: AbortSignal,
): Promise<void> {
  const deadline = performance.now() + CONNECT_WITHIN_MS
  while (performance.now() < deadline && !closing.aborted) {
    const connected = await Promise.all([broker.checkServer(), fleet.commands(1)]).then(
      () => true,
      (error: unknown) => {
        if (error instanceof BullpenError && NEVER_COMPATIBLE.includes(error.code)) throw error
        return false
      },
    )
    if (connected) break
    await sleep(RETRY_MS)
  }
  // The first tasks also need Redis's time.
  await settlesWithin(skew.measured, Math.max(0, deadline - performance.now()), closing)
}

/** Resolves to true when Redis has answered, or to false if `closing` aborts first. */
export async function redisAnswers(broker: Pick<BullmqBroker, 'ping'>, closing: AbortSignal): Promise<boolean> {
  while (!closing.aborted) {
    const answered = await broker.ping().then(
      () => true,
      () => false,
    )
    if (answered) return !closing.aborted
    await sleep(PING_EVERY_MS, undefined, { signal: closing }).catch(() => {})
  }
  return false
}

/** @throws BullpenError `invalid_configuration` if an address is already in use, and `shutting_down` if `closing` aborts first. */
export async function openPorts({ app, metrics, settings, devKey }: Ports, closing: AbortSignal): Promise<Addresses> {
  refuseIfClosed(closing)
  const { host, port, metricsHost, metricsPort } = settings
  const metricsAt = await metrics.listen(metricsHost, metricsPort).catch((cause) => {
    throw addressError('metricsPort', metricsHost, metricsPort, cause)
  })
  await app.listen({ host, port }).catch((cause) => {
    throw addressError('port', host, port, cause)
  })
  refuseIfClosed(closing)
  const address = app.server.address()
  const url = httpUrl(host, typeof address === 'object' && address !== null ? address.port : port)
  return {
    url,
    metricsUrl: `${httpUrl(metricsHost, metricsAt)}/metrics`,
    boardUrl: devKey === undefined ? `${url}/board/` : `${url}/board/login?key=${encodeURIComponent(devKey)}`,
    generatedKey: settings.devKey === undefined ? devKey : undefined,
  }
}

function refuseIfClosed(closing: AbortSignal): void {
  if (closing.aborted) throw new BullpenError('shutting_down', 'the API was closed before it started')
}

const PORT_VARIABLES = { port: 'BULLPEN_API_PORT', metricsPort: 'BULLPEN_API_METRICS_PORT' } as const

function addressError(
  setting: keyof typeof PORT_VARIABLES,
  host: string,
  port: number,
  cause: NodeJS.ErrnoException,
): BullpenError {
  const why = cause.code === 'EADDRINUSE' ? 'the port is already in use' : cause.message
  const message = `cannot listen on ${host}:${port}: ${why}; set config.${setting} or ${PORT_VARIABLES[setting]} to another port, or to 0 to pick any free port`
  return new BullpenError('invalid_configuration', message, { cause })
}

function httpUrl(host: string, port: number): string {
  // A browser cannot open the wildcard address.
  const name = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}`
}

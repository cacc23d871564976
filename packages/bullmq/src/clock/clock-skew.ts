// Measures how far this machine's clock is from Redis's clock, and provides the time on Redis's clock.
//
// Which clock to use:
//   - Redis's time (`SkewMonitor.now`, or TIME within a script) for every instant that is stored or compared with a stored one:
//     when a task is enqueued, due, started, ended or expires. All processes agree on this time.
//   - the engine's `Clock` for everything that an attempt or a pool measures. Its `now` is also Redis's time. Tests replace it.
//   - `performance.now()` for durations within one process: timeouts, leases, the age of a reading.
//   - `machineMs` (locks/machine-clock.ts) for durations that two threads of one process compare.
//   - `Date.now()` only where BullMQ itself uses it (store/backend.ts), and as the fallback until Redis responds.
import type { Log } from '@bullpen/contract'
import { ReplyError } from 'ioredis'
import { skewConnection } from '../connection.ts'
import { schemaKey } from '../keys.ts'
import { isConnectionError } from '../redis/outages/outage-reporter.ts'
import { isCluster } from '../redis/redis-client.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import { readTimeScript } from '../store/scripts.ts'
import { better, crossing, ESTIMATE_ENOUGH_MS, type Estimate } from './clock-estimate.ts'

const MEASURE_EVERY_MS = 10_000
/** The interval between measurements until the estimate's error is at most {@link ESTIMATE_ENOUGH_MS}, in ms. */
const MEASURE_SOON_MS = 1_000

export interface SkewMonitor {
  /**
   * Returns the time in whole milliseconds since 1970 by Redis's clock, or by the machine's clock until the first measurement.
   * The time is computed from the latest measurement and the monotonic clock, so setting the machine's clock does not affect it.
   * Does not query Redis.
   */
  now(): number
  /** Returns the same time, with fractions, for a given value of `performance.now()`. */
  at(monotonic: number): number
  /**
   * Returns how far the machine's clock is ahead of Redis's, in ms. The result is negative if the machine's clock is behind, and
   * undefined until the first measurement.
   */
  skewMs(): number | undefined
  /** Resolves after the first measurement, on close, or when Redis rejects the TIME command, which is logged. */
  readonly measured: Promise<void>
  close(): void
}

export interface SkewMonitorOptions {
  readonly redisUrl: string
  /** In a cluster, each node has its own clock, and the monitor uses the clock of the node that holds the namespace's own keys. */
  readonly namespace: string
  /** Receives one line when the skew exceeds half a second, and another line when the skew is small again. */
  readonly log: Log
  /** The interval between measurements, in ms. Defaults to 10,000. Tests set it. */
  readonly everyMs?: number
}

/**
 * Opens a monitor with its own connection. The monitor makes one round trip when it is connected and one every 10 s after that.
 * Its timer does not keep the process alive.
 */
export function openSkewMonitor(options: SkewMonitorOptions): SkewMonitor {
  const { redisUrl, namespace, log, everyMs = MEASURE_EVERY_MS } = options
  const redis = skewConnection(redisUrl)
  const { promise: measured, resolve } = Promise.withResolvers<void>()
  let known: Estimate | undefined
  let isFar = false
  let isRefused = false
  let timer: NodeJS.Timeout | undefined
  let isClosed = false

  const at = (moment: number): number => moment + (known?.offsetMs ?? Date.now() - performance.now())
  const now = (): number => Math.round(at(performance.now()))
  const skewMs = (): number | undefined => (known === undefined ? undefined : Date.now() - now())

  const measure = async (): Promise<void> => {
    const sentAt = performance.now()
    const theirs = await timeOf(redis, namespace)
    const errorMs = (performance.now() - sentAt) / 2
    known = better(known, { offsetMs: theirs - (sentAt + errorMs), errorMs, at: sentAt + errorMs })
    resolve()
    logCrossing(known.errorMs)
  }
  const logCrossing = (errorMs: number): void => {
    const skew = Math.round(skewMs() ?? 0)
    const crossed = crossing(isFar, skew, errorMs)
    if (crossed === undefined) return
    isFar = crossed === 'far'
    if (isFar)
      log.warn({ skewMs: skew }, "this machine's clock differs from Redis's clock; task times use Redis's clock")
    else log.info({ skewMs: skew }, "this machine's clock agrees with Redis's clock again")
  }
  const refused = (err: unknown): void => {
    if (!(err instanceof ReplyError) || isConnectionError(err) || isRefused) return
    isRefused = true
    log.warn({ err }, "Redis rejects the TIME command; task times use this machine's clock")
    resolve()
  }
  const measureAndRepeat = async (): Promise<void> => {
    clearTimeout(timer)
    await measure().catch(refused)
    const isEnough = known !== undefined && known.errorMs <= ESTIMATE_ENOUGH_MS
    clearTimeout(timer)
    // If the monitor was closed during the measurement, do not schedule another one.
    if (isClosed || redis.status === 'end') return
    timer = setTimeout(measureAndRepeat, isEnough ? everyMs : MEASURE_SOON_MS).unref()
  }
  // After a failover, the server may be a different one, with a different clock.
  redis.on('ready', () => void measureAndRepeat())

  return {
    now,
    at,
    skewMs,
    measured,
    close() {
      isClosed = true
      clearTimeout(timer)
      redis.disconnect()
      resolve()
    },
  }
}

/**
 * Returns the time in ms since 1970. In a cluster, a script with a key reads the time, because TIME has no key and a cluster
 * client would send it to any node.
 */
async function timeOf(redis: Commander, namespace: string): Promise<number> {
  if (isCluster(redis)) {
    const [seconds, micros] = await runScript(redis, readTimeScript, { anchor: schemaKey(namespace) }, {})
    return Number(seconds) * 1_000 + Number(micros) / 1_000
  }
  const [seconds, micros] = await redis.time()
  return Number(seconds) * 1_000 + Number(micros) / 1_000
}

// Clock skew: how far this machine's clock is from Redis', measured again and again, and the time by Redis' clock.
import type { Log } from '@bullpen/contract'
import { ReplyError } from 'ioredis'
import { skewConnection } from '../connection.ts'
import { crossing, ESTIMATE_ENOUGH_MS, type Estimate, surer } from './clock-estimate.ts'

const MEASURE_EVERY_MS = 10_000
/** While what is known is no better than {@link ESTIMATE_ENOUGH_MS}. */
const MEASURE_AGAIN_MS = 1_000

export interface SkewWatch {
  /**
   * Whole milliseconds since 1970 by Redis' clock; by the machine's until the first measurement. Counted on from the newest
   * measurement, so that setting the machine's clock changes nothing. No round trip.
   */
  now(): number
  /** The same, in fractions, of a moment of `performance.now()`. */
  at(monotonic: number): number
  /** By how much the machine's clock is ahead of Redis', in ms; negative: behind. Undefined: not measured yet. */
  skewMs(): number | undefined
  /** Resolves with the first measurement; also when Redis refuses to tell the time, which the log says, and on close. */
  readonly measured: Promise<void>
  close(): void
}

export interface SkewWatchOptions {
  readonly redisUrl: string
  /** Told when the skew grows past half a second, and when it is small again. */
  readonly log: Log
  /** Between two measurements, in ms. Default: 10,000. For tests. */
  readonly everyMs?: number
}

/** Opens a connection of its own. One round trip when it is there, and one each 10 s. Holds no process open. */
export function watchSkew({ redisUrl, log, everyMs = MEASURE_EVERY_MS }: SkewWatchOptions): SkewWatch {
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
    const [seconds, micros] = await redis.time()
    const errorMs = (performance.now() - sentAt) / 2
    const theirs = Number(seconds) * 1_000 + Number(micros) / 1_000
    known = surer(known, { offsetMs: theirs - (sentAt + errorMs), errorMs, at: sentAt + errorMs })
    resolve()
    tell(known.errorMs)
  }
  const tell = (errorMs: number): void => {
    const skew = Math.round(skewMs() ?? 0)
    const crossed = crossing(isFar, skew, errorMs)
    if (crossed === undefined) return
    isFar = crossed === 'far'
    if (isFar) log.warn({ skewMs: skew }, "this machine's clock is not Redis' own: tasks go by that of Redis")
    else log.info({ skewMs: skew }, "this machine's clock is near Redis' own again")
  }
  const refused = (err: unknown): void => {
    if (!(err instanceof ReplyError) || isRefused) return
    isRefused = true
    log.warn({ err }, "Redis does not tell the time: tasks go by this machine's clock")
    resolve()
  }
  const turn = async (): Promise<void> => {
    clearTimeout(timer)
    await measure().catch(refused)
    const isEnough = known !== undefined && known.errorMs <= ESTIMATE_ENOUGH_MS
    clearTimeout(timer)
    // A measurement that was under way when it closed ends here.
    if (isClosed || redis.status === 'end') return
    timer = setTimeout(turn, isEnough ? everyMs : MEASURE_AGAIN_MS).unref()
  }
  // It may be another server, of another time.
  redis.on('ready', () => void turn())

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

// Throttles a queue by using up BullMQ's own rate limit, so that no process starts one of its tasks until the throttle ends.
import type { Redis } from 'ioredis'
import type { QueueKeys } from '../keys.ts'
import { unthrottle } from '../scripts/queue/unthrottle.ts'
import { runScript } from '../scripts/script.ts'

/**
 * The value of BullMQ's rate-limit counter (`limiter`) while a queue is throttled. It is larger than any rate limit. As the
 * maximum of a rate (`meta.max`), it stands for "no rate".
 */
export const THROTTLE_MARK = `${Number.MAX_SAFE_INTEGER}`

/** Cleans up after a process that ended before its throttle did. Takes one round trip. */
export async function releaseThrottle(redis: Redis, keys: QueueKeys): Promise<void> {
  await runScript(redis, unthrottle, keys, { mark: THROTTLE_MARK })
}

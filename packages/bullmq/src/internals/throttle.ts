// Throttles a queue by using up BullMQ's own rate limit, so that no process starts any of the queue's tasks until the throttle
// ends.

/**
 * The value of BullMQ's rate-limit counter (`limiter`) while a queue is throttled. It is larger than any rate limit. As the
 * maximum of a rate (`meta.max`), it stands for "no rate".
 */
export const THROTTLE_MARK = `${Number.MAX_SAFE_INTEGER}`

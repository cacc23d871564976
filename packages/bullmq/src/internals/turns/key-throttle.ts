// Throttles a concurrency key for some time, because a handler has thrown `rateLimited` for it.
//
// The sorted set `key-throttles` has the throttled keys by the time at which they may start a task. It expires with the
// last throttle. A fetch that comes to the lane of a throttled key blocks it until that time, in the same way as a lane
// whose key has used up its rate (./key-rate.ts).

/** Lua: the name of the sorted set. The variable `base` is the prefix of the queue's keys. */
export const KEY_THROTTLES = `base .. 'key-throttles'`

/**
 * Lua lines that throttle the key `key` until the time `ends_at`, unless it is already throttled for longer. They need
 * the local variables `call`, `base` and `now`. Times are in ms since 1970.
 */
export const THROTTLE_KEY = `
call('ZREMRANGEBYSCORE', ${KEY_THROTTLES}, '-inf', now)
call('ZADD', ${KEY_THROTTLES}, 'GT', ends_at, key)
call('PEXPIREAT', ${KEY_THROTTLES}, call('ZRANGE', ${KEY_THROTTLES}, -1, -1, 'WITHSCORES')[2])`

/**
 * Lua lines that set `starts_at` to the end of the throttle of the key `key`, if that is later. They need the variable
 * `has_throttles`.
 */
export const CHECK_THROTTLE = `local ends_at = has_throttles and tonumber(call('ZSCORE', ${KEY_THROTTLES}, key) or nil)
      if ends_at then
        local time = call('TIME')
        if ends_at > math.max(time[1] * 1000 + time[2] / 1000, starts_at or 0) then starts_at = ends_at end
      end`

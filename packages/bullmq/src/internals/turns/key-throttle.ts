// Throttles a concurrency key for some time, because a handler has thrown `rateLimited` for it.
//
// The sorted set `key-throttles` has the throttled keys by the time at which they may start a task. It expires with the last throttle. A fetch that
// comes to the lane of a throttled key blocks it until that time, in the same way as a lane whose key has used up its rate (./key-rate.ts).
import { KEY_PASSES } from './limiters/limiter-steps.ts'

/** Lua: the name of the sorted set. The variable `base` is the prefix of the queue's keys. */
const KEY_THROTTLES = `base .. 'key-throttles'`

/**
 * Lua lines that throttle the key `key` until the time `ends_at`, unless it is already throttled for longer. They need the local variables
 * `call`, `base` and `now`. Times are in ms since 1970.
 */
export const THROTTLE_KEY = `
call('ZREMRANGEBYSCORE', ${KEY_THROTTLES}, '-inf', now)
call('ZADD', ${KEY_THROTTLES}, 'GT', ends_at, key)
call('PEXPIREAT', ${KEY_THROTTLES}, call('ZRANGE', ${KEY_THROTTLES}, -1, -1, 'WITHSCORES')[2])`

/**
 * Lua lines that find out which features the queue uses, and store them in the variable `features`, which must be declared: 1 if lanes take turns,
 * plus 2 if keys have limits, plus 4 if limiters have capacities. EXISTS counts a key as often as it is given, so one command answers all three
 * questions.
 */
export const READ_FEATURES = `local state, key_limits, capacities = base .. 'turn-state', base .. 'key-limits', base .. 'capacities'
    features = call('EXISTS', state, key_limits, key_limits, capacities, capacities, capacities, capacities)`

/**
 * Lua lines that find what may keep lanes from starting tasks, and store it in local variables: `has_limits` and `has_throttles` of keys,
 * `has_times` if a lane may be blocked until some time, `has_capacities` of limiters, and `has_key_passes` if a key may have several lanes.
 * `has_others` says whether tasks without a lane wait. The lines follow {@link READ_FEATURES}. If the queue has none of
 * these, they run one EXISTS.
 */
export const READ_OBSTACLES = `local wait, prioritized, has_limits, has_capacities = base .. 'wait', base .. 'prioritized', features % 4 >= 2, features >= 4
    local present = call('EXISTS', ${KEY_THROTTLES}, base .. 'lane-times', ${KEY_PASSES}, wait, wait, wait, wait,
      prioritized, prioritized, prioritized, prioritized)
    local has_others, has_rare = present >= 4, present % 4 > 0
    local has_times = has_rare and call('EXISTS', ${KEY_THROTTLES}, base .. 'lane-times') > 0
    local has_throttles = has_times and call('EXISTS', ${KEY_THROTTLES}) == 1
    local has_key_passes = has_rare and call('EXISTS', ${KEY_PASSES}) == 1`

/** Lua lines that set `starts_at` to the end of the throttle of the key `key`, if that is later. They need the variable `has_throttles`. */
export const CHECK_THROTTLE = `local ends_at = has_throttles and tonumber(call('ZSCORE', ${KEY_THROTTLES}, key) or nil)
      if ends_at then
        local time = call('TIME')
        if ends_at > math.max(time[1] * 1000 + time[2] / 1000, starts_at or 0) then starts_at = ends_at end
      end`

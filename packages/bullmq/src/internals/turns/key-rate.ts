// Limits how many tasks of a concurrency key start per period, over all workers of a queue.
//
// The rate is that of GCRA, the generic cell rate algorithm (ITU-T I.371), a leaky bucket without a queue. A key with
// the rate of `max` tasks per period starts one task per interval of period / max on average. The string
// `key-rate:<key>` has the time at which the next start would be due if the starts were spread evenly. A start adds an
// interval to that time, or to the current one if that is later. With a burst of b, a task may start up to b - 1
// intervals before it is due. The string expires when the time has passed, so an idle key has none. Times are those of
// Redis's clock.
//
// A lane whose key may not start yet is blocked (./key-concurrency.ts), and is in the sorted set `lane-times` by the
// time at which it may. The script that starts the last task that is allowed puts it there. The first fetch after that
// time lets the lane take turns again. A worker that has nothing to do waits until then: where BullMQ's scripts look
// for the next delayed job, they also look for the next lane (withLaneTimes).
//
// A start is never given back. A task that is requeued has used its share, so a key starts no more than its rate
// allows, whatever ends its attempts.
import { resume } from './key-concurrency.ts'
import { CHECK_THROTTLE } from './key-throttle.ts'

/**
 * Lua lines that let the lanes whose time has come take turns again, at most `most` of them, and those of the services
 * whose time has come. `now` is a Lua expression, in ms.
 */
export const resumeDue = (now: string, most: number): string => `
    for _, name in ipairs(call('ZRANGEBYSCORE', base .. 'lane-times', '-inf', ${now}, 'LIMIT', '0', '${most}')) do
      call('ZREM', base .. 'lane-times', name)
      local pass = call('ZSCORE', base .. 'blocked-lanes', name)
      if pass then
      ${resume()}
      end
      if string.find(name, '^\\30service:') then gates().resume(name, ${most}) end
    end`

/**
 * Lua lines that set the local variable `starts_at` to the time at which the key `key` may start its next task, or to
 * nil if it may start one now. They need the variables `rate` and `has_throttles` (./key-throttle.ts). If the stored
 * time is further ahead than this rate allows, it belongs to an earlier rate, and the key may start a task now.
 */
export const CHECK_RATE = `local now, interval, early, due, starts_at
      if rate then
        local max, per, burst = string.match(rate, '^(%d+)/(%d+)/(%d+)$')
        local time = call('TIME')
        now, interval = time[1] * 1000 + time[2] / 1000, per / max
        early = interval * (burst - 1)
        due = tonumber(call('GET', base .. 'key-rate:' .. key)) or now
        if due > now + early + interval + 1 then due = now + early end
        if due - early > now then starts_at = math.ceil(due - early) end
      end
      ${CHECK_THROTTLE}`

/**
 * Lua lines that count a start, after {@link CHECK_RATE}, and set `starts_at` again. An interval may be too short to
 * change a time in ms since 1970, and Redis refuses an expiry of 0.
 */
export const COUNT_START_OF_RATE = `if rate then
            due = math.max(due, now) + interval
            call('SET', base .. 'key-rate:' .. key, string.format('%.3f', due), 'PX', math.max(1, math.ceil(due - now)))
            if due - early > now then starts_at = math.ceil(due - early) end
          end`

/** Lua line that stores when the blocked lane `name` takes turns again. */
export const STORE_TIME = `if starts_at then call('ZADD', base .. 'lane-times', starts_at, name) end`

/** How BullMQ reads the first delayed job. */
const FIRST_DELAYED = 'local result = rcall("ZRANGE", delayedKey, 0, 0, "WITHSCORES")'

/**
 * Returns the text of a script, so that a lane that may start before the next delayed job is due determines how long a
 * worker waits.
 */
export function withLaneTimes(text: string): string {
  return text.replaceAll(
    FIRST_DELAYED,
    `${FIRST_DELAYED}
  local times = delayedKey == base .. 'delayed' and call('ZRANGE', base .. 'lane-times', '0', '0', 'WITHSCORES')
  local first = times and tonumber(times[2])
  if first and first * 0x1000 < tonumber(result[2] or math.huge) then return first end`,
  )
}

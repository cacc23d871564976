-- Limits how many tasks of a concurrency key are active at the same time, and how many of them start per period, across all workers of a
-- queue.
--
-- The hash `key-limits` has the limits: `concurrency` and `rate` apply to every key, and `concurrency:<key>` and `rate:<key>` to one key
-- instead. A queue without limits does not have the hash. A lane whose key may not start a task is blocked (blocked-lanes.lua).
--
-- **Concurrency.** The sorted set `active-by-key` counts the active tasks of each key. The list `active` is the truth, and the counts are a
-- cache of it: if the queue has limits, they agree after each script. The script that makes a task active counts it, and the script that
-- removes a task from `active` gives its place back, before it fetches, so that it can start the next task of the same key
-- (held-places.lua). A script that sets the first limit of a queue counts the active tasks (active-count.lua), so the limit also applies
-- to tasks that are already running. A lowered limit does not stop a running task. Changes that another tool or a Worker with BullMQ's own
-- backend makes to active tasks are not counted. The leader therefore counts again from time to time, and reports what it has corrected.
--
-- **Rate.** The rate is limited by GCRA, the generic cell rate algorithm (ITU-T I.371), a leaky bucket without a queue. A key with the rate
-- of `max` tasks per period starts one task per interval of period / max on average. The string `key-rate:<key>` has the time at which the
-- next start would be due if the starts were spread evenly. A start adds an interval to that time, or to the current time if that is later.
-- With a burst of b, a task may start up to b - 1 intervals before it is due. The string expires when its time has passed, so an idle key
-- has none. A start is never given back: a task that is requeued has used its share, so a key starts no more than its rate allows, however
-- its attempts end. packages/engine/src/admission/start-rate.ts computes this in the same way.
--
-- **Throttles.** A handler that throws `rateLimited` may throttle a key for some time (internals/turns/throttle-key.lua). The sorted set
-- `key-throttles` has these keys by the time at which they may start a task. It expires with the last throttle.
--
-- A lane that is blocked because of a rate or a throttle is in `lane-times`, by the time at which it may start a task. The first fetch
-- after that time lets the lane take turns again, and a worker that has nothing to do waits until then. Times are in ms since 1970.
--
-- limits_of_key(key)                       how many active tasks the key may have and its rate, each nil or false if there is no such
--                                          limit; and the same two limits as they are stored for this key alone
-- active_of_key(key)                       how many tasks of the key are active
-- count_key(key, by)                       adds 1 or -1 to the active tasks of the key, and returns how many there are
-- open_rate(key, stored)                   decodes a stored rate into what the other functions call `rate`
-- key_starts_at(key, rate, has_throttles)  when the key may start its next task, or nil if it may start one now. `rate` may be nil
-- count_key_start(rate)                    counts a start
--
-- `base` is the prefix of the queue's keys.
--- @include time

local function limits_of_key(key)
  local own, default, own_rate, default_rate =
    unpack(redis.call('HMGET', base .. 'key-limits', 'concurrency:' .. key, 'concurrency', 'rate:' .. key, 'rate'))
  return tonumber(own or default), own_rate or default_rate, own, own_rate
end

local function active_of_key(key)
  return tonumber(redis.call('ZSCORE', base .. 'active-by-key', key)) or 0
end

local function count_key(key, by)
  local count = tonumber(redis.call('ZINCRBY', base .. 'active-by-key', by, key))
  if count == 0 then
    redis.call('ZREM', base .. 'active-by-key', key)
  end
  return count
end

-- If the stored time is further ahead than this rate allows, it belongs to an earlier rate, and the key may start a task now.
local function open_rate(key, stored)
  local max, per, burst = string.match(stored, '^(%d+)/(%d+)/(%d+)$')
  local now, interval = micros() / 1000, per / max
  local early = interval * (burst - 1)
  local due = tonumber(redis.call('GET', base .. 'key-rate:' .. key)) or now
  if due > now + early + interval + 1 then
    due = now + early
  end
  return { key = key, now = now, interval = interval, early = early, due = due }
end

local function key_starts_at(key, rate, has_throttles)
  local starts_at = rate and rate.due - rate.early > rate.now and math.ceil(rate.due - rate.early) or nil
  local ends_at = has_throttles and tonumber(redis.call('ZSCORE', base .. 'key-throttles', key))
  return ends_at and ends_at > math.max(micros() / 1000, starts_at or 0) and ends_at or starts_at
end

-- An interval may be too short to change a time in ms since 1970, and Redis refuses an expiry of 0.
local function count_key_start(rate)
  rate.due = math.max(rate.due, rate.now) + rate.interval
  local life = math.max(1, math.ceil(rate.due - rate.now))
  redis.call('SET', base .. 'key-rate:' .. rate.key, string.format('%.3f', rate.due), 'PX', life)
end

-- BullMQ's metrics: how many jobs have been completed and have failed in each minute, which a team's own Queue reads.
--
-- has_metrics(base)                   returns whether any Worker collects metrics in the queue
-- count_ended(base, set, at, most)    counts a job that has ended at `at`, in ms since 1970. `set` is `completed` or `failed`, and `most`
--                                     says how many minutes are listed
--
-- The hash `metrics:<set>` has the number of all of them (`count`), that of the last minute that is listed (`prevCount`), and the time of
-- the last end (`prevTS`). The list `metrics:<set>:data` begins with the newest minute. How many minutes a Worker lists is not stored, so
-- MAX_MINUTES is BullMQ's highest limit, and a Worker with a lower one removes the rest.
--- @include time

local MAX_MINUTES = 80640
-- Lua passes fewer than 8,000 values to a function.
local PUSHED_AT_ONCE = 7000

local function has_metrics(base)
  return redis.call('EXISTS', base .. 'metrics:failed', base .. 'metrics:completed') > 0
end

local function list_minutes(list, first, minutes, most)
  local points = { first }
  for i = 2, minutes do
    points[i] = 0
  end
  for from = 1, minutes, PUSHED_AT_ONCE do
    redis.call('LPUSH', list, unpack(points, from, math.min(from + PUSHED_AT_ONCE - 1, minutes)))
  end
  redis.call('LTRIM', list, 0, most - 1)
end

local function count_ended(base, set, at, most)
  local metrics = base .. 'metrics:' .. set
  local before = redis.call('HINCRBY', metrics, 'count', 1) - 1
  local last_end, listed = unpack(redis.call('HMGET', metrics, 'prevTS', 'prevCount'))
  if not last_end then
    redis.call('HSET', metrics, 'prevTS', at, 'prevCount', 0)
    return
  end
  local minutes = math.min(math.floor(at / 60000) - math.floor(last_end / 60000), most)
  if minutes > 0 then
    list_minutes(metrics .. ':data', before - (listed or 0), minutes, most)
    redis.call('HSET', metrics, 'prevCount', before, 'prevTS', at)
  end
end

-- BullMQ's metrics: how many jobs have failed in each minute. A team's own Queue reads them.
--
-- has_metrics(base)       returns whether any Worker collects metrics in the queue
-- count_failed(base, at)  counts a job that failed at `at`, in ms since 1970
--
-- The hash `metrics:failed` has the number of all failed jobs (`count`), what that number was when a minute was last listed (`prevCount`),
-- and when that was (`prevTS`). The list `metrics:failed:data` begins with the newest minute. How many minutes a Worker keeps is not
-- stored, so this include keeps as many as BullMQ's highest limit, and a Worker with a lower limit removes the rest.
--- @include time

local MAX_MINUTES = 80640
-- Lua passes fewer than 8,000 values to a function.
local PUSHED_AT_ONCE = 7000

local function has_metrics(base)
  return redis.call('EXISTS', base .. 'metrics:failed', base .. 'metrics:completed') > 0
end

local function list_minutes(list, first, minutes)
  local points = { first }
  for i = 2, minutes do
    points[i] = 0
  end
  for from = 1, minutes, PUSHED_AT_ONCE do
    redis.call('LPUSH', list, unpack(points, from, math.min(from + PUSHED_AT_ONCE - 1, minutes)))
  end
  redis.call('LTRIM', list, 0, MAX_MINUTES - 1)
end

local function count_failed(base, at)
  local metrics = base .. 'metrics:failed'
  local before = redis.call('HINCRBY', metrics, 'count', 1) - 1
  local last_end, listed = unpack(redis.call('HMGET', metrics, 'prevTS', 'prevCount'))
  if not last_end then
    redis.call('HSET', metrics, 'prevTS', at, 'prevCount', 0)
    return
  end
  local minutes = math.min(math.floor(at / 60000) - math.floor(last_end / 60000), MAX_MINUTES)
  if minutes > 0 then
    list_minutes(metrics .. ':data', before - (listed or 0), minutes)
    redis.call('HSET', metrics, 'prevCount', before, 'prevTS', at)
  end
end

-- BullMQ's rate limit of a queue, or of a Worker's own option: at most `max` tasks start in `per_ms` ms. The string `limiter` counts the
-- starts, and expires with that time. `base` is the prefix of the queue's keys.
--
-- limited_ms(max)           for how many ms no task may start, or 0
-- count_start(job, per_ms)  counts the start of this job, unless it starts only in order to fail (BullMQ's field `defa`)

local function limited_ms(max)
  local limiter = base .. 'limiter'
  if max > tonumber(redis.call('GET', limiter) or '0') then
    return 0
  end
  local left = redis.call('PTTL', limiter)
  if left == 0 then
    redis.call('DEL', limiter)
  end
  return math.max(left, 0)
end

local function count_start(job, per_ms)
  local limiter = base .. 'limiter'
  if redis.call('HEXISTS', job, 'defa') == 0 and redis.call('INCR', limiter) == 1 then
    redis.call('PEXPIRE', limiter, math.floor(math.abs(per_ms)))
  end
end

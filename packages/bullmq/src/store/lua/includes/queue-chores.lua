-- What the leader tidies up in a queue at each survey (leader/survey-queue.lua).
--
-- reopen_queue(…)            returns whether the queue is paused, and its concurrency. An outbox opens the queue when its entries are
--                            deleted; this opens it if the outbox was deleted as a whole, by somebody else. Also removes the placeholder
--                            rate of a throttle that has ended, in case the process that started the throttle has ended too
-- drop_events(stream, time)  drops the events before a time, in whole blocks of the stream. If no whole block is old, drops the old events
--                            of the oldest block
-- has_until(set, limit)      returns whether a sorted set has a member up to this score
--- @include time

local function has_until(set, limit)
  return #redis.call('ZRANGEBYSCORE', set, '-inf', limit, 'LIMIT', 0, 1) > 0
end

local function reopen_queue(meta, totals, outbox, limiter, throttle_mark, outbox_mark)
  local paused, concurrency, max = unpack(redis.call('HMGET', meta, 'paused', 'concurrency', 'max'))
  if paused == outbox_mark and redis.call('EXISTS', outbox) == 0 then
    redis.call('HDEL', meta, 'paused')
    redis.call('HDEL', totals, 'outboxBytes')
    paused = false
  end
  if max == throttle_mark and redis.call('GET', limiter) ~= throttle_mark then
    redis.call('HDEL', meta, 'max', 'duration')
  end
  return paused, concurrency
end

local function drop_events(stream, time)
  if redis.call('XTRIM', stream, 'MINID', '~', time) == 0 then
    redis.call('XTRIM', stream, 'MINID', time)
  end
end

-- refusal()         returns why the schedule must not be written, 'written' if an earlier run of the same script has written it, or nil
-- write_schedule()  writes it
--
-- They use the keys `schedules` and `scheduleTimes`, and these arguments of the script:
--
-- name       the schedule
-- expected   the token of the schedule that was read, '' if there was none
-- token      the one after the write
-- record     the schedule as JSON, '' to delete it
-- wakeAt     when the leader has to look at it again, or ''
-- notBefore  the time before which it must not be written, or ''; both in ms since 1970
--- @include time

local function refusal()
  local stored = redis.call('HGET', schedules, name)
  local found = stored and string.match(stored, '^(%S*) ') or ''
  if found == token or (record == '' and not stored) then
    return 'written'
  end
  if found ~= expected then
    return 'conflict'
  end
  if notBefore ~= '' and millis() < tonumber(notBefore) then
    return 'early'
  end
end
local function write_schedule()
  if record == '' then
    redis.call('HDEL', schedules, name)
    redis.call('ZREM', scheduleTimes, name)
    return
  end
  redis.call('HSET', schedules, name, token .. ' ' .. record)
  if wakeAt == '' then
    redis.call('ZREM', scheduleTimes, name)
  else
    redis.call('ZADD', scheduleTimes, wakeAt, name)
  end
end

#!lua flags=allow-oom
-- Adds what running attempts have reported to the stream of their queue's events. If an attempt has lost its lock, its events are dropped.
-- A call that is sent again changes nothing. Runs even if Redis is full: the stream has a bound, and its oldest events make room.
--
-- KEYS  eventBatch
-- ARGV  base
-- ARGV  number   the number of this call
-- ARGV  tasks    a JSON array with an array for each task: its id, the token of its lock, and its events, whose first line is how many
--                events the stream keeps, or ''
-- ARGV  maxLogs  how many log lines of a task become events at most, over all of its attempts
--- @include lock
-- How long the number is remembered. A reply that was lost is noticed much sooner.
local REMEMBERED_MS = 60000

if redis.call('GET', eventBatch) == number then
  return
end
redis.call('SET', eventBatch, number, 'PX', REMEMBERED_MS)

-- A task that was removed must not be created again to count its log lines.
local function is_kept(line, job)
  return string.sub(line, 1, 13) ~= '{"type":"log"'
    or redis.call('EXISTS', job) == 0
    or redis.call('HINCRBY', job, 'logLines', 1) <= tonumber(maxLogs)
end

for _, task in ipairs(cjson.decode(tasks)) do
  local id, token, events = unpack(task)
  if owns_lock(base .. id, token) then
    local count
    for line in string.gmatch(events, '[^\n]+') do
      if not count then
        count = line
      elseif is_kept(line, base .. id) then
        redis.call('XADD', base .. 'task-events', 'MAXLEN', '~', count, '*', 'id', id, 'event', line)
      end
    end
  end
end

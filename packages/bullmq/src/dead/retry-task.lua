#!lua flags=allow-oom
-- Retries one dead task, or notes that a new task was enqueued in another queue in its place. A second call with the same request changes
-- nothing, and returns `done` again, unless ten other requests have retried the task in the meantime.
--
-- KEYS  job, dead
-- ARGV  base, id, request
-- ARGV  by                 who retries the task
-- ARGV  data               the string to store in place of the task's data; '' to keep it
-- ARGV  copy               the task that was enqueued in another queue; '' to retry the task itself
-- ARGV  afterCompensation  '1' to retry the task although its compensations were released
--
-- Returns `DeadTaskAnswer`: what the script did.
--- @type DeadTaskAnswer from @bullpen/engine/internal
--- @include decode-json
--- @include retry-dead

local name, stored, compensated = unpack(redis.call('HMGET', job, 'name', 'retries', 'compensated'))
if not name then
  return 'not_found'
end
local retries = stored and decode_json(stored) or {}
for _, each in ipairs(retries) do
  if each.request == request then
    return 'done'
  end
end
if not redis.call('ZSCORE', dead, id) then
  return 'not_dead'
end
if compensated and afterCompensation ~= '1' then
  return 'compensated'
end
local entry = { at = millis(), by = by, request = request }
if copy ~= '' then
  entry.copy = copy
  add_retry(retries, entry)
  redis.call('HSET', job, 'retries', cjson.encode(retries))
  return 'done'
end
if not retry_dead(id, retries, entry, data) then
  return 'not_dead'
end
return 'done'

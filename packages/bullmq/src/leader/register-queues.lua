#!lua flags=allow-oom
-- Adds queues to a namespace's registry. Runs even if Redis is full, because a worker that starts will end tasks.
--
-- KEYS  schema, registry
-- ARGV  schemaVersion  the caller's schema version
-- ARGV  replaces       '1' to replace stored retentions, '' to store only missing ones
-- ARGV[3...]  for each queue, its name and its retention as JSON ('' if the caller does not consume the queue)
--
-- Returns `0 | 1`: whether the namespace has the caller's schema version. If not, nothing is written, because the namespace has to be
-- checked again.
if redis.call('GET', schema) ~= schemaVersion then
  return 0
end
for i = 3, #ARGV, 2 do
  local queue, retention = ARGV[i], ARGV[i + 1]
  local stored = redis.call('HGET', registry, queue)
  if not stored or retention ~= '' and (replaces == '1' or stored == '') then
    redis.call('HSET', registry, queue, retention)
  end
end
return 1

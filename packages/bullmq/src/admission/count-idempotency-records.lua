#!lua flags=allow-oom
-- Counts the records of a queue's idempotency keys: adds records to the counts, and deletes the counts of expired records. The hash
-- expires together with the last record, so that it does not outlive the queue's producers.
--
-- KEYS  counts  the number of records by the time (s since 1970) by which all of them have expired
-- ARGV[1...]  for records that are not counted yet: the time by which all of them have expired, and their number, in turns
--
-- Returns `number`: how many records have not expired.
local now = tonumber(redis.call('TIME')[1])
for i = 1, #ARGV, 2 do
  redis.call('HINCRBY', counts, ARGV[i], ARGV[i + 1])
end
local fields, records, last = redis.call('HGETALL', counts), 0, 0
for i = 1, #fields, 2 do
  local expires_at = tonumber(fields[i])
  if expires_at <= now then
    redis.call('HDEL', counts, fields[i])
  else
    records = records + fields[i + 1]
    last = math.max(last, expires_at)
  end
end
if last > 0 then
  redis.call('EXPIREAT', counts, last)
end
return records

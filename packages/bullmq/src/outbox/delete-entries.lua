#!lua flags=allow-oom
-- Deletes delivered entries of an outbox, and opens the queue that a full outbox has closed. An entry that is deleted already is skipped,
-- so a script that is sent again does no harm. The empty outbox itself is deleted. The queue is opened when the outbox is at most half
-- full, so that it is not closed again at the next end.
--
-- KEYS  outbox, totals, meta, marker, wait, prioritized, lanes, delayed
-- ARGV  mark        what `meta` has in `paused` while a full outbox closes the queue
-- ARGV  maxEntries  how many entries an open queue has at most
-- ARGV  maxBytes    their most bytes
-- ARGV  scoreStep   the step of the scores in `delayed`
-- ARGV[5...]  the ids of the entries, at most 200
local bytes = 0
for i = 5, #ARGV do
  local entry = redis.call('XRANGE', outbox, ARGV[i], ARGV[i])[1]
  if entry then
    bytes = bytes + #entry[2][2]
    redis.call('XACK', outbox, 'forwarders', ARGV[i])
    redis.call('XDEL', outbox, ARGV[i])
  end
end
local left, left_bytes = redis.call('XLEN', outbox), 0
if left == 0 then
  redis.call('DEL', outbox)
  redis.call('HDEL', totals, 'outboxBytes')
else
  left_bytes = redis.call('HINCRBY', totals, 'outboxBytes', -bytes)
end
if left > maxEntries / 2 or left_bytes > maxBytes / 2 or redis.call('HGET', meta, 'paused') ~= mark then
  return
end
redis.call('HDEL', meta, 'paused')
if redis.call('LLEN', wait) + redis.call('EXISTS', prioritized, lanes) > 0 then
  redis.call('ZADD', marker, 0, '0')
else
  local due = redis.call('ZRANGE', delayed, 0, 0, 'WITHSCORES')
  if due[2] then
    redis.call('ZADD', marker, tonumber(due[2]) / tonumber(scoreStep), '1')
  end
end

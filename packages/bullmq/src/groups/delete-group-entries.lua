#!lua flags=allow-oom
-- Deletes delivered entries of a group's outbox, and the empty outbox itself. An entry that was deleted before is skipped, so a script
-- that is sent again does no harm.
--
-- KEYS  meta, outbox
-- ARGV[1...]  the ids of the entries
for _, entry in ipairs(ARGV) do
  local stored = redis.call('XRANGE', outbox, entry, entry)[1]
  redis.call('XACK', outbox, 'forwarders', entry)
  if stored and redis.call('XDEL', outbox, entry) == 1 and redis.call('EXISTS', meta) == 1 then
    local text = stored[2][2]
    redis.call('HINCRBY', meta, 'outboxBytes', -#text)
    -- Members (m) are not owed.
    if string.sub(text, 1, 1) ~= 'm' then
      redis.call('HINCRBY', meta, 'owed', -1)
    end
  end
end
if redis.call('XLEN', outbox) == 0 then
  redis.call('DEL', outbox)
end

#!lua flags=allow-oom
-- Deletes delivered entries of a pipeline run's outbox, and the empty outbox itself. An entry that was deleted before is skipped, so a
-- script that is sent again does no harm.
--
-- KEYS  outbox
-- ARGV[1...]  the ids of the entries
for _, entry in ipairs(ARGV) do
  redis.call('XACK', outbox, 'forwarders', entry)
  redis.call('XDEL', outbox, entry)
end
if redis.call('XLEN', outbox) == 0 then
  redis.call('DEL', outbox)
end

#!lua flags=allow-oom
-- Announces a command, after its queue settings, if it has any, have been applied. Workers read the settings again when the revision
-- has changed.
--
-- KEYS  unapplied, settingsRevision
-- ARGV  id          the command
-- ARGV  hasChanged  '1' if it has changed the settings of a queue
-- ARGV  channel     where it is announced
-- ARGV  message
if hasChanged == '1' then
  redis.call('ZREM', unapplied, id)
  redis.call('INCR', settingsRevision)
end
redis.call('PUBLISH', channel, message)

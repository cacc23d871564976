#!lua flags=allow-oom
-- Announces a command, after its queue settings, if it has any, have been applied. Workers read the settings again when the revision
-- has changed.
--
-- KEYS[1]  unapplied         the commands whose queue settings may not have been applied
-- KEYS[2]  settingsRevision  changes whenever the settings of a queue change
-- ARGV[1]  id                the command
-- ARGV[2]  hasChanged        '1' if it has changed the settings of a queue
-- ARGV[3]  channel           where it is announced
-- ARGV[4]  message
local unapplied, settingsRevision = KEYS[1], KEYS[2]
local id, hasChanged, channel, message = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

if hasChanged == '1' then
  redis.call('ZREM', unapplied, id)
  redis.call('INCR', settingsRevision)
end
redis.call('PUBLISH', channel, message)

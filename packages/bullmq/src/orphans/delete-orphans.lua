#!lua flags=allow-oom
-- Deletes the keys and entries that have no owner.
--
-- KEYS  first  the key of the first subject
-- ARGV[1...]  the subjects, as `encodeSubject` encodes them
--
-- Returns `SubjectState[]`: the state of each subject before the script, which has deleted those whose state is `no_owner`.
--- @type SubjectState from ./subject.ts
--- @include subject-state

return states_of(function(key, kind, entry, with)
  if not entry then
    redis.call('DEL', key, unpack(with))
  elseif kind == 'hash' then
    redis.call('HDEL', key, entry)
  elseif kind == 'zset' then
    redis.call('ZREM', key, entry)
  elseif kind == 'set' then
    redis.call('SREM', key, entry)
  else
    redis.call('LREM', key, 0, entry)
  end
end)

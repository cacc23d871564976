#!lua flags=allow-oom
-- Adds dead tasks to the index of fingerprints. A task that is not dead any more, or that another process has added, is skipped.
--
-- KEYS[1]  dead  the dead tasks
-- ARGV[1]  base  the prefix of the queue's keys
-- ARGV...        for each task, its id and its kind of error, as `encodeKind` encodes it (stored-kind.ts)
local dead = KEYS[1]
local base = ARGV[1]
--- @include fingerprints

for i = 2, #ARGV, 2 do
  local id = ARGV[i]
  local score = redis.call('ZSCORE', dead, id)
  local name, fingerprint = unpack(redis.call('HMGET', base .. id, 'name', 'fingerprint'))
  if score and name and not fingerprint then
    enter_fingerprint(base, id, score, ARGV[i + 1])
  end
end

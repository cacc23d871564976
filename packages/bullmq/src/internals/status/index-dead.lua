#!lua flags=allow-oom
-- Adds dead tasks to the index of fingerprints. A task that is not dead any more, or that another process has added, is skipped.
--
-- KEYS  dead
-- ARGV  base
-- ARGV[2...]  for each task, its id and its kind of error, as `encodeKind` encodes it (stored-kind.ts)
--- @include fingerprints

for i = 2, #ARGV, 2 do
  local id = ARGV[i]
  local score = redis.call('ZSCORE', dead, id)
  local name, fingerprint = unpack(redis.call('HMGET', base .. id, 'name', 'fingerprint'))
  if score and name and not fingerprint then
    enter_fingerprint(base, id, score, ARGV[i + 1])
  end
end

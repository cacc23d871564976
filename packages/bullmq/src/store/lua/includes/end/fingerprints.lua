-- The index of dead tasks by fingerprint, which identifies the kind of the error (engine, dead-tasks/fingerprint.ts).
--
-- enter_fingerprint(home, id, score, given)  adds a dead task to the index. `home` is the prefix of the queue's keys, and `given` is the
--                                            result of `encodeKind` (internals/status/stored-kind.ts)
-- leave_fingerprint(home, id, stored)        removes a task from the index. `stored` is the task's field `fingerprint`, if it has one
--
-- The script that ends a task as dead also adds the task to the sorted set of its fingerprint, and stores the fingerprint, the state and
-- the code in the task's field `fingerprint`. A task that leaves the failed set also leaves that sorted set (failed-set.lua), so counting
-- by fingerprint only reads the sizes of the sets. A completed task has no fingerprint.
--
-- A fingerprint is forgotten when its last task has left. A queue keeps a limited number of fingerprints apart, the engine's
-- MAX_FINGERPRINTS. Tasks with any other kind of error then share the fingerprint `other`, but keep their own state and code.
local MAX_FINGERPRINTS = 1000
local OTHER = '{"state":"","code":"other","message":"errors after the first 1000 kinds"}'

local function enter_fingerprint(home, id, score, given)
  local fingerprint, rest, info = string.match(given, '^(%S+)([^\n]*)\n(.*)$')
  local infos = home .. 'fingerprints'
  if redis.call('HEXISTS', infos, fingerprint) == 0 then
    if redis.call('HLEN', infos) >= MAX_FINGERPRINTS then
      fingerprint = 'other'
      redis.call('HSETNX', infos, fingerprint, OTHER)
    else
      redis.call('HSET', infos, fingerprint, info)
      redis.call('RPUSH', home .. 'new-fingerprints', fingerprint)
      redis.call('LTRIM', home .. 'new-fingerprints', -MAX_FINGERPRINTS, -1)
    end
  end
  redis.call('HSET', home .. id, 'fingerprint', fingerprint .. rest)
  redis.call('ZADD', home .. 'fingerprint:' .. fingerprint, score, id)
end

local function leave_fingerprint(home, id, stored)
  if not stored then
    return
  end
  local fingerprint = string.match(stored, '^%S+')
  local set = home .. 'fingerprint:' .. fingerprint
  if redis.call('ZREM', set, id) == 1 and redis.call('EXISTS', set) == 0 then
    redis.call('HDEL', home .. 'fingerprints', fingerprint)
  end
end

-- The tasks that have ended without success. They are in BullMQ's set `failed`, and each of them is also in one of its parts, the sets
-- `dead`, `cancelled` and `expired`, with the same score: the time of its end, in ms since 1970.
--
-- enter_failed(base, id, part, score, fingerprint)  adds a task to `failed` and to the set `part`. For a dead task, `fingerprint` is its
--                                                   kind of error as `encodeKind` returns it (internals/status/stored-kind.ts), otherwise
--                                                   nil
-- leave_failed(base, id)                            removes a task from `failed`, from its part, and from the index of dead tasks by
--                                                   fingerprint. Returns whether it was in `failed`
--- @include fingerprints

local FAILED_PARTS = { 'dead', 'cancelled', 'expired' }

local function enter_failed(base, id, part, score, fingerprint)
  redis.call('ZADD', base .. 'failed', score, id)
  redis.call('ZADD', base .. part, score, id)
  if fingerprint then
    enter_fingerprint(base, id, score, fingerprint)
  end
end

local function leave_failed(base, id)
  local fingerprint = redis.call('HGET', base .. id, 'fingerprint')
  if fingerprint then
    leave_fingerprint(base, id, fingerprint)
    redis.call('HDEL', base .. id, 'fingerprint')
  end
  for _, part in ipairs(FAILED_PARTS) do
    redis.call('ZREM', base .. part, id)
  end
  return redis.call('ZREM', base .. 'failed', id) == 1
end

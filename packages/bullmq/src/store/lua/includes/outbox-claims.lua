-- Claims entries of an outbox, whose key is the local `outbox`. A claim is told apart by its age, not by its process, so each outbox has one
-- consumer group with one consumer.
--
-- claim_fresh(limit)               claims entries that no process has claimed, and returns their ids and texts. The outbox must exist
-- claim_left(idle, cursor, limit)  claims entries that a process has claimed at least `idle` ms ago. Returns where to look next ('0-0' if
--                                  there are no more), and their ids and texts
local function ids_and_texts(stream)
  local entries = {}
  for _, entry in ipairs(stream) do
    -- An entry that was deleted while it was claimed has no fields.
    if entry[2] then
      entries[#entries + 1] = { entry[1], entry[2][2] }
    end
  end
  return entries
end

local function claim_fresh(limit)
  local function read(call)
    return call('XREADGROUP', 'GROUP', 'forwarders', 'forwarder', 'COUNT', limit, 'STREAMS', outbox, '>')
  end
  local found = read(redis.pcall)
  -- The consumer group is deleted together with an empty outbox.
  if found and found.err then
    redis.call('XGROUP', 'CREATE', outbox, 'forwarders', '0')
    found = read(redis.call)
  end
  return ids_and_texts(found and found[1][2] or {})
end

local function claim_left(idle, cursor, limit)
  local left = redis.call('XAUTOCLAIM', outbox, 'forwarders', 'forwarder', idle, cursor, 'COUNT', limit)
  return left[1], ids_and_texts(left[2])
end

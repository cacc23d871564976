-- Starts the next task of a queue, unless the queue is paused or at a limit.
--
-- start_task(token)  starts a task, whose lock gets this token ('0' if it gets no lock). Returns what BullMQ's fetch returns: the fields of
--                    the task's hash and its id, or 0 and 0; for how many ms a rate limit holds up the queue, or 0; and, if nothing starts,
--                    when the next task is due, or 0. An id without a task is dropped. Once a start has found nothing, the next ones reply
--                    the same without a search, until `found_nothing` is cleared because an attempt ends
--
-- `lockMs`, `worker`, `ownMax`, `ownPerMs` and `candidates` are arguments of the script (end-and-start.lua).
--
-- A plain queue finds out with one command that it has neither lanes nor limits, once for a batch (rare-functions.lua). If an end of the
-- same move has read the features, and lanes took turns then, the start does not read them again.
--- @include queue-meta
--- @include rare-functions
--- @include lock

-- How many ids without a task one script drops. A worker then fetches again.
local MAX_DROPPED = 1000
local dropped = 0
local found_nothing

local function has_turns()
  return redis.call('EXISTS', base .. 'turn-state', base .. 'key-limits', base .. 'capacities') > 0
end

-- Makes the next task active. Returns its id or nil, and whether it is certain that no further task may start until one ends.
local function take_next()
  if candidates ~= '' then
    local id = rare('candidates').start_candidate(candidates, time)
    return id, not id
  end
  local active, found = base .. 'active', features
  local id, is_last, may_be_uncounted
  features = nil
  if found and found % 2 == 1 or not is_plain and has_turns() then
    id, is_last, may_be_uncounted = rare('turns').start_next(found, time)
  else
    is_plain = true
    id = redis.call('RPOPLPUSH', base .. 'wait', active)
    is_last = not id
  end
  if id then
    return id, is_last
  end
  id = redis.call('ZPOPMIN', base .. 'prioritized')[1]
  if not id then
    redis.call('DEL', base .. 'pc')
    return nil, is_last
  end
  redis.call('LPUSH', active, id)
  if may_be_uncounted then
    rare('turns').limited().hold_places(id)
  end
  return id, false
end

-- Returns the number in the field `name` of a hash, or 0.
local function count_of(fields, name)
  for i = 1, #fields, 2 do
    if fields[i] == name then
      return tonumber(fields[i + 1])
    end
  end
  return 0
end

local function start_task(token)
  if found_nothing then
    return found_nothing
  end
  local meta = queue_meta()
  local max = tonumber(meta[3] or ownMax)
  promote_due()
  local left = max and rare('rate').limited_ms(max) or 0
  if left > 0 or not is_open() then
    found_nothing = { 0, 0, left, 0 }
    return found_nothing
  end
  local id, is_last = take_next()
  if not id then
    local starts_at = rare('idle').next_due(base)
    is_idle = not starts_at
    local reply = { 0, 0, 0, starts_at or 0 }
    found_nothing = is_last and (starts_at or math.huge) > now and reply or nil
    return reply
  end
  local job = base .. id
  local fields = redis.call('HGETALL', job)
  if #fields == 0 then
    -- The id is a marker of an old version of BullMQ, or its task was deleted or lost. A start would create a hash again, without the task,
    -- and whatever looks for lost tasks would believe that this one exists.
    redis.call('LREM', base .. 'active', '1', id)
    dropped = dropped + 1
    if dropped < MAX_DROPPED then
      return start_task(token)
    end
    redis.call('ZADD', base .. 'marker', '0', '0')
    return { 0, 0, 0, 0 }
  end
  local count = #fields
  if max then
    rare('rate').count_start(job, tonumber(ownPerMs) or tonumber(meta[4] or '') or 1)
  end
  add_move_event('active', id, 'prev', 'waiting')
  local starts = count_of(fields, 'ats') + 1
  fields[count + 1], fields[count + 2] = 'processedOn', time
  fields[count + 3], fields[count + 4] = 'ats', tostring(starts)
  if worker ~= '' then
    fields[count + 5], fields[count + 6] = 'pb', worker
  end
  -- Only Redis keeps the lock.
  local lock = token == '0' and '' or lock_of(token, lockMs)
  redis.call('HSET', job, 'lock', lock, unpack(fields, count + 1))
  if is_last then
    redis.call('ZREM', base .. 'marker', '0')
  elseif not has_marker then
    redis.call('ZADD', base .. 'marker', '0', '0')
  end
  has_marker = not is_last
  return { fields, id, 0, 0 }
end

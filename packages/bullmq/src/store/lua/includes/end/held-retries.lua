-- The line in which a definition's held retries wait (retry-budget.lua). The sorted set `held-retries:<definition>` has them by the
-- beginning of their slots. A member consists of the end of the task's backoff, the time at which the task is due, and its id. Times are in
-- ms since 1970.
--
-- A held retry is an ordinary retrying task that is due when its slot begins. The retry therefore starts even if every process that knows
-- of it is gone. Releasing the retry only makes the task due earlier. A member whose task is no longer due at the time that the member says
-- is no longer held: its task was cancelled, promoted or delayed again.
--
-- hold_retry(line, id, backoff_ends_at, starts_at, slot_at)  adds a retry to the line
-- release_retry(line, now)                                   takes the first retry out of the line, and makes it due. Returns whether there
--                                                            was one, whether it was still held, and whether it now starts earlier
-- move_up(line, from, interval)                              if there is a gap before the first retry, gives the first MOVED_UP ones
--                                                            earlier slots, which begin at `from`. Returns how many now start earlier
--
-- `line` is the key of the sorted set, and `base` the prefix of the queue's keys.
--- @include delayed-set
--- @include note-moved

local GAP, MOVED_UP = 5, 20

-- Decodes a member. Returns the end of the backoff, the time at which the task is due, and its id, or nil if the task is no longer held.
local function held_retry(member)
  local backoff_ends_at, due, id = string.match(member, '^(%d+) (%d+) (.*)$')
  local score = redis.call('ZSCORE', base .. 'retrying', id)
  if score and math.floor(score / DELAYED_STEP) == tonumber(due) then
    return tonumber(backoff_ends_at), tonumber(due), id
  end
  return nil
end

-- A slot's beginning has a fraction.
local function hold_retry(line, id, backoff_ends_at, starts_at, slot_at)
  redis.call('ZADD', line, slot_at, string.format('%.0f %.0f %s', backoff_ends_at, starts_at, id))
end

-- Makes a held retry due at `starts_at` instead of `due`. Returns whether that is another time.
local function advance_start(id, due, starts_at)
  if starts_at == due then
    return false
  end
  change_due(base, id, starts_at, 'retrying')
  note_moved(id)
  return true
end

local function release_retry(line, now)
  local first = redis.call('ZPOPMIN', line)[1]
  if not first then
    return false
  end
  local backoff_ends_at, due, id = held_retry(first)
  if not id then
    return true, false
  end
  return true, true, advance_start(id, due, math.max(now, backoff_ends_at))
end

local function move_up(line, from, interval)
  local slot_at = redis.call('ZRANGE', line, 0, 0, 'WITHSCORES')[2]
  if not slot_at or slot_at - from < GAP * interval then
    return 0
  end
  local moved = 0
  for _, member in ipairs(redis.call('ZRANGE', line, 0, MOVED_UP - 1)) do
    local backoff_ends_at, due, id = held_retry(member)
    redis.call('ZREM', line, member)
    if id then
      local starts_at = math.max(backoff_ends_at, math.min(math.ceil(from), due))
      hold_retry(line, id, backoff_ends_at, starts_at, from)
      moved = moved + (advance_start(id, due, starts_at) and 1 or 0)
      from = from + interval
    end
  end
  return moved
end

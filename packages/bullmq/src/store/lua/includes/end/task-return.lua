-- Puts tasks back to where they wait: those whose attempt has not ended them, and those whose time has come.
--
-- put_back(ending)  delays a task that has left `active`, or lets it wait again, as its verdict says (attempt-end.lua). For a task that
--                   waits again and was not retried, returns how long the queue's rate limit still holds it up, in ms, and otherwise 0
-- promote(ids)      lets these delayed tasks wait for their start
--
-- Some ends have `survival`, which is what the attempt shows about a quarantined task: 'lived' ends its quarantine, and 'died' is one more
-- death of its process.
--
-- A quarantined task for which a worker has no place is `postponed`: it is in the delayed set for a few seconds, so that no worker
-- fetches it. Its field `waits` lets it return before the other tasks, so that it keeps its turn, and the set `postponed` tells a light
-- drain that it must wait for the task (queries/count-remaining.lua).
--
-- `base`, `now` and `has_delayed` are those of end-and-start.lua, and rare-functions.lua has `rare` and `promote_due`.
--- @include time
--- @include delayed-set
--- @include note-moved
--- @include enter-place

local KEEP_POSTPONED_MS = 60000
local COUNTED = { retrying = true, retried = true }

-- An id whose task was deleted or lost is dropped. HSET would create a hash for it, without the task, and whatever looks for lost tasks
-- would believe that this one exists.
local function promote_task(id)
  local job = base .. id
  local name, lane, priority, waits = unpack(redis.call('HMGET', job, 'name', 'lane', 'priority', 'waits'))
  if not name and redis.call('EXISTS', job) == 0 then
    return
  end
  if waits then
    redis.call('HDEL', job, 'waits')
  end
  enter_place(id, lane, tonumber(priority or '0') or 0, waits and true or false)
  add_move_event('waiting', id, 'prev', 'delayed')
  redis.call('HSET', job, 'delay', '0')
end

local function promote(ids)
  for _, set in ipairs({ 'delayed', 'scheduled', 'retrying' }) do
    redis.call('ZREM', base .. set, unpack(ids))
  end
  for _, id in ipairs(ids) do
    promote_task(id)
  end
  if is_open() then
    redis.call('ZADD', base .. 'marker', '0', '0')
  end
end

local function store_fields(ending, ...)
  local fields = ending.fields or {}
  for _, each in ipairs({ ... }) do
    fields[#fields + 1] = each
  end
  if COUNTED[ending.verdict] then
    fields[#fields + 1] = 'atm'
    fields[#fields + 1] = whole(ending.attempts + 1)
  end
  redis.call('HSET', ending.job, 'lock', '', unpack(fields))
end

-- Takes the last start back. Returns how many starts of the task still count. Its next attempt has the same fencing token, which this one
-- has used for nothing.
local function uncount_start(job)
  return redis.call('HINCRBY', job, 'ats', -1)
end

local function note_postponed(id, job, score)
  local postponed = base .. 'postponed'
  uncount_start(job)
  redis.call('HSET', job, 'waits', '1')
  redis.call('ZREMRANGEBYSCORE', postponed, '-inf', whole(now * DELAYED_STEP))
  redis.call('ZADD', postponed, score, id)
  redis.call('PEXPIRE', postponed, KEEP_POSTPONED_MS)
end

-- Returns whether a task that is postponed was retrying before its start, which its last record says (engine, statusOfDelayed).
local function was_retrying(ending)
  if ending.attempts == 0 then
    return false
  end
  --- @include attempt-records
  local stacks = read_stacks(ending.job)
  local is_record, last = pcall(decode_json, string.match(tostring(stacks[#stacks] or ''), '^[^\n]*'))
  if not is_record or type(last) ~= 'table' then
    return true
  end
  return last.reason ~= 'snoozed' and not (last.state == 'DONE_ERROR' and not last.counted)
end

-- Returns when the task is due. A task that is postponed keeps its kind of status.
local function delay(ending)
  local id, job, verdict, delay_ms = ending.id, ending.job, ending.verdict, tonumber(ending.value)
  if ending.budget then
    delay_ms = rare('budget').admit_retry(ending.budget, now, id, now + delay_ms) - now
  end
  local due = now + math.max(delay_ms, 0)
  local is_retry = verdict == 'retrying' or verdict == 'postponed' and was_retrying(ending)
  store_fields(ending, 'delay', whole(delay_ms))
  local score = enter_delayed(base, id, due, is_retry and 'retrying' or 'scheduled')
  add_move_event('delayed', id, 'delay', whole(due))
  if verdict == 'postponed' then
    note_postponed(id, job, score)
  end
  has_delayed = true
  return due
end

-- A task whose only start was taken back has left the index of queue timeouts if the leader has looked at the index meanwhile. The leader
-- has then stored the time in the task's field `expiresAt` (leader/expire-tasks.lua).
local function expire_again(id, job)
  local expires_at = redis.call('HGET', job, 'expiresAt')
  if expires_at then
    redis.call('ZADD', base .. 'expiries', expires_at, id)
  end
end

local function wait_again(ending)
  local id, job, verdict, lane, priority = ending.id, ending.job, ending.verdict, ending.lane, ending.priority
  local is_retry = verdict == 'retried'
  -- A retried task joins behind the delayed tasks that are due by now.
  if is_retry then
    promote_due()
  end
  store_fields(ending)
  enter_place(id, lane, priority, not is_retry or ending.value == 'head' and priority == 0)
  if is_open() or not is_retry and (lane or priority > 0) then
    redis.call('ZADD', base .. 'marker', '0', '0')
  end
  add_move_event('waiting', id, 'prev', 'active')
  if verdict == 'released' and uncount_start(job) == 0 then
    expire_again(id, job)
  end
end

local function put_back(ending)
  local id, job, verdict, survival = ending.id, ending.job, ending.verdict, ending.survival
  local is_delayed = verdict == 'retrying' or verdict == 'scheduled' or verdict == 'postponed'
  local due
  if is_delayed then
    due = delay(ending)
  else
    wait_again(ending)
  end
  note_moved(id)
  if survival == 'lived' then
    redis.call('HDEL', job, 'deaths', 'alone', 'diedIn')
  elseif survival == 'died' then
    redis.call('HINCRBY', job, 'deaths', 1)
  end
  if ending.events then
    rare('events').add_task_events(base, id, ending.events, due)
  end
  return (is_delayed or verdict == 'retried') and 0 or math.max(redis.call('PTTL', base .. 'limiter'), 0)
end

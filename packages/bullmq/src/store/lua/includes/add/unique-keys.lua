-- Finds the task that has a new task's unique key, resolves the conflict, and gives the key to the new task.
--
-- In two cases, a waiting task no longer has its key although it has not been ended yet: if a cancel by filter covers the task, and if the
-- task's queue timeout has passed. Its handler will not run, because the leader ends it, or the worker that fetches it. A task that is
-- enqueued after a cancellation must not be lost with the cancelled task. (Until all workers know of the cancellation, which its caller
-- waits for, a worker may still start the covered task.)
--
-- The task's field `unique` has the span of the key (key-owner.lua; a number is how long the key lasts, in ms), what to do about a
-- conflict (`k` to keep the other task, `r` to replace it, `x` to extend its delay, `e` for an error), when the task could start (ms
-- since 1970), its longest delay in ms or 0, and the key.
--
-- resolve_conflict(task)  must be called before the task is written. Returns the reply if the task is not added, or nil
-- delete_replaced(task)   deletes the task that the new one replaces
-- take_key(task)          gives the key to the new task
--- @include time
--- @include decode-json
--- @include key-owner
--- @include matching-rule
--- @include leave-place
--- @include lock

local NAMED_SETS = { 'scheduled', 'retrying', 'completed', 'dead', 'cancelled', 'expired' }

-- Returns '' for a task that has been deleted.
local function status_of(id)
  if redis.call('EXISTS', base .. id) == 0 then
    return ''
  end
  for _, set in ipairs(NAMED_SETS) do
    if redis.call('ZSCORE', base .. set, id) then
      return set
    end
  end
  return is_running(base .. id) and 'active' or 'waiting'
end

local function has_started(id)
  return tonumber(redis.call('HGET', base .. id, 'ats') or '0') > 0
end

-- Returns the status with which a task will end without starting, or nil if the task may start.
local function certain_end(id, now)
  if is_running(base .. id) then
    return nil
  end
  local expires_at = tonumber(redis.call('ZSCORE', base .. 'expiries', id) or now + 1)
  if expires_at <= now and not has_started(id) then
    return 'expired'
  end
  local rules = {}
  for i, text in ipairs(redis.call('HVALS', base .. 'cancel-rules')) do
    rules[i] = decode_json(text)
  end
  return #rules > 0 and matching_rule(base, rules, id) and 'cancelled' or nil
end

-- Lets the scheduled task `id` start when the new one could, unless that is earlier or would delay the task for too long. Returns whether
-- the task has another time now.
local function postpone(id, wanted)
  local score = redis.call('ZSCORE', base .. 'delayed', id)
  local enqueued_at, options = unpack(redis.call('HMGET', base .. id, 'timestamp', 'opts'))
  local moved, delay = wanted.starts_at - math.floor(score / DELAYED_STEP), wanted.starts_at - enqueued_at
  if moved <= 0 or wanted.max_delay > 0 and delay >= wanted.max_delay then
    return false
  end
  change_due(base, id, wanted.starts_at, 'scheduled')
  -- Workers use the options to compute when a task became ready.
  local changed = cjson.decode(options)
  changed.delay = delay
  redis.call('HSET', base .. id, 'delay', whole(delay), 'opts', cjson.encode(changed))
  redis.call('ZADD', base .. 'expiries', 'XX', 'INCR', whole(moved), id)
  return true
end

local function wanted_key(task, now)
  local span, on_conflict, starts_at, max_delay, key = string.match(task.unique, '^(%S+) (%a) (%d+) (%d+) (.*)$')
  return {
    key = key,
    span = tonumber(span) and whole(now + span) or span,
    on_conflict = on_conflict,
    starts_at = tonumber(starts_at),
    max_delay = tonumber(max_delay),
  }
end

-- Sets `replaced` to the task that the new one is to replace. The reply is `existing`, `extended` or `taken`, the other task's id, and its
-- status ('' if it has been deleted).
local function resolve_conflict(task)
  local now = millis()
  local wanted = wanted_key(task, now)
  task.wanted = wanted
  local entry = redis.call('HGET', base .. 'unique-keys', wanted.key)
  local other = entry and key_owner(base, entry, now)
  if not other then
    return nil
  end
  local other_span = tonumber(string.match(entry, '^%S+ (%S+)'))
  local ending = certain_end(other, now)
  if ending and not other_span then
    return nil
  end
  if wanted.on_conflict == 'e' then
    return { 'taken', other, '' }
  end
  local status, action = status_of(other), 'existing'
  local waits = status == 'waiting' or status == 'scheduled'
  if waits and not ending and not has_started(other) then
    if wanted.on_conflict == 'r' then
      task.replaced, task.replaced_bytes = other, stored_bytes_of(base .. other)
      return nil
    end
    if wanted.on_conflict == 'x' and status == 'scheduled' and postpone(other, wanted) then
      action = 'extended'
      if other_span and tonumber(wanted.span) then
        redis.call('HSET', base .. 'unique-keys', wanted.key, (string.gsub(entry, ' %S+', ' ' .. wanted.span, 1)))
      end
    end
  end
  -- A task that a cancel by filter covers is shown as cancelled everywhere.
  if ending == 'cancelled' and (waits or status == 'retrying') then
    status = ending
  end
  if task.record then
    remember_other(task, action, other, status)
  end
  return { action, other, status }
end

local function take_key(task)
  redis.call('HSET', base .. 'unique-keys', task.wanted.key, task.id .. ' ' .. task.wanted.span)
end

-- Deletes the replaced task, when nothing can prevent the new one from being stored. If the same script has added the replaced task,
-- that task must first be in `wait`: it would otherwise be written there after it was deleted.
local function delete_replaced(task)
  local id = task.replaced
  write_waiting()
  local place = delete_waiting_task(id)
  redis.call('ZREM', base .. 'expiries', id)
  redis.call('XADD', base .. 'events', '*', 'event', 'removed', 'jobId', id, 'prev', place or 'unknown')
  stored_bytes = nil
end

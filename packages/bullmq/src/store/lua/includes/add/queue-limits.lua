-- Checks the limits of a queue, and of an API key in it, so that concurrent producers cannot exceed them together. Each check takes
-- constant time.
--
-- A task's argument `limits` is '', how many bytes the queue's unfinished tasks may take, or three numbers: how many of its tasks may wait,
-- these bytes, and how long the oldest of them may have waited, in ms. Each may be missing. Its field `apiKey` has the name of the key, how
-- many unfinished tasks the key may have in the queue ('-' if they are only counted, '' if they are not), and how many tasks the key may
-- enqueue in how many ms.
--
-- The tables and counters of new-tasks.lua and place-task.lua say which tasks this script has accepted but not yet written, or not yet put
-- into `wait`: these count as well.
--- @include next-task
--- @include token-bucket

-- The delayed set has both scheduled and retrying tasks. A task that the new one replaces is not counted.
local function refuse_by_count(task, max)
  if not max then
    return nil
  end
  local found = redis.call('LLEN', base .. 'wait')
    + redis.call('ZCARD', base .. 'prioritized')
    + redis.call('ZCARD', base .. 'delayed')
    + (redis.call('HGET', base .. 'turn-state', 'waiting') or 0)
    - (task.replaced and 1 or 0)
  local unwritten = is_all and count or #waiting
  return found + unwritten >= max and { 'full', 'maxTasks', found, max } or nil
end

-- BullMQ stores a task's delay in the job's options, and sets its field `delay` to 0 when the task becomes ready.
local function refuse_by_age(task, max)
  local first = max and next_task(base)
  if not first or first == task.replaced then
    return nil
  end
  local enqueued_at, options, starts = unpack(redis.call('HMGET', base .. first, 'timestamp', 'opts', 'ats'))
  if not enqueued_at or tonumber(starts or 0) > 0 then
    return nil
  end
  local delay = string.match(options or '', '"delay":(%d+)') or 0
  local found = millis() - enqueued_at - delay
  return found >= max and { 'full', 'maxAge', found, max } or nil
end

local function api_key_of(task)
  local name, max_tasks, max, per = string.match(task.apiKey, '^(%S+) (%S*) (%d*) (%d*)$')
  return name, max_tasks, tonumber(max), tonumber(per)
end

local function refuse_by_api_key(task)
  local name, max_tasks, max, per = api_key_of(task)
  local unwritten = is_all and count or 0
  if tonumber(max_tasks) then
    local found = tonumber(redis.call('HGET', base .. 'api-key-tasks', name) or '0')
    if task.replaced and string.sub(redis.call('HGET', base .. task.replaced, 'atEnd') or '', 2) == name then
      found = found - 1
    end
    if found + unwritten >= tonumber(max_tasks) then
      return { 'api key full', found, tonumber(max_tasks) }
    end
  end
  if max then
    local tokens = tokens_in(redis.call('HGET', base .. 'api-key-rates', name), micros() / 1000, max, per)
    if whole_tokens(tokens) <= unwritten then
      return { 'rate', math.ceil((unwritten + 1 - tokens) * per / max) }
    end
  end
  return nil
end

-- Takes a token, and counts the task for its API key until its end (task-charge.lua).
local function charge_api_key(task)
  local name, max_tasks, max, per = api_key_of(task)
  if max then
    local now = micros() / 1000
    local tokens = tokens_in(redis.call('HGET', base .. 'api-key-rates', name), now, max, per)
    redis.call('HSET', base .. 'api-key-rates', name, stored_bucket(tokens - 1, now))
  end
  if max_tasks ~= '' then
    task.counted_for = name
    redis.call('HINCRBY', base .. 'api-key-tasks', name, 1)
  end
end

-- Retries dead tasks by request: a task returns to the place where it waits, behind the others, with all of its attempts.
--
-- retry_dead(id, retries, entry, data)  retries a task. `retries` is the decoded list of its earlier retries, to which `entry` is added.
--                                       The total timeout of the task starts at the time of the entry (`at`, in ms since 1970). `data`
--                                       replaces the stored string, unless it is ''. Returns whether the task was dead
-- add_retry(retries, entry)             only adds to such a list, and drops the oldest entries beyond the limit
--
-- `base` is the prefix of the queue's keys. BullMQ's own retry changes the same fields and adds the same event. The number of starts is
-- kept, because it is the fencing token. The deaths of the task's workers are forgotten, because the task would otherwise be dead again as
-- soon as a worker fetched it; but a task in quarantine keeps one, so that it runs in quarantine first, and is not poison at once.
--- @include time
--- @include failed-set
--- @include lanes
--- @include task-charge
--- @include task-events

local MAX_RETRY_RECORDS = 10

-- place-task.lua expects this function. Scripts that add tasks create its functions only on first use (new-tasks.lua).
local function rare()
  return { enter_lane = enter_lane }
end
--- @include place-task

local has_cancel_rules

local function add_retry(retries, entry)
  while #retries >= MAX_RETRY_RECORDS do
    table.remove(retries, 1)
  end
  retries[#retries + 1] = entry
end

-- An envelope begins with its version, and the time of the retry follows. The time also tells two retries apart, so a second retry in the
-- same millisecond, or after the clock was set back, is stored as one millisecond later than the first.
local function with_time(data, stored, at)
  local head, rest = string.match(data, '^({"v":%d+,)(.*)$')
  if not head then
    return data
  end
  local earlier = tonumber(string.match(stored, '^{"v":%d+,"retriedAt":(%d+),') or '')
  if earlier and earlier >= at then
    at = earlier + 1
  end
  return head .. '"retriedAt":' .. whole(at) .. ',' .. string.gsub(rest, '^"retriedAt":%d+,', '')
end

-- If the failed child was reported to the parent of its flow, makes the child one of the parent's dependencies again.
local function return_to_parent(job, parent)
  local was_told = redis.call('EXISTS', parent) == 1
    and (redis.call('ZREM', parent .. ':unsuccessful', job) == 1 or redis.call('HDEL', parent .. ':failed', job) == 1)
  if was_told then
    redis.call('SADD', parent .. ':dependencies', job)
  end
end

-- A pass that looks for tasks that match a cancel rule might miss this task, because the task moves (cancel/forget-rules.lua).
local function note_return(id)
  if has_cancel_rules == nil then
    has_cancel_rules = redis.call('EXISTS', base .. 'cancel-rules') == 1
  end
  if has_cancel_rules then
    redis.call('SADD', base .. 'cancel-returned', id)
  end
end

local function retry_dead(id, retries, entry, data)
  local job = base .. id
  local stored, lane, priority, deaths, parent, events, name, tags, group = unpack(
    redis.call('HMGET', job, 'data', 'lane', 'priority', 'deaths', 'parentKey', 'events', 'name', 'tags', 'group')
  )
  local next_data = with_time(data ~= '' and data or stored, stored, entry.at)
  if not leave_failed(base, id) then
    return false
  end
  add_retry(retries, entry)
  redis.call('HSET', job, 'retries', cjson.encode(retries), 'data', next_data)
  redis.call('HDEL', job, 'finishedOn', 'processedOn', 'failedReason', 'atm', 'stc')
  if deaths then
    redis.call('HSET', job, 'deaths', '1', 'stc', '1')
  end
  -- The leader may not yet have removed a request to cancel an earlier attempt of the task.
  redis.call('HDEL', base .. 'cancelling', id)
  charge(base, job, 1)
  redis.call('HINCRBY', base .. 'totals', 'retried', 1)
  place_behind(id, lane, tonumber(priority) or 0)
  add_bullmq_event('waiting', id, 'prev', 'failed')
  write_waiting()
  if parent then
    return_to_parent(job, parent)
  end
  note_return(id)
  if events then
    local start = event_start('retry_requested', name, tags, group)
    add_task_event(base, id, events, start .. ',"by":' .. cjson.encode(entry.by or '') .. '}')
  end
  return true
end

-- Retries dead tasks by request: a task returns to the place where it waits, behind the others, with all of its attempts.
--
-- retry_dead(id, retries, entry, data)  retries a task. `retries` is the decoded list of its earlier retries, to which `entry` is added.
--                                       The total timeout of the task starts at the time of the entry (`at`, in ms since 1970). `data`
--                                       replaces the stored string, unless it is ''. Returns whether the task was dead
-- add_retry(retries, entry)             only adds to such a list, and drops the oldest entries beyond the limit
--
-- `base` is the prefix of the queue's keys. The number of starts is kept, so that no later attempt has the fencing
-- token of an earlier one. The losses of the task's workers are forgotten, because the task would otherwise be dead again as soon as a
-- worker fetched it.
--- @include time
--- @include return-ended
--- @include task-events

local MAX_RETRY_RECORDS = 10

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

local function retry_dead(id, retries, entry, data)
  local job = base .. id
  local stored, lane, priority, deaths, parent, events, name, tags, group = unpack(
    redis.call('HMGET', job, 'data', 'lane', 'priority', 'deaths', 'parentKey', 'events', 'name', 'tags', 'group')
  )
  local next_data = with_time(data ~= '' and data or stored, stored, entry.at)
  if not leave_ended(id, 'failed') then
    return false
  end
  add_retry(retries, entry)
  redis.call('HSET', job, 'retries', cjson.encode(retries), 'data', next_data)
  local task = { id = id, lane = lane, priority = priority, deaths = deaths, parent = parent }
  return_ended(task, 'failed', { 'failedReason', 'atm', 'stc' }, false)
  write_waiting()
  if events then
    local start = event_start('retry_requested', name, tags, group)
    add_task_event(base, id, events, start .. ',"by":' .. cjson.encode(entry.by or '') .. '}')
  end
  return true
end

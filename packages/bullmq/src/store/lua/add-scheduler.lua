#!lua
-- Adds a job scheduler with its next job, or changes one, in place of BullMQ's `addJobScheduler`. The next job of a changed scheduler
-- replaces the one that is waiting.
--
-- KEYS  schedulers  BullMQ's set `repeat` (includes/bullmq/scheduler.lua)
-- ARGV  base
-- ARGV  scheduler   the scheduler's id
-- ARGV  time        for when the next job is planned, in ms since 1970, or '' for a scheduler with an interval
-- ARGV  settings    when the scheduler adds jobs, and their name, as JSON
-- ARGV  data        the data of its jobs, as JSON
-- ARGV  template    the options of its jobs, as JSON
-- ARGV  options     those of the next job
--
-- Returns `[id: string, delayMs: number] | number`: the next job, or BullMQ's code if another job has its id: -10, or -11 if a
-- scheduler with an interval finds no free time. By then, nothing was written.
--- @include time
--- @include job-removal
--- @include leave-place
--- @include scheduler

-- At how many times a scheduler with an interval looks for one whose id is free.
local MAX_TIMES = 33
local STORED = { 'tz', 'limit', 'pattern', 'startDate', 'endDate', 'every', 'offset' }

local hash, now = schedulers .. ':' .. scheduler, millis()
local set, job = cjson.decode(settings), { data = data, options = cjson.decode(options) }
local every, last = set.every, tonumber(redis.call('ZSCORE', schedulers, scheduler))
local current = last and planned_id(scheduler, last)
job.name = set.name

local function waits(id)
  return redis.call('EXISTS', base .. id) == 1
    and (
      redis.call('ZSCORE', base .. 'delayed', id)
      or redis.call('ZSCORE', base .. 'prioritized', id)
      or redis.call('LPOS', base .. 'wait', id)
    )
end
local replaces = current and waits(current)

local function is_free(id)
  return replaces and id == current or redis.call('EXISTS', base .. id) == 0
end

-- Returns when the next job is planned, or nil if other jobs have all ids.
local function plan_by_interval()
  local is_changed = last and tonumber(redis.call('HGET', hash, 'every')) ~= every
  local of_job = job.options['repeat'] or {}
  local offset = set.offset or of_job.offset or 0
  local planned, found_offset = next_time(not is_changed and last or nil, every, now, offset, set.startDate)
  if replaces and not is_changed then
    return last
  end
  set.offset = not replaces and found_offset or set.offset
  for _ = 1, MAX_TIMES do
    if is_free(planned_id(scheduler, planned)) then
      return planned
    end
    planned = planned + every
  end
  return nil
end

-- As in BullMQ, the next job of a changed scheduler replaces another one with its id, but here only one that has ended.
local function may_replace(id)
  return replaces and (redis.call('ZSCORE', base .. 'completed', id) or redis.call('ZSCORE', base .. 'failed', id))
end

local function store_scheduler(planned)
  local iterations, offset = unpack(redis.call('HMGET', hash, 'ic', 'offset'))
  set.offset = set.offset or offset
  local fields = { 'name', set.name, 'ic', iterations or '1' }
  for _, name in ipairs(STORED) do
    append_given(fields, name, set[name])
  end
  append_given(fields, 'opts', template ~= '{}' and template)
  append_given(fields, 'data', data ~= '{}' and data)
  redis.call('ZADD', schedulers, whole(planned), scheduler)
  redis.call('DEL', hash)
  redis.call('HSET', hash, unpack(fields))
end

local planned = tonumber(time)
if every then
  planned = plan_by_interval()
  if not planned then
    return -11
  end
else
  set.offset = set.offset or not replaces and 0 or nil
end
local id = planned_id(scheduler, planned)
local is_taken = not is_free(id)
if is_taken and not may_replace(id) then
  return -10
end
if replaces then
  take_out(current)
  delete_in_bulk(current)
end
if is_taken then
  leave_set(base, 'completed', id)
  leave_set(base, 'failed', id)
  delete_in_bulk(id)
end
store_scheduler(planned)
return { id, add_planned(scheduler, planned, now, job) }

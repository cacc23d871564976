#!lua flags=allow-oom
-- Removes up to `count` jobs of a paused queue, wherever they are, and finally what BullMQ stores about the queue, in place of BullMQ's
-- `obliterate`. What Bullpen stores stays, so that the totals say what has become of the tasks.
--
-- KEYS  meta
-- ARGV  base
-- ARGV  count  how many jobs are removed at most
-- ARGV  force  '1' to also remove active jobs
--
-- Returns `number`: 1 if there may be more jobs, and 0 at the end; or -1 if the queue is not paused, and -2 if it has active jobs.
--- @include job-removal
--- @include forget-turns

local left = tonumber(count)

local function remove_from_list(list, leave)
  local ids = redis.call('LRANGE', list, 0, left - 1)
  for _, id in ipairs(ids) do
    if leave then
      leave(id)
    end
    delete_in_bulk(id)
  end
  redis.call('LTRIM', list, #ids, -1)
  left = left - #ids
end

local function remove_from_set(set)
  local ids = redis.call('ZRANGE', base .. set, 0, left - 1)
  for _, id in ipairs(ids) do
    leave_set(base, set, id)
    delete_in_bulk(id)
  end
  left = left - #ids
end

local function leave_active(id)
  redis.call('DEL', base .. id .. ':lock')
  local lane = redis.call('HGET', base .. id, 'lane')
  if lane then
    give_back(lane)
  end
end

local function remove_schedulers()
  local names = redis.call('ZRANGE', base .. 'repeat', 0, left - 1)
  for _, name in ipairs(names) do
    redis.call('DEL', base .. 'repeat:' .. name)
    redis.call('ZREM', base .. 'repeat', name)
  end
  left = left - #names
end

local function remove_from_lanes()
  for _, name in ipairs(redis.call('ZRANGE', base .. 'lanes', 0, -1)) do
    local before = left
    remove_from_list(lane_list(base, name))
    if left > 0 then
      remove_from_set('lane-priorities:' .. name)
    end
    if left < before then
      note_left_lane(name, before - left)
    end
    if left <= 0 then
      return
    end
  end
  forget_turns(base)
end

local function remove_list(name)
  return function()
    remove_from_list(base .. name, name == 'active' and leave_active or nil)
  end
end

local function remove_set(name)
  return function()
    remove_from_set(name)
  end
end

if redis.call('HEXISTS', meta, 'paused') == 0 then
  return -1
end
if force ~= '1' and redis.call('EXISTS', base .. 'active') == 1 then
  return -2
end
local steps = {
  remove_list('active'),
  remove_set('delayed'),
  remove_schedulers,
  remove_set('completed'),
  remove_list('wait'),
  remove_list('paused'),
  remove_set('prioritized'),
  remove_from_lanes,
  remove_set('failed'),
}
for _, step in ipairs(steps) do
  step()
  if left <= 0 then
    return 1
  end
end
for _, name in ipairs({
  'events',
  'delay',
  'stalled-check',
  'attached-check',
  'stalled',
  'unrenewed',
  'id',
  'pc',
  'marker',
  'meta',
}) do
  redis.call('DEL', base .. name)
end
for _, outcome in ipairs({ 'completed', 'failed' }) do
  redis.call('DEL', base .. 'metrics:' .. outcome, base .. 'metrics:' .. outcome .. ':data')
end
return 0

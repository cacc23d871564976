#!lua flags=allow-oom
-- Notes which of the tasks that a process has acknowledged are lost: they do not exist, and nothing shows that they were deleted. Three
-- things show that: the task was deleted soon after its enqueue, an event of the queue is about it, or the queue was obliterated, which
-- deletes the events and keeps the totals. If tasks are missing, the script reads all events of the queue.
--
-- KEYS  totals, recentlyRemoved, events
-- KEYS  lostTasks  for each lost task, the process that noted it; and `newest`: the last one, and when it was noted
-- ARGV  base, process
-- ARGV  keptMs     for how long lost tasks are noted
-- ARGV[4...]  for each task, its id and, after a blank, its caller, if it has one
--
-- Returns `[accepted: number, lost: string[]]`: how many tasks the queue has ever accepted, and the ids of the lost tasks that this process
-- has noted, now or before.
--- @include time

local accepted = tonumber(redis.call('HGET', totals, 'accepted') or '0')
if accepted > 0 and redis.call('EXISTS', events) == 0 then
  return { accepted, {} }
end
local missing = {}
for i = 4, #ARGV do
  local id, caller = string.match(ARGV[i], '^(%S+) ?(.*)$')
  local removed = id .. ' ' .. caller
  if
    redis.call('EXISTS', base .. id) == 0
    and not redis.call('ZSCORE', recentlyRemoved, removed)
    and not redis.call('ZSCORE', recentlyRemoved, removed .. ' r')
  then
    missing[id] = true
  end
end
if next(missing) == nil then
  return { accepted, {} }
end
for _, event in ipairs(redis.call('XRANGE', events, '-', '+')) do
  for i = 1, #event[2], 2 do
    if event[2][i] == 'jobId' then
      missing[event[2][i + 1]] = nil
    end
  end
end
local lost = {}
for id in pairs(missing) do
  if redis.call('HSETNX', lostTasks, id, process) == 1 then
    redis.call('HSET', lostTasks, 'newest', id .. ' ' .. whole(millis()))
  end
  if redis.call('HGET', lostTasks, id) == process then
    lost[#lost + 1] = id
  end
end
if #lost > 0 then
  redis.call('PEXPIRE', lostTasks, keptMs)
end
return { accepted, lost }

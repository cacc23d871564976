#!lua flags=allow-oom
-- Returns the tasks that have lost their worker to the queue, in two checks, as BullMQ does. A check marks the active tasks, and the
-- renewal of a task's lock removes its mark. A task that the next check finds marked and without a lock has lost its worker.
--
-- One run looks at a bounded number of tasks, so a check of many active tasks takes several runs: they first look at all marks, and then
-- mark the active tasks. If tasks end between two runs, others move in `active`, and a run may leave some of these unmarked until the
-- next check. A lost task whose data has been deleted leaves `active`, and returns nowhere.
--
-- KEYS  unrenewed
-- ARGV  base
-- ARGV  now        the time, in ms since 1970, or '' to read Redis's clock
-- ARGV  maxLosses  how often a task may lose its worker
-- ARGV  fencing    the leader's fencing number, or '' if a Worker checks
-- ARGV  checkMs    for how long no other Worker checks; '' for the leader, and for all but the first run of a Worker's check
-- ARGV  position   where the last run has stopped: the cursor of the marks, or '' if all were looked at, and how many tasks were marked. '0
--                  0' in the first run
--
-- Returns `[position: string, expiresInMs: number | null, unattached: string[], ...recovered: string[]]`:
--
-- - where the next run goes on, or '' if the check is complete
-- - in how many ms the first of the marked tasks' locks expires, if they have any
-- - for the leader, the id of each marked task that an unattached Worker holds, and the name that is stored as that Worker's, or ''
-- - the ids of the tasks that have returned
--
-- If there is a newer leader, or if another Worker has checked, nothing was written.
--- @include fence
--- @include given-time
--- @include lock
--- @include unmark
--- @include lost-attempts

-- How many marks one run looks at, and how many tasks it marks. So many of either take Redis about 0.3 ms.
local MARKS_AT_ONCE, MARKED_AT_ONCE = 500, 1000
-- How many tasks one run returns, and how many entries of `active` it may pass to find them. So many of either take Redis about 1 ms.
local RETURNED_AT_ONCE, MAX_PASSED = 50, 100000

local active = base .. 'active'
now = given_time(now)

local unattached = {}

-- Returns in how many ms the lock of a marked task expires: -1 if never, and -2 if it has none. Notes a Worker that was not attached.
local function left_of_marked(id)
  local job = base .. id
  local left = own_lock_left(job)
  if left then
    return left
  end
  left = redis.call('PTTL', job .. ':lock')
  if left ~= -2 and fencing ~= '' then
    unattached[#unattached + 1] = id
    unattached[#unattached + 1] = redis.call('HGET', job, 'pb') or ''
  end
  return left
end

-- Returns the lost tasks among a page of the marked ones, when the first lock of the others expires, and the cursor of the next page. It is
-- that of this page again if the page has too many lost tasks.
local function look_at_marks(cursor)
  local most = math.floor(MAX_PASSED / math.max(1, redis.call('LLEN', active)))
  most = math.max(1, math.min(most, RETURNED_AT_ONCE))
  local after, ids = unpack(redis.call('SSCAN', unrenewed, cursor, 'COUNT', MARKS_AT_ONCE))
  local lost, soonest = {}, nil
  for _, id in ipairs(ids) do
    local left = left_of_marked(id)
    if left >= 0 then
      soonest = math.min(soonest or left, left)
    elseif left == -2 and #lost == most then
      return lost, soonest, cursor
    elseif left == -2 then
      lost[#lost + 1] = read_lost(id)
    end
  end
  return lost, soonest, after == '0' and '' or after
end

-- The longest-running tasks are at the right end of the list. A scan may find a mark twice, and a marked task may have been removed by
-- another tool. A worker wakes even if the lanes of the tasks had others, because a place of the queue has become free.
local function return_all(lost)
  local returned = {}
  for _, task in ipairs(lost) do
    unmark(task.id)
    if redis.call('LREM', active, '-1', task.id) == 1 and task.exists then
      return_lost(task, now, tonumber(maxLosses))
      returned[#returned + 1] = task.id
    end
  end
  if #returned > 0 then
    redis.call('HINCRBY', base .. 'totals', 'recovered', #returned)
    if is_open() then
      redis.call('ZADD', base .. 'marker', '0', '0')
    end
  end
  return returned
end

-- Returns whether more tasks may be left to mark.
local function mark_active(marked)
  local ids = redis.call('LRANGE', active, -(marked + MARKED_AT_ONCE), -(marked + 1))
  if #ids > 0 then
    redis.call('SADD', unrenewed, unpack(ids))
  end
  return #ids == MARKED_AT_ONCE
end

if fencing ~= '' and is_deposed(base .. 'leader', fencing) then
  return { '', false, {} }
end
-- This key is Bullpen's own, so BullMQ's key `stalled-check` shows the leader that an unattached Worker uses the queue.
-- (../../leader/unattached-workers.ts)
if checkMs ~= '' and not redis.call('SET', base .. 'attached-check', now, 'PX', checkMs, 'NX') then
  return { '', false, {} }
end
-- The marks of an unattached Worker's check, which does not see Bullpen's locks, so that its next check takes no running task for lost.
if position == '0 0' then
  redis.call('DEL', base .. 'stalled')
end
local cursor, marked = string.match(position, '^(%d*) (%d+)$')
local lost, soonest = {}, nil
if cursor ~= '' then
  lost, soonest, cursor = look_at_marks(cursor)
end
local returned = return_all(lost)
if cursor ~= '' then
  return { cursor .. ' 0', soonest or false, unattached, unpack(returned) }
end
local has_more = mark_active(tonumber(marked))
return { has_more and ' ' .. whole(marked + MARKED_AT_ONCE) or '', soonest or false, unattached, unpack(returned) }

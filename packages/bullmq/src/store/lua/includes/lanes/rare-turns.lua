-- What turns need only from time to time (turns.lua).
--
-- resume_due(now)                         lets the lanes whose time has come take turns again: those in `lane-times`, and those of the
--                                         services there (gates.lua)
-- begin_again()                           gives each lane the pass 0. The lanes that wait for a limiter take turns again, and the other
--                                         blocked lanes stay blocked. O(n log n)
-- return_stray(id, lane, is_others_turn)  returns a task that has become active from `wait` to its lane. If that was the turn of the tasks
--                                         without a lane, gives it back to them
--
-- `base` is the prefix of the queue's keys.
--- @include blocked-lanes
--- @include gates

-- How many lanes take turns again at once, of those whose time has come and of each service.
local RESUMED_AT_ONCE = 32

local function resume_due(now)
  local times = base .. 'lane-times'
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', times, '-inf', now, 'LIMIT', 0, RESUMED_AT_ONCE)) do
    redis.call('ZREM', times, name)
    local pass = redis.call('ZSCORE', base .. 'blocked-lanes', name)
    if pass then
      resume_lane(name, pass)
    end
    if string.find(name, '^\30service:') then
      gates().resume(name, RESUMED_AT_ONCE)
    end
  end
end

local function begin_again()
  local turns, blocked = base .. 'turns', base .. 'blocked-lanes'
  for _, need in ipairs(redis.call('ZRANGE', base .. 'waited-needs', 0, -1)) do
    redis.call('ZDIFFSTORE', blocked, '2', blocked, base .. 'need-waiters:' .. need)
    redis.call('UNLINK', base .. 'need-waiters:' .. need)
  end
  redis.call('UNLINK', base .. 'waited-needs', base .. 'key-passes')
  redis.call('ZUNIONSTORE', blocked, '1', blocked, 'WEIGHTS', '0')
  redis.call('ZDIFFSTORE', turns, '2', base .. 'lanes', blocked)
  redis.call('ZUNIONSTORE', turns, '1', turns, 'WEIGHTS', '0')
  redis.call('HDEL', base .. 'turn-state', 'pass', 'time')
end

local function return_stray(id, lane, is_others_turn)
  --- @include lanes
  --- @include note-moved
  redis.call('LPOP', base .. 'active')
  if is_others_turn then
    redis.call('HINCRBYFLOAT', base .. 'turn-state', 'pass', '-1')
  end
  enter_lane(lane, id, 0, true)
  note_moved(id)
end

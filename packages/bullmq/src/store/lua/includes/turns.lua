-- Starts the next waiting task of a queue whose lanes take turns, or that limits something (lanes.lua).
--
-- Turns are stride scheduling. Each lane has a pass, and the lane with the smallest pass is next. When one of the lane's tasks starts,
-- 1 / weight is added to the pass, so a key with the weight 3 starts three tasks for each task of a key with the weight 1. The tasks
-- without a lane count as one more lane, with the weight 1: they start in BullMQ's order, and their pass is at most one turn behind that of
-- the lane that is next.
--
-- If the tasks of a key need different shares of limiters, the key has several lanes. They share its turns: a start of one of them begins
-- at the pass that the last start of the key has reached (`key-passes`), so a key with three lanes starts as many tasks as one with a
-- single lane.
--
-- A lane that was empty joins an eighth of a turn behind the lane that is next. If it joined exactly there, new keys whose names sort first
-- could hold up a lane whose name sorts last, because Redis orders equal passes by name.
--
-- While a lane has a task, passes only grow. Before they are so large that adding 1 / weight would be inexact, all lanes begin again at 0.
-- Otherwise, the passes of keys with a high weight would one day no longer change, and these keys would start all of their tasks first.
--
-- One script looks at no more than 32 lanes. If all of them are empty or blocked, but a further lane has a task, the script adds the
-- marker, so that a worker fetches again.
--
-- start_next(features, now)  makes the next task active, and returns its id, or nil if none may start from a lane or from `wait`; whether
--                            no further task may start until one ends, so that no worker has to wake; and whether a task of `prioritized`
--                            that starts instead has to be counted (active-tasks.lua). `features` are those that give_back has returned in
--                            the same script, or nil. `now` is in ms since 1970
--
-- The caller has checked that the queue is not paused, throttled or at its limits, and has moved the tasks that are due to where they wait.
-- A task that another tool has deleted is dropped. If another tool has put a task with a lane into `wait`, and the queue limits anything,
-- the task returns to its lane, because no limit applies in `wait`.
--- @include lanes
--- @include active-tasks
--- @include lane-turn
--- @include forget-turns

-- How many lanes one script looks at.
local MAX_LANES = 32
-- The pass at which all lanes begin again. Up to here, a turn of the smallest length, 0.001, is added with an error of 0.1 % at most.
local LAST_PASS = 0x100000000

-- Gives each lane the pass 0. The lanes that wait for a limiter take turns again, and the other blocked lanes stay blocked. O(n log n), at
-- most once in LAST_PASS turns.
local function begin_again()
  local turns, blocked = base .. 'turns', base .. 'blocked-lanes'
  for _, need in ipairs(redis.call('ZRANGE', base .. 'waited-needs', 0, -1)) do
    redis.call('ZDIFFSTORE', blocked, '2', blocked, base .. 'need-waiters:' .. need)
  end
  forget_waiters(base)
  redis.call('ZUNIONSTORE', blocked, '1', blocked, 'WEIGHTS', '0')
  redis.call('ZDIFFSTORE', turns, '2', base .. 'lanes', blocked)
  redis.call('ZUNIONSTORE', turns, '1', turns, 'WEIGHTS', '0')
  redis.call('UNLINK', base .. 'key-passes')
  redis.call('HDEL', base .. 'turn-state', 'pass', 'time')
end

-- Returns the name and the pass of the lane whose turn it is.
local function next_lane()
  local name, pass = unpack(redis.call('ZRANGE', base .. 'turns', 0, 0, 'WITHSCORES'))
  if name and tonumber(pass) >= LAST_PASS then
    begin_again()
    name, pass = unpack(redis.call('ZRANGE', base .. 'turns', 0, 0, 'WITHSCORES'))
  end
  return name, tonumber(pass)
end

-- Returns whether the tasks without a lane come before a lane with this pass. If so, counts their turn.
local function take_turn_of_others(pass)
  local state = base .. 'turn-state'
  local own = math.max(tonumber(redis.call('HGET', state, 'pass')) or pass, pass - 1)
  if own > pass then
    return false
  end
  redis.call('HSET', state, 'pass', own + 1)
  return true
end

-- Makes the next task of the lane whose turn it is active. Returns its id, or nil if no task in a lane may start; whether it is the turn of
-- the tasks without a lane; and whether the task's lane continues to take turns.
local function take_turn(obstacles)
  for _ = 1, MAX_LANES do
    local name, pass = next_lane()
    if not name then
      return nil, false
    end
    if obstacles.has_others and take_turn_of_others(pass) then
      return nil, true
    end
    local turn = open_turn(name, pass, obstacles)
    if not holds_up(turn) then
      local id = take_head(turn)
      local lane = id and redis.call('HGET', base .. id, 'lane')
      if lane then
        return id, false, end_turn(turn, id, lane, obstacles)
      elseif id then
        redis.call('LPOP', base .. 'active')
      end
      if not id and not obstacles.has_others and redis.call('EXISTS', base .. 'lanes') == 0 then
        uncount_turn(turn)
        return nil, false
      end
    end
    uncount_turn(turn)
  end
  return nil, false
end

-- Is called when no lane has started a task. Forgets the turns if no lane is left in them or no task waits, and adds the marker if there
-- are lanes left to look at.
local function note_none(obstacles)
  local lanes = base .. 'lanes'
  local remaining = redis.call('EXISTS', base .. 'turns', lanes, lanes)
  if remaining == 0 or remaining == 1 and not obstacles.has_others then
    forget_turns(base)
  elseif remaining == 3 then
    redis.call('ZADD', base .. 'marker', '0', '0')
  end
end

-- Lets the lanes whose time has come take turns again, and the lanes of the services whose time has come.
local function resume_due(now)
  local due = redis.call('ZRANGEBYSCORE', base .. 'lane-times', '-inf', now, 'LIMIT', '0', MAX_LANES)
  for _, name in ipairs(due) do
    redis.call('ZREM', base .. 'lane-times', name)
    local pass = redis.call('ZSCORE', base .. 'blocked-lanes', name)
    if pass then
      resume_lane(name, pass)
    end
    if string.find(name, '^\30service:') then
      gates().resume(name, MAX_LANES)
    end
  end
end

local function start_next(features, now)
  -- A lane may have got its first task since the last task ended, so that an even number is not reliable.
  if not features or features % 2 == 0 then
    features = read_features()
  end
  local wait, active, obstacles = base .. 'wait', base .. 'active', nil
  for _ = 1, MAX_LANES do
    obstacles = read_obstacles(features)
    if obstacles.has_times then
      resume_due(now)
    end
    local id, is_turn_of_others, takes_turns_on = take_turn(obstacles)
    if id then
      local is_last = obstacles.is_counted and not takes_turns_on
      local others = base .. 'prioritized'
      return id,
        is_last and redis.call('EXISTS', base .. 'turns', wait, others, base .. 'delayed', base .. 'lane-times') == 0
    end
    if not is_turn_of_others then
      note_none(obstacles)
    end
    id = redis.call('RPOPLPUSH', wait, active)
    local lane = id and obstacles.is_counted and redis.call('HGET', base .. id, 'lane')
    if not lane then
      return id, false, not id and obstacles.is_counted
    end
    redis.call('LPOP', active)
    if is_turn_of_others then
      redis.call('HINCRBYFLOAT', base .. 'turn-state', 'pass', '-1')
    end
    enter_lane(lane, id, 0, true)
  end
  redis.call('ZADD', base .. 'marker', '0', '0')
  return nil, false, obstacles.is_counted
end

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
--                            no further one may start from there until a task ends, so that no worker has to wake; and whether a task of
--                            `prioritized` that starts instead has to be counted (held-places.lua). `features` are those that give_back
--                            has returned in the same script, or nil. `now` is in ms since 1970
--
-- The caller has checked that the queue is not paused, throttled or at its limits, and has moved the tasks that are due to where they wait.
-- A task that another tool has deleted is dropped. If another tool has put a task with a lane into `wait`, and the queue limits anything,
-- the task returns to its lane, because no limit applies in `wait`.
--- @include give-back
--- @include leave-lane
--- @include forget-turns

-- How many lanes one script looks at.
local MAX_LANES = 32
-- The pass at which all lanes begin again. Up to here, a turn of the smallest length, 0.001, is added with an error of 0.1 % at most.
local LAST_PASS = 0x100000000

-- Makes the next task of a lane active, and returns its id. A lane without a task leaves the turns.
local function take_head(name)
  local active = base .. 'active'
  local id = redis.call('RPOPLPUSH', lane_list(base, name), active)
  if not id then
    id = redis.call('ZPOPMIN', lane_priorities(base, name))[1]
    if not id then
      redis.call('ZREM', base .. 'turns', name)
      return nil
    end
    redis.call('LPUSH', active, id)
  end
  note_left_lane(name, 1)
  return id
end

-- Makes the next task of the lane whose turn it is active. Returns its id, or nil if no task in a lane may start; whether it is the turn of
-- the tasks without a lane, which they have then taken; and whether the task's lane continues to take turns. The functions of limited() are
-- used only if something may limit the lane.
local function take_turn(obstacles)
  local turns, state = base .. 'turns', base .. 'turn-state'
  for _ = 1, MAX_LANES do
    local name, pass = unpack(redis.call('ZRANGE', turns, 0, 0, 'WITHSCORES'))
    if name and tonumber(pass) >= LAST_PASS then
      limited().begin_again()
      name, pass = unpack(redis.call('ZRANGE', turns, 0, 0, 'WITHSCORES'))
    end
    if not name then
      return nil, false
    end
    pass = tonumber(pass)
    if obstacles.has_others then
      local own = math.max(tonumber(redis.call('HGET', state, 'pass')) or pass, pass - 1)
      if own <= pass then
        redis.call('HSET', state, 'pass', own + 1)
        return nil, true
      end
    end
    local _, needs = split_lane(name)
    local turn = (needs or obstacles.limits_lanes) and limited().open_turn(name, pass, obstacles) or nil
    local is_empty = false
    if not turn or not limited().holds_up(turn) then
      local id = take_head(name)
      local lane = id and redis.call('HGET', base .. id, 'lane')
      if lane and turn then
        return id, false, limited().end_turn(turn, id, lane, obstacles)
      elseif lane then
        redis.call('ZADD', turns, pass + 1 / lane_weight(lane), name)
        return id, false, true
      elseif id then
        redis.call('LPOP', base .. 'active')
      end
      is_empty = not id
    end
    if turn then
      limited().end_idle_turn(turn, is_empty)
    end
    if is_empty and not obstacles.has_others and redis.call('EXISTS', base .. 'lanes') == 0 then
      return nil, false
    end
  end
  return nil, false
end

local function start_next(features, now)
  -- A lane may have got its first task since the last task ended, so that an even number is not reliable.
  if not features or features % 2 == 0 then
    features = read_features()
  end
  local wait, prioritized, turns, lanes = base .. 'wait', base .. 'prioritized', base .. 'turns', base .. 'lanes'
  local obstacles
  for _ = 1, MAX_LANES do
    obstacles = read_obstacles(features)
    if obstacles.has_times then
      limited().resume_due(now)
    end
    local id, is_turn_of_others, takes_turns_on = take_turn(obstacles)
    if id then
      local is_last = obstacles.is_counted and not takes_turns_on
      local delayed, times = base .. 'delayed', base .. 'lane-times'
      return id, is_last and redis.call('EXISTS', turns, wait, prioritized, delayed, times) == 0
    end
    local remaining = not is_turn_of_others and redis.call('EXISTS', turns, lanes, lanes)
    if remaining == 0 or remaining == 1 and not obstacles.has_others then
      forget_turns(base)
    elseif remaining == 3 then
      redis.call('ZADD', base .. 'marker', '0', '0')
    end
    id = redis.call('RPOPLPUSH', wait, base .. 'active')
    local lane = id and obstacles.is_counted and redis.call('HGET', base .. id, 'lane')
    if not lane then
      return id, not id and remaining and remaining ~= 3, not id and obstacles.is_counted
    end
    limited().return_stray(id, lane, is_turn_of_others)
  end
  redis.call('ZADD', base .. 'marker', '0', '0')
  return nil, false, obstacles.is_counted
end

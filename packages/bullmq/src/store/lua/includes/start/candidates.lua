-- Starts one of some given tasks instead of the next one. A consumer that runs only one group sends the ids of these tasks (engine,
-- pool/group-candidates.ts).
--
-- start_candidate(ids, now) makes one of the tasks active, and returns its id, or nil if none of them may start. `ids` are separated by
-- blanks. `now` is in ms since 1970. The caller has checked that the queue is not paused, throttled or at its limits, and has moved the
-- tasks that are due to where they wait. `base` is the prefix of the queue's keys.
--
-- As in BullMQ, tasks without a priority come first. A task that is locked, delayed or active, or that has ended, is not searched for in
-- the list of waiting tasks, because the search would pass the whole list. Looking at a candidate takes about 1 µs if it does not wait, and
-- 3 µs if it waits but may not start, because each lane is examined only once. One task is then removed from the list of waiting tasks. To
-- find it, Redis passes all older tasks, which takes about 1 ms for every 100,000 of them.
--
-- Like a fetch without candidates, this lets the lanes whose time has come take turns again, and blocks the lane of a candidate whose key
-- may not start a task before some time. The worker then waits until the earliest of these times, and never for a time that has passed.
-- Because it is not the lane's turn, its pass is not taken as the pass that all lanes have reached. A candidate does not wait behind the
-- lanes that wait for the same limiters, because these may have only tasks that no worker runs at the moment.
--- @include queue-features
--- @include lane-turn
--- @include rare-turns
--- @include leave-lane
--- @include leave-list
--- @include lock
--- @include forget-turns

-- Blocks a lane that takes turns if it may not start a task before some time. Its tickets go back, as in a turn (lane-turn.lua).
local function hold_until(lane)
  local pass = lane.starts_at and redis.call('ZSCORE', base .. 'turns', lane.name)
  if not pass then
    return
  end
  if lane.needs then
    limiters().leave_waiters(lane.name, lane.key, lane.needs)
  end
  block_lane(lane.name, pass)
  redis.call('ZADD', base .. 'lane-times', whole(lane.starts_at), lane.name)
end

-- Returns whether the lane in a task's field `lane` may start no task.
local function is_lane_held(field, obstacles)
  local lane = read_lane(lane_name(field), obstacles)
  if lane.needs then
    gates().note_closed(lane.needs)
  end
  hold_until(lane)
  local is_at_limit = lane.starts_at or lane.limit and active_of_key(lane.key) >= lane.limit
  return is_at_limit or lane.needs and limiters().is_full(lane.needs) or false
end

-- Counts the start of a task that was taken from its lane outside of the lane's turn. The pass of a blocked lane stays as it is.
local function leave_for_start(id, field, obstacles)
  local lane = read_lane(lane_name(field), obstacles)
  local name, needs = lane.name, lane.needs
  redis.call('ZADD', base .. 'turns', 'XX', 'INCR', 1 / lane_weight(field), name)
  if lane.rate then
    count_key_start(lane.rate)
    lane.starts_at = key_starts_at(lane.key, lane.rate, false)
  end
  if needs and redis.call('ZSCORE', base .. 'turns', name) then
    limiters().leave_waiters(name, lane.key, needs)
  end
  hold_until(lane)
  if needs and string.find(needs, 'service:', 1, true) then
    gates().admit(id, needs)
  end
end

-- Takes the first candidate without a priority that may start out of its lane or out of `wait`. Returns its id; or nil and, if there is
-- one, the candidate with the highest priority in `prioritized`.
local function take_candidate(ids, obstacles, places)
  local is_examined = obstacles.is_counted or obstacles.has_throttles
  local is_held, first, lowest = {}, nil, nil
  for id in string.gmatch(ids, '%S+') do
    local score = places.has_set and tonumber(redis.call('ZSCORE', base .. 'prioritized', id))
    if score and (not lowest or score < lowest) then
      first, lowest = id, score
    elseif not score and places.has_list then
      local enqueued_at, ended_at, lane, lock =
        unpack(redis.call('HMGET', base .. id, 'timestamp', 'finishedOn', 'lane', 'lock'))
      local may_start = enqueued_at and not ended_at and not owner_of(lock)
      if may_start and lane and is_examined then
        if is_held[lane] == nil then
          is_held[lane] = is_lane_held(lane, obstacles)
        end
        may_start = not is_held[lane]
      end
      local waits = may_start
        and not redis.call('ZSCORE', base .. 'delayed', id)
        and not redis.call('LPOS', base .. 'active', id)
      if waits and lane and places.has_lanes and leave_lane(lane, id) then
        leave_for_start(id, lane, obstacles)
        return id
      end
      if waits and leave_list(base .. 'wait', id) then
        return id
      end
    end
  end
  return nil, first
end

local function start_candidate(ids, now)
  local obstacles = read_obstacles(read_features())
  if obstacles.has_times then
    resume_due(now)
  end
  local has_lanes = redis.call('EXISTS', base .. 'lanes') == 1
  local places = { has_set = redis.call('EXISTS', base .. 'prioritized') == 1, has_lanes = has_lanes }
  places.has_list = has_lanes or redis.call('EXISTS', base .. 'wait') == 1
  if not places.has_set and not places.has_list then
    forget_turns(base)
    return nil
  end
  local id, first = take_candidate(ids, obstacles, places)
  if not id and first then
    redis.call('ZREM', base .. 'prioritized', first)
    id = first
  end
  if not id then
    return nil
  end
  redis.call('LPUSH', base .. 'active', id)
  if obstacles.is_counted then
    hold_places(id)
  end
  return id
end

-- Takes tasks out of their lanes (lanes.lua). `base` is the prefix of the queue's keys.
--
-- note_left_lane(name, count)  notes that this many tasks have left a lane. If the lane has become empty while it was blocked, and its
--                              tasks had needs, it takes turns again, so that the next fetch gives its tickets back (tickets.lua)
-- leave_lane(lane, id)         removes a task with this field `lane` from its lane. Returns whether it was there
--- @include lane
--- @include leave-list

local function note_left_lane(name, count)
  redis.call('HINCRBY', base .. 'turn-state', 'waiting', -count)
  if redis.call('EXISTS', lane_list(base, name), lane_priorities(base, name)) > 0 then
    return
  end
  redis.call('ZREM', base .. 'lanes', name)
  local pass = string.find(name, '\30', 1, true) and redis.call('ZSCORE', base .. 'blocked-lanes', name)
  if pass then
    redis.call('ZREM', base .. 'blocked-lanes', name)
    redis.call('ZREM', base .. 'lane-times', name)
    redis.call('ZADD', base .. 'turns', pass, name)
    redis.call('ZADD', base .. 'marker', '0', '0')
  end
end

local function leave_lane(lane, id)
  local name = lane_name(lane)
  if redis.call('ZREM', lane_priorities(base, name), id) == 0 and not leave_list(lane_list(base, name), id) then
    return false
  end
  note_left_lane(name, 1)
  return true
end

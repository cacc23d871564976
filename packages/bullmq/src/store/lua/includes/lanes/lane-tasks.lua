-- The tasks of a lane. `base` is the prefix of the queue's keys.
--
-- lane_length(base, name)  how many tasks are in the lane
-- lane_head(base, name)    the id of the lane's next task, or nil
--- @include lane

local function lane_length(base, name)
  return redis.call('LLEN', lane_list(base, name)) + redis.call('ZCARD', lane_priorities(base, name))
end

local function lane_head(base, name)
  return redis.call('LINDEX', lane_list(base, name), -1) or redis.call('ZRANGE', lane_priorities(base, name), 0, 0)[1]
end

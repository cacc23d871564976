-- The names and keys of lanes, which lanes.lua describes. `base` is the prefix of the queue's keys.
--
-- lane_name(field)             the name of the lane in a task's field `lane`
-- lane_weight(field)           the weight of the task's turn in its field `lane`
-- split_lane(name)             the concurrency key and the needs in a lane's name. The key is '' if the lane's tasks have none, and the
--                              needs are nil if they need nothing
-- lane_list(base, name)        the key of the lane's list
-- lane_priorities(base, name)  the key of the sorted set of the lane's tasks with a priority
local function lane_name(field)
  return string.match(field, ' (.*)$')
end
local function lane_weight(field)
  return tonumber(string.match(field, '^%S+'))
end
local function split_lane(name)
  if not string.find(name, '\30', 1, true) then
    return name, nil
  end
  return string.match(name, '^(.*)\30([^\30]*)$')
end
local function lane_list(base, name)
  return base .. 'lane:' .. name
end
local function lane_priorities(base, name)
  return base .. 'lane-priorities:' .. name
end

-- next_task(base) returns the id of the waiting task that starts next, or nil, without taking it. O(1). `base` is the prefix of the queue's
-- keys. See turns.lua.
--- @include lane-tasks

-- How many lanes are examined. Further lanes would matter only if all of these were empty lanes whose turn has come, which a start skips.
local EXAMINED_LANES = 32

local function next_task(base)
  -- BullMQ starts the tasks without a priority first.
  local other = redis.call('LINDEX', base .. 'wait', -1) or redis.call('ZRANGE', base .. 'prioritized', 0, 0)[1]
  if redis.call('EXISTS', base .. 'lanes') == 0 then
    return other
  end
  local turns = redis.call('ZRANGE', base .. 'turns', 0, EXAMINED_LANES - 1, 'WITHSCORES')
  local own = tonumber(redis.call('HGET', base .. 'turn-state', 'pass') or turns[2])
  for i = 1, #turns, 2 do
    local pass = tonumber(turns[i + 1])
    if other and math.max(own, pass - 1) <= pass then
      return other
    end
    local id = lane_head(base, turns[i])
    if id then
      return id
    end
  end
  return other
end

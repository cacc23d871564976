-- spill_lanes() moves all tasks out of their lanes to BullMQ's own places, for BullMQ's scripts that delete all waiting jobs. O(n), like
-- them.
--- @include lane
--- @include forget-turns

-- How many tasks one command moves. Lua passes fewer than 8,000 values to a function.
local SPILLED_AT_ONCE = 1000

local function spill_lanes()
  for _, name in ipairs(redis.call('ZRANGE', base .. 'lanes', 0, -1)) do
    local list, priorities = lane_list(base, name), lane_priorities(base, name)
    repeat
      local ids = redis.call('RPOP', list, SPILLED_AT_ONCE)
      if ids then
        redis.call('LPUSH', base .. 'wait', unpack(ids))
      end
    until not ids
    repeat
      local ids = redis.call('ZPOPMIN', priorities, SPILLED_AT_ONCE)
      for i = 1, #ids, 2 do
        redis.call('ZADD', base .. 'prioritized', ids[i + 1], ids[i])
      end
    until #ids == 0
  end
  redis.call('UNLINK', base .. 'lanes')
  forget_turns(base)
end

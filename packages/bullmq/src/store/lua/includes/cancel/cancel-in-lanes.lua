-- cancel_in_lanes(lanes, from, before, limit) scans a page of the tasks in lanes for those that match a cancel rule, and ends them. It
-- looks at one lane after the other until it has examined `limit` tasks. Returns the next position and the id of the task before it.
--
-- A position consists of the lane's score in `lanes`, of 'l' for the lane's list or 'p' for its tasks with a priority, and of the position
-- there (cancel-in-place.lua).
--- @include cancel-in-place
--- @include leave-lane

local function cancel_in_lane(name, part, from, before, limit)
  local ended_before = #ended
  local scan = part == 'l' and cancel_in_list or cancel_in_set
  local key = part == 'l' and lane_list(base, name) or lane_priorities(base, name)
  local next_from, next_before, examined = scan(key, 'lanes', from, before, limit)
  local count = (#ended - ended_before) / 2
  if count > 0 then
    note_left_lane(name, count)
  end
  return next_from, next_before, examined
end

local function cancel_in_lanes(lanes, from, before, limit)
  local order, part, rest = string.match(from, '^([^ ]+) (%a) (.*)$')
  while limit > 0 do
    local range = { order or '-inf', '+inf', 'WITHSCORES', 'LIMIT', 0, 1 }
    local name, found = unpack(redis.call('ZRANGEBYSCORE', lanes, unpack(range)))
    if not name then
      return '', ''
    end
    if found ~= order then
      order, part, rest, before = found, 'l', '', ''
    end
    local next_from, next_before, examined = cancel_in_lane(name, part, rest, before, limit)
    limit = limit - examined
    if next_from ~= '' then
      return order .. ' ' .. part .. ' ' .. next_from, next_before
    end
    rest, before = '', ''
    if part == 'l' then
      part = 'p'
    else
      order = '(' .. order
    end
  end
  return order .. ' ' .. part .. ' ', ''
end

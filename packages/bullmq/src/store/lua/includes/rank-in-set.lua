-- rank_in(set, score, id) returns how many members of a sorted set come before a position, or are at it.
--
-- A position is a score and an id. The members before and after it are known from the set's order, although the member at the position
-- may have left the set. A binary search among the members with the same score takes O((log n)²) steps for n members, which are seventeen
-- reads of one member each if 100,000 members have the same score.
--- @include is-after

local function rank_in(set, score, id)
  local first = redis.call('ZCOUNT', set, '-inf', '(' .. score)
  local beyond = first + redis.call('ZCOUNT', set, score, score)
  while first < beyond do
    local middle = math.floor((first + beyond) / 2)
    if is_after(redis.call('ZRANGE', set, middle, middle)[1], id) then
      beyond = middle
    else
      first = middle + 1
    end
  end
  return first
end

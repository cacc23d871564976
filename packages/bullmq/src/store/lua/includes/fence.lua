-- is_deposed(leader, fencing) returns whether a newer leader has worked on the queue, and otherwise stores this leader's number. `leader`
-- is the key of the queue's highest number.
--
-- A leader that was paused or cut off may come back after another process has taken over. Each of the leader's scripts therefore
-- compares the leader's fencing number with the queue's before it does its work.
local function is_deposed(leader, fencing)
  local highest = tonumber(redis.call('GET', leader) or '0')
  if highest > tonumber(fencing) then
    return true
  end
  if highest < tonumber(fencing) then
    redis.call('SET', leader, fencing)
  end
  return false
end

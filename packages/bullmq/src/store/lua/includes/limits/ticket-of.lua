-- ticket_of(base, name, key, needs) returns the first limiter for which a lane has a ticket (tickets.lua), 'key' if it waits for its
-- concurrency key, or nil. `name`, `key` and `needs` are those of the lane.
local function ticket_of(base, name, key, needs)
  local waiters = base .. 'need-waiters:'
  if redis.call('ZSCORE', waiters .. 'key:' .. key .. '=1', name) then
    return 'key'
  end
  for limiter, amount in string.gmatch(needs, '([^,]+)=(%d+)') do
    if redis.call('ZSCORE', waiters .. limiter .. '=' .. amount, name) then
      return limiter
    end
  end
end

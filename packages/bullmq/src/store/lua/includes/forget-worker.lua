-- forget_worker(base, worker, now) removes a worker from the fleet. It responds `gone` to up to 100 of the worker's pending commands.
-- Returns whether the worker was removed; if not, it has more pending commands. `base` is the prefix of the fleet's keys, and `now`
-- is in ms since 1970.
--- @include time
local COMMANDS_AT_ONCE = 100

local function forget_worker(base, worker, now)
  local inbox = base .. 'inbox:' .. worker
  local pending = redis.call('ZRANGE', inbox, 0, COMMANDS_AT_ONCE - 1)
  for _, id in ipairs(pending) do
    local command = base .. 'command:' .. id
    redis.call('ZREM', inbox, id)
    if redis.call('HGET', command, 'response:' .. worker) == 'pending' then
      redis.call('HSET', command, 'response:' .. worker, '{"outcome":"gone","at":' .. whole(now) .. '}')
      redis.call('PUBLISH', base .. 'responses', id)
    end
  end
  if #pending == COMMANDS_AT_ONCE then
    return false
  end
  redis.call('DEL', inbox, base .. 'worker:' .. worker)
  redis.call('ZREM', base .. 'heartbeats', worker)
  return true
end

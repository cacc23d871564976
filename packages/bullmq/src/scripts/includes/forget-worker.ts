// Defines a Lua function that removes a worker from the fleet.

/** The maximum number of one worker's commands that a script responds to. */
const COMMANDS_PER_SCRIPT = 100

/**
 * `forget_worker(base, worker, now)` responds to up to 100 of the worker's pending commands with `gone`, and removes the worker if it
 * has no more pending commands. Returns whether the worker was removed. `base` is the prefix of the fleet's keys. Needs the
 * functions of TIME.
 */
export const FORGET_WORKER = `
local function forget_worker(base, worker, now)
  local inbox = base .. 'inbox:' .. worker
  local pending = redis.call('ZRANGE', inbox, 0, ${COMMANDS_PER_SCRIPT - 1})
  for _, id in ipairs(pending) do
    local command = base .. 'command:' .. id
    redis.call('ZREM', inbox, id)
    if redis.call('HGET', command, 'response:' .. worker) == 'pending' then
      redis.call('HSET', command, 'response:' .. worker, '{"outcome":"gone","at":' .. whole(now) .. '}')
      redis.call('PUBLISH', base .. 'responses', id)
    end
  end
  if #pending == ${COMMANDS_PER_SCRIPT} then return false end
  redis.call('DEL', inbox, base .. 'worker:' .. worker)
  redis.call('ZREM', base .. 'heartbeats', worker)
  return true
end
`

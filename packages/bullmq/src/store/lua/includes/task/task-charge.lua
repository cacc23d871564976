-- What a task adds to its queue's totals from its enqueue until its end.
--
-- stored_bytes_of(job, at_end)       returns the size of a stored task, and its field `atEnd`
-- count_for_key(home, at_end, sign)  counts a task for its API key, if it has one. Returns whether its end may add to the outbox
-- charge(home, job, sign, at_end)    charges for a task if `sign` is 1, and refunds its charge if it is -1. Returns the same
--
-- `job` is the task's key, and `home` the prefix of its queue's keys. `at_end` is the task's field of that name, false if it has none,
-- or nil if it has to be read.
--
-- A task is charged for when it is added, and again if it returns to its queue after it has ended. The charge is refunded when the task
-- ends, or when it is deleted before its end. Starts, retries and requeues do not change the charge. The field `bytes` of the totals is the
-- sum of the sizes of the charged tasks' stored texts, plus an overhead for each task.
--
-- The task's field `atEnd` says what its end implies: a mark, '+' if its end may add to the outbox and '-' otherwise, and then the name
-- of the API key for which the task is counted, if any. The hash `api-key-tasks` counts each key's charged tasks. Most tasks have no
-- such field.
local TASK_OVERHEAD_BYTES = 512

local function stored_bytes_of(job, at_end)
  if at_end == nil then
    at_end = redis.call('HGET', job, 'atEnd')
  end
  local bytes = redis.call('HSTRLEN', job, 'data') + TASK_OVERHEAD_BYTES
  if at_end and string.sub(at_end, 1, 1) == '+' then
    bytes = bytes + redis.call('HSTRLEN', job, 'followUps') + redis.call('HSTRLEN', job, 'compensations')
  end
  return bytes, at_end
end

local function count_for_key(home, at_end, sign)
  if not at_end then
    return false
  end
  local name = string.sub(at_end, 2)
  if name ~= '' and redis.call('HINCRBY', home .. 'api-key-tasks', name, sign) <= 0 then
    redis.call('HDEL', home .. 'api-key-tasks', name)
  end
  return string.sub(at_end, 1, 1) == '+'
end

local function charge(home, job, sign, at_end)
  local bytes
  bytes, at_end = stored_bytes_of(job, at_end)
  redis.call('HINCRBY', home .. 'totals', 'bytes', sign * bytes)
  return count_for_key(home, at_end, sign)
end

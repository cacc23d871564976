-- place_job(home, id, job) puts a job into the place where it waits for a worker, when a team adds it (own-job.lua), or when it is the
-- parent of a flow whose children have ended. `home` is the prefix of the keys of the job's queue, which may be another queue than the
-- script's. Such a job has no lane. Unlike place-task.lua, it writes everything at once. `job` is a table of:
--
--   due       when the job is due, in ms since 1970, or nil
--   part      the set of its status while it is delayed: `scheduled` or `retrying`, or nil if the queue is not one of Bullpen's
--   priority  0 if it has none
--   to_head   whether it starts before the others in `wait`, if it has no priority
--   from      where it has waited before, or nil
--
-- delay_job(home, id, due, part) does so with a delayed job.
--
-- split_job_key(key) returns the prefix of the keys of a job's queue, and the job's id. Only the ids of job schedulers' jobs have colons.
--- @include time
--- @include bullmq-event
--- @include delayed-set
--- @include priority-score

local function delay_job(home, id, due, part)
  enter_delayed(home, id, due, part)
  add_move_event_of(home, 'delayed', id, 'delay', whole(due))
  redis.call('ZADD', home .. 'marker', whole(next_due(home)), '1')
end

-- Decides for any queue what is_open decides for the script's own (queue-meta.lua).
local function may_start_job(home)
  local paused, concurrency = unpack(redis.call('HMGET', home .. 'meta', 'paused', 'concurrency'))
  return not paused and not (concurrency and redis.call('LLEN', home .. 'active') >= tonumber(concurrency))
end

local function split_job_key(key)
  local home, id = string.match(key, '^(.*:)(repeat:[^:]+:%d+)$')
  if home then
    return home, id
  end
  return string.match(key, '^(.*:)(.*)$')
end

local function place_job(home, id, job)
  if job.due then
    return delay_job(home, id, job.due, job.part)
  end
  if job.priority ~= 0 then
    redis.call('ZADD', home .. 'prioritized', priority_score(job.priority, redis.call('INCR', home .. 'pc')), id)
  else
    redis.call(job.to_head and 'RPUSH' or 'LPUSH', home .. 'wait', id)
  end
  if may_start_job(home) then
    redis.call('ZADD', home .. 'marker', '0', '0')
  end
  local from = job.from and { 'prev', job.from } or {}
  add_move_event_of(home, 'waiting', id, unpack(from))
end

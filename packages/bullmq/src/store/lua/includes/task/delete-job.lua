-- delete_job(base, id)  deletes what is stored of a task, which the caller has taken out of its place. Counts the task as removed, and
--                       remembers it for a short time, in case the script that adds it is sent again
-- delete_keys(job)      only deletes the job's hash, and the keys that BullMQ stores beside it. Returns whether there were any
--- @include removed-tasks

local function delete_keys(job)
  local children = { job .. ':dependencies', job .. ':processed', job .. ':failed', job .. ':unsuccessful' }
  return redis.call('DEL', job, job .. ':logs', unpack(children)) > 0
end

local function delete_job(base, id)
  local job = base .. id
  local enqueued_at, caller, replaced = unpack(redis.call('HMGET', job, 'timestamp', 'caller', 'replaced'))
  if enqueued_at or redis.call('EXISTS', job) == 1 then
    redis.call('HINCRBY', base .. 'totals', 'removed', 1)
  end
  if enqueued_at then
    remember_removal(base, id .. ' ' .. (caller or '') .. (replaced and ' r' or ''), tonumber(enqueued_at) or 0)
  end
  return delete_keys(job)
end

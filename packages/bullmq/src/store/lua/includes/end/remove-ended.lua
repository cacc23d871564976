-- Removes tasks that have ended: because their retention is over, because they are not kept at all, or because a request deletes dead
-- tasks.
--
-- leave_parent(job, parent)                        lets the parent of a flow no longer wait for a child that is removed. A parent that
--                                                  waits for no other child then waits for a worker. `job` and `parent` are their keys,
--                                                  and `parent` is false or nil if the job has none
-- detach_child(job, parent)                        does the same, but leaves such a parent in no place, and returns the prefix of its
--                                                  queue's keys and its id, so that the caller places or deletes it; or nil
-- remove_ended_task(base, status, id)              removes a task with this final status
-- remove_ended(base, status, since, count, limit)  removes up to `limit` tasks with one final status, those that ended first, until every
--                                                  remaining one ended at `since` (ms since 1970) or later, and at most `count` remain. If
--                                                  `since` or `count` is '', that limit does not apply. Returns how many it has removed.
--                                                  O(log n + removed tasks)
--
-- A failed child of a flow stays among the dependencies of its parent, unless the child's options say otherwise. If such a child is
-- removed, the parent no longer waits for it, as in BullMQ. Otherwise, it would wait forever for a task that no longer exists.
--- @include place-job
--- @include failed-set
--- @include delete-job

local function detach_child(job, parent)
  local dependencies = parent and parent .. ':dependencies'
  if not parent or redis.call('SREM', dependencies, job) == 0 or redis.call('EXISTS', dependencies) == 1 then
    return nil
  end
  local home, id = split_job_key(parent)
  if redis.call('ZREM', home .. 'waiting-children', id) == 0 then
    return nil
  end
  return home, id
end

local function leave_parent(job, parent)
  local home, id = detach_child(job, parent)
  if home then
    place_job(home, id, { priority = 0, to_head = true, from = 'waiting-children' })
  end
end

local function remove_ended_task(base, status, id)
  if status == 'completed' then
    redis.call('ZREM', base .. 'completed', id)
  else
    leave_parent(base .. id, redis.call('HGET', base .. id, 'parentKey'))
    leave_failed(base, id)
  end
  delete_job(base, id)
end

local function remove_ended(base, status, since, count, limit)
  local set = base .. status
  local old = since ~= '' and redis.call('ZRANGEBYSCORE', set, '-inf', '(' .. since, 'LIMIT', 0, limit) or {}
  if count ~= '' and #old < limit then
    local excess = math.min(redis.call('ZCARD', set) - count, limit)
    if excess > #old then
      old = redis.call('ZRANGE', set, 0, excess - 1)
    end
  end
  for _, id in ipairs(old) do
    remove_ended_task(base, status, id)
  end
  return #old
end

// Defines Lua functions that remove ended tasks: those that are no longer kept, or a single one. The scripts that end tasks use
// the functions, and so do the leader and the scripts that delete dead tasks.

/**
 * `remove_ended_task(index, base, status, id)` removes one task with this final status.
 *
 * `remove_ended(index, base, status, since, count, limit)` removes up to `limit` tasks with one final status, those that ended
 * first, until every remaining task ended at `since` (ms since 1970) or later, and at most `count` tasks remain. If `since` or
 * `count` is '', that limit does not apply. Returns the number of tasks that were removed. `index` is that of
 * `status_index(base)` (../../../internals/status/status-index.ts), which counts the removed tasks.
 *
 * A failed child of a flow remains among the dependencies of its parent, unless the child's options say otherwise. When BullMQ
 * removes such a child, the parent no longer waits for it. The function does the same, because the parent would otherwise wait
 * forever for a task that no longer exists.
 *
 * Takes O(log n) time, plus the time to remove the tasks.
 */
export const REMOVE_ENDED = `
local function remove_ended_task(index, base, status, id)
  local call, set, job = redis.call, base .. status, base .. id
  local parent = status ~= 'completed' and call('HGET', job, 'parentKey')
  local dependencies = parent and parent .. ':dependencies'
  if parent and call('SREM', dependencies, job) == 1 and call('EXISTS', dependencies) == 0 then
    local home, parent_id = string.match(parent, '^(.*:)(.*)$')
    if call('ZREM', home .. 'waiting-children', parent_id) == 1 then
      call('RPUSH', home .. 'wait', parent_id)
      if call('HEXISTS', home .. 'meta', 'paused') == 0 then call('ZADD', home .. 'marker', 0, '0') end
      call('XADD', home .. 'events', '*', 'event', 'waiting', 'jobId', parent_id, 'prev', 'waiting-children')
    end
  end
  index.watch('DEL', job, job .. ':logs', job .. ':dependencies', job .. ':processed', job .. ':failed', job .. ':unsuccessful')
  index.watch('ZREM', status == 'completed' and set or base .. 'failed', id)
end
local function remove_ended(index, base, status, since, count, limit)
  local call, set = redis.call, base .. status
  local old = since ~= '' and call('ZRANGEBYSCORE', set, '-inf', '(' .. since, 'LIMIT', 0, limit) or {}
  if count ~= '' and #old < limit then
    local excess = math.min(call('ZCARD', set) - count, limit)
    if excess > #old then old = call('ZRANGE', set, 0, excess - 1) end
  end
  for _, id in ipairs(old) do remove_ended_task(index, base, status, id) end
  return #old
end
`

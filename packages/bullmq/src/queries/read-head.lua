#!lua flags=no-writes
-- Reads the head of a queue: the oldest waiting task, the one that starts next, how many are blocked and the oldest of them, whether a
-- command holds the queue, and which Workers use it that were not attached. The time does not depend on the number of tasks or lanes.
-- Everything is read at the same moment. Otherwise, if workers take tasks quickly, the task would have started before its times are read,
-- and would seem to have been ready only since then.
--
-- KEYS  meta, settings, unattached
-- ARGV  base
-- ARGV  mark  of a throttle (internals/throttle.ts)
--
-- Returns `[paused: string | null, draining: 0 | 1, blocked: number, nextReadyAt: string, oldest: [] | [id: string, task: string,
-- enqueuedAt: string, readyAt: string], oldestBlocked: [] | [id: string, readyAt: string], unattached: string | null]`: times in ms since
-- 1970, '' if no task could start.
--- @include time
--- @include blocked-tasks
--- @include oldest-tasks

local limits = limits_at(base, millis(), mark)
local starts_next = next_startable(base, limits)
local next_since = starts_next and ready_at(base, starts_next)
local oldest, since, blocked, blocked_since = oldest_tasks(base, limits)
local name, enqueued_at = unpack(oldest and redis.call('HMGET', base .. oldest, 'name', 'timestamp') or {})
return {
  redis.call('HGET', meta, 'paused'),
  redis.call('HEXISTS', settings, 'drain'),
  count_blocked(base, limits),
  next_since and whole(next_since) or '',
  oldest and { oldest, name, enqueued_at, whole(since) } or {},
  blocked and { blocked, whole(blocked_since) } or {},
  redis.call('GET', unattached),
}

#!lua flags=allow-oom
-- Looks whether a group needs anything from the leader. Cancels the group if its total timeout has passed. Ends it if it was cancelled
-- too long ago; its remaining members then count as removed.
--
-- KEYS  meta, members, queues, requests, outbox
-- ARGV  id
-- ARGV  channel      where the end of a group is published
-- ARGV  forcedEndMs  how long after its cancellation a group ends at the latest
--
-- Returns `[state: GroupPhase, timeoutAt: string, entries: number, result: GroupResult | ''] | null`: when the total timeout passes (ms
-- since 1970), how many entries the outbox has, and the result if this call has ended the group. Null if there is no such group.
--- @type GroupPhase, GroupResult from @bullpen/contract
--- @include group

local state, timeout, cancelled, count, ended =
  unpack(redis.call('HMGET', meta, 'state', 'timeoutAt', 'cancelledAt', 'count', 'ended'))
if not state then
  return false
end
local result
if state ~= 'ended' then
  local now = millis()
  if not cancelled then
    if now >= tonumber(timeout) then
      cancel_group(now, 'group_timeout', 'group ' .. id)
    end
  elseif now >= cancelled + forcedEndMs then
    redis.call('HINCRBY', meta, 'r', count - ended)
    redis.call('HSET', meta, 'ended', count)
  end
  result = end_if_complete(now)
end
return { redis.call('HGET', meta, 'state'), timeout, redis.call('XLEN', outbox), result or '' }

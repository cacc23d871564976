#!lua flags=allow-oom
-- Cancels a group by request. A group that was cancelled or has ended stays as it is.
--
-- KEYS[1]  meta      the fields of the group
-- KEYS[2]  members   how each member has ended
-- KEYS[3]  queues    the position of each member's queue
-- KEYS[4]  requests  the requests that have added members, by key
-- KEYS[5]  outbox    what has to be delivered
-- ARGV[1]  id       the group
-- ARGV[2]  channel  where the end of a group is published
-- ARGV[3]  by       who cancels the group
--
-- Returns `[fields: string[], result: GroupResult | '']`: the fields of the group, none if there is no such group, and the result if
-- this call has ended it.
--- @type GroupResult from @bullpen/contract
local meta, members, queues, requests, outbox = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local id, channel, by = ARGV[1], ARGV[2], ARGV[3]
--- @include group

local result
if redis.call('EXISTS', meta) == 1 then
  local now = millis()
  cancel_group(now, 'cancelled', by)
  result = end_if_complete(now)
end
return { redis.call('HGETALL', meta), result or '' }

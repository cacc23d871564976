#!lua flags=allow-oom
-- Seals a group, so that it gets no further members.
--
-- KEYS  meta, members, queues, requests, outbox
-- ARGV  id
-- ARGV  channel  where the end of a group is published
--
-- Returns `[fields: string[], result: GroupResult | '']`: the fields of the group, none if there is no such group, and the result if
-- this call has ended it.
--- @type GroupResult from @bullpen/contract
--- @include group

local result
if redis.call('EXISTS', meta) == 1 then
  local now = millis()
  seal_group(now)
  result = end_if_complete(now)
end
return { redis.call('HGETALL', meta), result or '' }

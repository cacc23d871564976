#!lua flags=allow-oom
-- Seals a group, so that it gets no further members.
--
-- KEYS[1]  meta      the fields of the group
-- KEYS[2]  members   how each member has ended
-- KEYS[3]  queues    the position of each member's queue
-- KEYS[4]  requests  the requests that have added members, by key
-- KEYS[5]  outbox    what has to be delivered
-- ARGV[1]  id       the group
-- ARGV[2]  channel  where the end of a group is published
--
-- Returns `[fields: string[], result: GroupResult | '']`: the fields of the group, none if there is no such group, and the result if
-- this call has ended it.
--- @type GroupResult from @bullpen/contract
local meta, members, queues, requests, outbox = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local id, channel = ARGV[1], ARGV[2]
--- @include group

local result
if redis.call('EXISTS', meta) == 1 then
  local now = millis()
  seal_group(now)
  result = end_if_complete(now)
end
return { redis.call('HGETALL', meta), result or '' }

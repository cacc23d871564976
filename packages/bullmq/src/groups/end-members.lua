#!lua flags=allow-oom
-- Records the ends of a group's members. Only the first end of each member counts, so that the script can be repeated. If the group
-- cancels its members on an error, the first error cancels the group in the same step. Takes constant time for each member.
--
-- KEYS  meta, members, queues, requests, outbox
-- ARGV  id
-- ARGV  channel  where the end of a group is published
-- ARGV[3...]  for each member, its number and the letter of its end
--
-- Returns `[owed: number, result: GroupResult | ''] | null`: how much follows from changes of the group and has not been delivered yet,
-- and the result if this call has ended the group. Null if there is no such group.
--- @type GroupResult from @bullpen/contract
--- @include group

local state, count, on_error = unpack(redis.call('HMGET', meta, 'state', 'count', 'onError'))
if not state then
  return false
end
local result
if state ~= 'ended' then
  local now = millis()
  for i = 3, #ARGV, 2 do
    local member, letter = ARGV[i], ARGV[i + 1]
    local is_first = tonumber(member) < tonumber(count) and end_member(member, letter)
    if is_first and on_error == 'cancel' and (letter == 'd' or letter == 'e') then
      cancel_group(now, 'first_error', 'group ' .. id)
    end
  end
  result = end_if_complete(now)
end
return { tonumber(redis.call('HGET', meta, 'owed') or 0), result or '' }

#!lua
-- Adds members to a group. They are stored in the group's outbox, from which they are enqueued. Takes time in proportion to the number
-- of members in the request.
--
-- KEYS  meta, members, queues, requests, outbox
-- ARGV  id
-- ARGV  channel        where the end of a group is published
-- ARGV  queuesChannel  where a group is published that has members in a further queue
-- ARGV  key            the request's key
-- ARGV  digest         the request's digest
-- ARGV  seal           '1' to seal the group
-- ARGV  maxMembers, maxQueues
-- ARGV[9...]  for each member, its queue and its template
--
-- Returns `number | [earlier: number] | 'missing' | 'reused' | 'sealed' | 'ended' | 'full' | 'busy' | 'queues'`: the number of the first
-- member, in a list if an earlier call has added the members, or why the group refuses them. Otherwise, nothing is written.
local FIRST = 9
-- How many entries, and how many bytes of them, may wait in a group's outbox before further members are refused.
local MAX_ENTRIES, MAX_BYTES = 10000, 33554432
--- @include group

local state, count, names, bytes = unpack(redis.call('HMGET', meta, 'state', 'count', 'queues', 'outboxBytes'))
if not state then
  return 'missing'
end
local known = redis.call('HGET', requests, key)
if known then
  local start, of = string.match(known, '^(%d+) (.*)$')
  return of == digest and { tonumber(start) } or 'reused'
end
if state ~= 'open' then
  return state
end
local added = (#ARGV - FIRST + 1) / 2
local start = tonumber(count)
if start + added > tonumber(maxMembers) then
  return 'full'
end
if redis.call('XLEN', outbox) >= MAX_ENTRIES or tonumber(bytes or 0) >= MAX_BYTES then
  return 'busy'
end

local positions, number, list = {}, 0, names or ''
for queue in string.gmatch(list, '%S+') do
  positions[queue], number = number, number + 1
end
for i = FIRST, #ARGV, 2 do
  if not positions[ARGV[i]] then
    list = (number == 0 and '' or list .. ' ') .. ARGV[i]
    positions[ARGV[i]], number = number, number + 1
  end
end
if number > tonumber(maxQueues) then
  return 'queues'
end

local now = millis()
local ttl = redis.call('PTTL', meta)
for i = FIRST, #ARGV, 2 do
  local member = start + (i - FIRST) / 2
  -- Positions that were never written read as 0.
  if positions[ARGV[i]] > 0 then
    redis.call('BITFIELD', queues, 'SET', 'u4', '#' .. whole(member), positions[ARGV[i]])
  end
  write_entry('m ' .. id .. ' ' .. whole(member) .. ' ' .. ARGV[i + 1])
end
redis.call('HSET', meta, 'count', whole(start + added), 'queues', list)
redis.call('HSET', requests, key, whole(start) .. ' ' .. digest)
-- The string gets its size now, so that it is not enlarged with each end, and so that it expires with the other keys.
redis.call('SETBIT', members, whole((start + added) * 3), 0)
for _, each in ipairs({ members, queues, requests, outbox }) do
  redis.call('PEXPIRE', each, ttl)
end
if list ~= (names or '') then
  redis.call('PUBLISH', queuesChannel, id)
end
if seal == '1' then
  seal_group(now)
end
return start

-- Changes a group: its members end, it is sealed (it gets no further members) or cancelled, and it ends when it is sealed and all of its
-- members have ended. A group's outbox is a stream of texts (outbox/outbox-entry.ts). What follows from an end or a cancellation of the
-- group is counted as `owed` until it is delivered. The process that reports a member's end keeps the report until nothing is owed, so that
-- the work is done even if that process dies.
--
-- Expects the group's keys as the locals `meta`, `members`, `queues`, `requests` and `outbox`, and the locals `id` and `channel`.
--
-- end_member(member, letter)     records the first end of a member, which must exist. Returns false if it has ended before. The group must
--                                not have ended. Takes constant time, regardless of the number of members
-- cancel_group(now, reason, by)  seals and cancels the group, unless it has been cancelled or has ended
-- seal_group(now)                seals the group if it is open
-- end_if_complete(now)           ends the group if it is sealed and all of its members have ended. Returns the result if this call has
--                                ended the group, and otherwise nil. A script calls it after its changes
-- write_entry(text)              adds an entry to the group's outbox
--
-- All times are in ms since 1970. The letters of a member's end are those of END_LETTERS (groups/end-letters.ts), and those of follow-ups
-- are s (success), f (failure) and e (any end). engine/src/groups/group-state.ts makes the same decisions in memory; a model test compares
-- both.
--- @include time

local CODES = { c = 1, d = 2, x = 3, e = 4, r = 5 }
local RELEASED_BY = { completed = '[se]', failed = '[fe]', cancelled = 'e' }

local function write_entry(text)
  redis.call('XADD', outbox, '*', 'e', text)
  redis.call('HINCRBY', meta, 'outboxBytes', #text)
end

local function write_owed(text)
  write_entry(text)
  redis.call('PEXPIRE', outbox, redis.call('PTTL', meta))
  redis.call('HINCRBY', meta, 'owed', 1)
end

local function seal_group(now)
  if redis.call('HGET', meta, 'state') ~= 'open' then
    return
  end
  redis.call('HSET', meta, 'state', 'sealed', 'sealedAt', whole(now))
end

local function cancel_group(now, reason, by)
  if redis.call('HGET', meta, 'state') == 'ended' then
    return
  end
  if redis.call('HSETNX', meta, 'cancelledAt', whole(now)) == 0 then
    return
  end
  seal_group(now)
  redis.call('HSET', meta, 'cancelReason', reason, 'cancelledBy', by)
  for queue in string.gmatch(redis.call('HGET', meta, 'queues') or '', '%S+') do
    write_owed('k ' .. id .. ' ' .. queue .. ' ' .. by)
  end
end

local function end_member(member, letter)
  local at = '#' .. member
  if redis.call('BITFIELD', members, 'GET', 'u3', at)[1] ~= 0 then
    return false
  end
  redis.call('BITFIELD', members, 'SET', 'u3', at, CODES[letter])
  redis.call('HINCRBY', meta, letter, 1)
  redis.call('HINCRBY', meta, 'ended', 1)
  return true
end

local function group_result(count, reason)
  local completed, dead, expired = unpack(redis.call('HMGET', meta, 'c', 'd', 'e'))
  if count > 0 and tonumber(completed or 0) == count then
    return 'completed'
  end
  if reason == 'cancelled' then
    return 'cancelled'
  end
  if tonumber(dead or 0) + tonumber(expired or 0) > 0 or reason == 'group_timeout' then
    return 'failed'
  end
  return count == 0 and 'completed' or 'cancelled'
end

local function write_follow_ups(result)
  local lines, created_at = unpack(redis.call('HMGET', meta, 'lines', 'createdAt'))
  local number = 0
  for letter, template in string.gmatch(lines or '', '(%a)([^\n]+)') do
    number = number + 1
    if string.find(letter, RELEASED_BY[result]) then
      write_owed('t ' .. id .. ' ' .. created_at .. ' 1 ' .. letter .. number .. ' ' .. template)
    end
  end
end

local function end_if_complete(now)
  local state, count, ended, reason, keep =
    unpack(redis.call('HMGET', meta, 'state', 'count', 'ended', 'cancelReason', 'keepMs'))
  if state ~= 'sealed' or tonumber(ended) < tonumber(count) then
    return nil
  end
  local result = group_result(tonumber(count), reason)
  redis.call('HSET', meta, 'state', 'ended', 'endedAt', whole(now), 'result', result)
  write_follow_ups(result)
  for _, key in ipairs({ meta, members, queues, requests, outbox }) do
    redis.call('PEXPIRE', key, keep)
  end
  redis.call('PUBLISH', channel, id)
  return result
end

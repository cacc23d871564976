// Every Lua script as Redis runs it, with its types. Written by npm run lua from the .lua files; not edited by hand.
import type { GroupPhase, GroupResult } from '@bullpen/contract'
import { luaScript } from '../scripts/script.ts'

/**
 * Notes which of the tasks that a process has acknowledged are lost: they do not exist, and nothing shows that they were deleted. A task
 * is not lost if it was deleted soon after its enqueue, if one of the queue's events is about it, or if the queue was obliterated, which
 * deletes the events and keeps the totals. If tasks are missing, the script reads all events of the queue.
 */
export const noteLostScript = luaScript<
  'totals' | 'recentlyRemoved' | 'events' | 'lostTasks',
  'base' | 'process' | 'keptMs',
  [accepted: number, lost: string[]]
>({
  name: 'note-lost',
  keys: ['totals', 'recentlyRemoved', 'events', 'lostTasks'],
  args: ['base', 'process', 'keptMs'],
  lua: `#!lua flags=allow-oom
local totals, recentlyRemoved, events, lostTasks = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local base, process, keptMs = ARGV[1], ARGV[2], ARGV[3]
local function whole(number)
  return string.format('%.0f', number)
end
local function micros()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
local function millis()
  return math.floor(micros() / 1000)
end
local accepted = tonumber(redis.call('HGET', totals, 'accepted') or '0')
if accepted > 0 and redis.call('EXISTS', events) == 0 then
  return { accepted, {} }
end
local missing = {}
for i = 4, #ARGV do
  local id, caller = string.match(ARGV[i], '^(%S+) ?(.*)$')
  local removed = id .. ' ' .. caller
  if
    redis.call('EXISTS', base .. id) == 0
    and not redis.call('ZSCORE', recentlyRemoved, removed)
    and not redis.call('ZSCORE', recentlyRemoved, removed .. ' r')
  then
    missing[id] = true
  end
end
if next(missing) == nil then
  return { accepted, {} }
end
for _, event in ipairs(redis.call('XRANGE', events, '-', '+')) do
  for i = 1, #event[2], 2 do
    if event[2][i] == 'jobId' then
      missing[event[2][i + 1]] = nil
    end
  end
end
local lost = {}
for id in pairs(missing) do
  if redis.call('HSETNX', lostTasks, id, process) == 1 then
    redis.call('HSET', lostTasks, 'newest', id .. ' ' .. whole(millis()))
  end
  if redis.call('HGET', lostTasks, id) == process then
    lost[#lost + 1] = id
  end
end
if #lost > 0 then
  redis.call('PEXPIRE', lostTasks, keptMs)
end
return { accepted, lost }
`,
})

/**
 * Reads the clock of the server that holds a key.
 */
export const readTimeScript = luaScript<'anchor', never, [seconds: string, micros: string]>({
  name: 'read-time',
  keys: ['anchor'],
  args: [],
  lua: `#!lua flags=no-writes
local anchor = KEYS[1]
return redis.call('TIME')
`,
})

/**
 * Applies a command to an API key's enqueue rate. An older command never overwrites a newer one.
 */
export const applyEnqueueRateScript = luaScript<'enqueueRates', 'apiKeyName' | 'sequence' | 'rate', void>({
  name: 'apply-enqueue-rate',
  keys: ['enqueueRates'],
  args: ['apiKeyName', 'sequence', 'rate'],
  lua: `#!lua flags=allow-oom
local enqueueRates = KEYS[1]
local apiKeyName, sequence, rate = ARGV[1], ARGV[2], ARGV[3]
local newest = string.match(redis.call('HGET', enqueueRates, apiKeyName) or '0', '^%d+')
if tonumber(newest) < tonumber(sequence) then
  redis.call('HSET', enqueueRates, apiKeyName, sequence .. ' ' .. rate)
end
`,
})

/**
 * Announces a command, after its queue settings, if it has any, have been applied. Workers read the settings again when the revision
 * has changed.
 */
export const announceCommandScript = luaScript<
  'unapplied' | 'settingsRevision',
  'id' | 'hasChanged' | 'channel' | 'message',
  void
>({
  name: 'announce-command',
  keys: ['unapplied', 'settingsRevision'],
  args: ['id', 'hasChanged', 'channel', 'message'],
  lua: `#!lua flags=allow-oom
local unapplied, settingsRevision = KEYS[1], KEYS[2]
local id, hasChanged, channel, message = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
if hasChanged == '1' then
  redis.call('ZREM', unapplied, id)
  redis.call('INCR', settingsRevision)
end
redis.call('PUBLISH', channel, message)
`,
})

/**
 * Removes a worker that has closed from the fleet.
 */
export const leaveFleetScript = luaScript<'heartbeats', 'base' | 'id', 0 | 1>({
  name: 'leave-fleet',
  keys: ['heartbeats'],
  args: ['base', 'id'],
  lua: `#!lua flags=allow-oom
local heartbeats = KEYS[1]
local base, id = ARGV[1], ARGV[2]
local function whole(number)
  return string.format('%.0f', number)
end
local function micros()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
local function millis()
  return math.floor(micros() / 1000)
end
local COMMANDS_AT_ONCE = 100
local function forget_worker(base, worker, now)
  local inbox = base .. 'inbox:' .. worker
  local pending = redis.call('ZRANGE', inbox, 0, COMMANDS_AT_ONCE - 1)
  for _, id in ipairs(pending) do
    local command = base .. 'command:' .. id
    redis.call('ZREM', inbox, id)
    if redis.call('HGET', command, 'response:' .. worker) == 'pending' then
      redis.call('HSET', command, 'response:' .. worker, '{"outcome":"gone","at":' .. whole(now) .. '}')
      redis.call('PUBLISH', base .. 'responses', id)
    end
  end
  if #pending == COMMANDS_AT_ONCE then
    return false
  end
  redis.call('DEL', inbox, base .. 'worker:' .. worker)
  redis.call('ZREM', base .. 'heartbeats', worker)
  return true
end
return forget_worker(base, id, millis()) and 1 or 0
`,
})

/**
 * Reads one fleet command, or one page of the newest commands.
 */
export const readCommandsScript = luaScript<
  'commands' | 'heartbeats',
  'base' | 'id' | 'before' | 'limit',
  [now: string, last: string, ...commands: Array<[id: string, fields: string[], seen: string[]]>]
>({
  name: 'read-commands',
  keys: ['commands', 'heartbeats'],
  args: ['base', 'id', 'before', 'limit'],
  lua: `#!lua flags=no-writes
local commands, heartbeats = KEYS[1], KEYS[2]
local base, id, before, limit = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local function whole(number)
  return string.format('%.0f', number)
end
local function micros()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
local function millis()
  return math.floor(micros() / 1000)
end
local ids = { id, '' }
if id == '' then
  ids = redis.call('ZREVRANGEBYSCORE', commands, before, '-inf', 'WITHSCORES', 'LIMIT', 0, limit)
end
local found = { whole(millis()), ids[#ids] or '' }
for at = 1, #ids, 2 do
  local fields = redis.call('HGETALL', base .. 'command:' .. ids[at])
  if #fields > 0 then
    local seen = {}
    for i = 1, #fields, 2 do
      local worker = fields[i + 1] == 'pending' and string.match(fields[i], '^response:(.*)$')
      if worker then
        seen[#seen + 1] = worker
        seen[#seen + 1] = redis.call('ZSCORE', heartbeats, worker) or '0'
      end
    end
    found[#found + 1] = { ids[at], fields, seen }
  end
end
return found
`,
})

/**
 * Reads one page of the registered workers. A worker that is registered throughout the scan is on at least one page.
 */
export const readWorkersScript = luaScript<
  'heartbeats',
  'base' | 'silence' | 'slots' | 'cursor' | 'count',
  [next: string, now: string, ...workers: string[]]
>({
  name: 'read-workers',
  keys: ['heartbeats'],
  args: ['base', 'silence', 'slots', 'cursor', 'count'],
  lua: `#!lua flags=no-writes
local heartbeats = KEYS[1]
local base, silence, slots, cursor, count = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local function whole(number)
  return string.format('%.0f', number)
end
local function micros()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
local function millis()
  return math.floor(micros() / 1000)
end
local now = millis()
local page = redis.call('ZSCAN', heartbeats, cursor, 'COUNT', count)
local found = { page[1], whole(now) }
for i = 1, #page[2], 2 do
  local id, seenAt = page[2][i], page[2][i + 1]
  if tonumber(seenAt) > now - tonumber(silence) then
    local worker = redis.call('HMGET', base .. 'worker:' .. id, 'status', slots)
    if worker[1] then
      for _, value in ipairs({ id, seenAt, worker[1], worker[2] or '' }) do
        found[#found + 1] = value
      end
    end
  end
end
return found
`,
})

/**
 * Stores a worker's response to a command. Only a worker's first response is stored.
 */
export const respondToCommandScript = luaScript<'command' | 'inbox', 'channel' | 'id' | 'worker' | 'outcome', void>({
  name: 'respond-to-command',
  keys: ['command', 'inbox'],
  args: ['channel', 'id', 'worker', 'outcome'],
  lua: `#!lua flags=allow-oom
local command, inbox = KEYS[1], KEYS[2]
local channel, id, worker, outcome = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local function whole(number)
  return string.format('%.0f', number)
end
local function micros()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
local function millis()
  return math.floor(micros() / 1000)
end
redis.call('ZREM', inbox, id)
if redis.call('HGET', command, 'response:' .. worker) ~= 'pending' then
  return
end
redis.call('HSET', command, 'response:' .. worker, outcome .. ',"at":' .. whole(millis()) .. '}')
redis.call('PUBLISH', channel, id)
`,
})

/**
 * Stores a fleet command, and adds it to the inboxes of the workers that it concerns. Also removes up to 200 old commands.
 */
export const storeCommandScript = luaScript<
  'command' | 'commands' | 'unapplied' | 'logLevel',
  'base' | 'id' | 'spec' | 'by' | 'changesSettings' | 'keepMs' | 'keepAtMost' | 'level' | 'levelMs',
  [sequence: string, at: string] | null
>({
  name: 'store-command',
  keys: ['command', 'commands', 'unapplied', 'logLevel'],
  args: ['base', 'id', 'spec', 'by', 'changesSettings', 'keepMs', 'keepAtMost', 'level', 'levelMs'],
  lua: `#!lua flags=allow-oom
local command, commands, unapplied, logLevel = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local base, id, spec, by, changesSettings = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local keepMs, keepAtMost, level, levelMs = ARGV[6], ARGV[7], ARGV[8], ARGV[9]
local function whole(number)
  return string.format('%.0f', number)
end
local function micros()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
local function millis()
  return math.floor(micros() / 1000)
end
local stored = redis.call('HMGET', command, 'spec', 'sequence', 'at')
if stored[1] then
  if stored[1] ~= spec then
    return false
  end
  return { stored[2], stored[3] }
end
local now = micros()
local newest = redis.call('ZREVRANGE', commands, 0, 0, 'WITHSCORES')
local sequence = math.max(now, tonumber(newest[2] or '0') + 1)
local at = whole(math.floor(now / 1000))
redis.call('HSET', command, 'spec', spec, 'by', by, 'at', at, 'sequence', whole(sequence))
for i = 10, #ARGV do
  local inbox = base .. 'inbox:' .. ARGV[i]
  redis.call('HSET', command, 'response:' .. ARGV[i], 'pending')
  redis.call('ZADD', inbox, whole(sequence), id)
  redis.call('PEXPIRE', inbox, keepMs)
end
redis.call('PEXPIRE', command, keepMs)
redis.call('ZADD', commands, whole(sequence), id)
if level == 'configured' then
  redis.call('DEL', logLevel)
elseif level ~= '' then
  local override = cjson.encode({ command = id, level = level, by = by, ['until'] = tonumber(at) + tonumber(levelMs) })
  redis.call('SET', logLevel, override, 'PX', levelMs)
end
if changesSettings == '1' then
  redis.call('ZADD', unapplied, whole(sequence), id)
end
local old = redis.call('ZRANGEBYSCORE', commands, '-inf', whole(now - tonumber(keepMs) * 1000), 'LIMIT', 0, 100)
local over = redis.call('ZCARD', commands) - tonumber(keepAtMost)
if over > 0 then
  for _, more in ipairs(redis.call('ZRANGE', commands, 0, math.min(over, 100) - 1)) do
    old[#old + 1] = more
  end
end
for _, each in ipairs(old) do
  redis.call('ZREM', commands, each)
  redis.call('ZREM', unapplied, each)
  redis.call('DEL', base .. 'command:' .. each)
end
return { whole(sequence), at }
`,
})

/**
 * Stores a worker's status, and returns the commands that are addressed to the worker. Also forgets up to twenty silent workers.
 */
export const workerHeartbeatScript = luaScript<
  'heartbeats' | 'worker' | 'inbox' | 'unapplied' | 'settingsRevision' | 'logLevel' | 'served',
  'base' | 'id' | 'status' | 'slots' | 'silence' | 'limit' | 'servedMs',
  [commands: string[], unapplied: string[], revision: string, logLevel: string]
>({
  name: 'worker-heartbeat',
  keys: ['heartbeats', 'worker', 'inbox', 'unapplied', 'settingsRevision', 'logLevel', 'served'],
  args: ['base', 'id', 'status', 'slots', 'silence', 'limit', 'servedMs'],
  lua: `#!lua flags=allow-oom
local heartbeats, worker, inbox = KEYS[1], KEYS[2], KEYS[3]
local unapplied, settingsRevision, logLevel, served = KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local base, id, status, slots = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local silence, limit, servedMs = ARGV[5], ARGV[6], ARGV[7]
local function whole(number)
  return string.format('%.0f', number)
end
local function micros()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
local function millis()
  return math.floor(micros() / 1000)
end
local COMMANDS_AT_ONCE = 100
local function forget_worker(base, worker, now)
  local inbox = base .. 'inbox:' .. worker
  local pending = redis.call('ZRANGE', inbox, 0, COMMANDS_AT_ONCE - 1)
  for _, id in ipairs(pending) do
    local command = base .. 'command:' .. id
    redis.call('ZREM', inbox, id)
    if redis.call('HGET', command, 'response:' .. worker) == 'pending' then
      redis.call('HSET', command, 'response:' .. worker, '{"outcome":"gone","at":' .. whole(now) .. '}')
      redis.call('PUBLISH', base .. 'responses', id)
    end
  end
  if #pending == COMMANDS_AT_ONCE then
    return false
  end
  redis.call('DEL', inbox, base .. 'worker:' .. worker)
  redis.call('ZREM', base .. 'heartbeats', worker)
  return true
end
local now = millis()
redis.call('HSET', worker, 'status', status, 'slots', slots)
redis.call('PEXPIRE', worker, silence)
redis.call('ZADD', heartbeats, whole(now), id)
for i = 8, #ARGV do
  redis.call('ZADD', served, whole(now), ARGV[i])
end
redis.call('ZREMRANGEBYSCORE', served, '-inf', whole(now - tonumber(servedMs)))
local forgotten = whole(now - tonumber(silence))
for _, silent in ipairs(redis.call('ZRANGEBYSCORE', heartbeats, '-inf', forgotten, 'LIMIT', 0, 20)) do
  if not forget_worker(base, silent, now) then
    break
  end
end
local found = {}
for _, each in ipairs(redis.call('ZRANGE', inbox, 0, tonumber(limit) - 1)) do
  local command = redis.call('HMGET', base .. 'command:' .. each, 'spec', 'by', 'at')
  if command[1] then
    for _, value in ipairs({ each, command[1], command[2], command[3] }) do
      found[#found + 1] = value
    end
  else
    redis.call('ZREM', inbox, each)
  end
end
local revision, level = redis.call('GET', settingsRevision) or '', redis.call('GET', logLevel) or ''
return { found, redis.call('ZRANGE', unapplied, 0, 9), revision, level }
`,
})

/**
 * Adds members to a group. They are stored in the group's outbox, from which they are enqueued. Takes time in proportion to the number
 * of members in the request.
 */
export const addMembersScript = luaScript<
  'meta' | 'members' | 'queues' | 'requests' | 'outbox',
  'id' | 'channel' | 'queuesChannel' | 'key' | 'digest' | 'seal' | 'maxMembers' | 'maxQueues',
  number | 'missing' | 'reused' | 'sealed' | 'ended' | 'full' | 'busy' | 'queues'
>({
  name: 'add-members',
  keys: ['meta', 'members', 'queues', 'requests', 'outbox'],
  args: ['id', 'channel', 'queuesChannel', 'key', 'digest', 'seal', 'maxMembers', 'maxQueues'],
  lua: `#!lua
local meta, members, queues, requests, outbox = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local id, channel, queuesChannel, key, digest = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local seal, maxMembers, maxQueues = ARGV[6], ARGV[7], ARGV[8]
local FIRST = 9
local MAX_ENTRIES, MAX_BYTES = 10000, 33554432
local function whole(number)
  return string.format('%.0f', number)
end
local function micros()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
local function millis()
  return math.floor(micros() / 1000)
end
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
  for letter, template in string.gmatch(lines or '', '(%a)([^\\n]+)') do
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
local state, count, names, bytes = unpack(redis.call('HMGET', meta, 'state', 'count', 'queues', 'outboxBytes'))
if not state then
  return 'missing'
end
local known = redis.call('HGET', requests, key)
if known then
  local start, of = string.match(known, '^(%d+) (.*)$')
  return of == digest and tonumber(start) or 'reused'
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
  if positions[ARGV[i]] > 0 then
    redis.call('BITFIELD', queues, 'SET', 'u4', '#' .. whole(member), positions[ARGV[i]])
  end
  write_entry('m ' .. id .. ' ' .. whole(member) .. ' ' .. ARGV[i + 1])
end
redis.call('HSET', meta, 'count', whole(start + added), 'queues', list)
redis.call('HSET', requests, key, whole(start) .. ' ' .. digest)
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
`,
})

/**
 * Cancels a group by request. A group that was cancelled or has ended stays as it is.
 */
export const cancelGroupScript = luaScript<
  'meta' | 'members' | 'queues' | 'requests' | 'outbox',
  'id' | 'channel' | 'by',
  [fields: string[], result: GroupResult | '']
>({
  name: 'cancel-group',
  keys: ['meta', 'members', 'queues', 'requests', 'outbox'],
  args: ['id', 'channel', 'by'],
  lua: `#!lua flags=allow-oom
local meta, members, queues, requests, outbox = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local id, channel, by = ARGV[1], ARGV[2], ARGV[3]
local function whole(number)
  return string.format('%.0f', number)
end
local function micros()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
local function millis()
  return math.floor(micros() / 1000)
end
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
  for letter, template in string.gmatch(lines or '', '(%a)([^\\n]+)') do
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
local result
if redis.call('EXISTS', meta) == 1 then
  local now = millis()
  cancel_group(now, 'cancelled', by)
  result = end_if_complete(now)
end
return { redis.call('HGETALL', meta), result or '' }
`,
})

/**
 * Claims entries of a group's outbox, so that one process at a time delivers each of them. Takes time in proportion to their number.
 */
export const claimGroupEntriesScript = luaScript<
  'meta' | 'members' | 'queues' | 'requests' | 'outbox',
  'id' | 'channel' | 'limit' | 'idleMs' | 'cursor',
  [fresh: number, cursor: string, entries: Array<[id: string, text: string]>, result: GroupResult | '']
>({
  name: 'claim-group-entries',
  keys: ['meta', 'members', 'queues', 'requests', 'outbox'],
  args: ['id', 'channel', 'limit', 'idleMs', 'cursor'],
  lua: `#!lua flags=allow-oom
local meta, members, queues, requests, outbox = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local id, channel, limit, idleMs, cursor = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local GROUP, CONSUMER = 'forwarders', 'forwarder'
local PAGES_AT_ONCE = 10
local function whole(number)
  return string.format('%.0f', number)
end
local function micros()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
local function millis()
  return math.floor(micros() / 1000)
end
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
  for letter, template in string.gmatch(lines or '', '(%a)([^\\n]+)') do
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
if redis.call('EXISTS', outbox) == 0 then
  return { 0, '0-0', {}, '' }
end
local state, cancelled = unpack(redis.call('HMGET', meta, 'state', 'cancelledAt'))
local entries, fresh, next_cursor, result = {}, 0, '0-0', nil
local function read()
  return redis.pcall('XREADGROUP', 'GROUP', GROUP, CONSUMER, 'COUNT', limit, 'STREAMS', outbox, '>')
end
local function read_fresh()
  local found = read()
  if found and found.err then
    redis.call('XGROUP', 'CREATE', outbox, GROUP, '0')
    found = read()
  end
  if found and found.err then
    error(found.err)
  end
  return found and found[1][2] or {}
end
local function is_skipped(entry)
  local text = entry[2][2]
  if not cancelled or string.sub(text, 1, 1) ~= 'm' then
    return false
  end
  if state ~= 'ended' then
    end_member(string.match(text, '^m %S+ (%d+) '), 'x')
  end
  redis.call('XACK', outbox, GROUP, entry[1])
  redis.call('XDEL', outbox, entry[1])
  redis.call('HINCRBY', meta, 'outboxBytes', -#text)
  return true
end
for _ = 1, cancelled and PAGES_AT_ONCE or 1 do
  local page = read_fresh()
  fresh = #page
  for _, entry in ipairs(page) do
    if not is_skipped(entry) then
      entries[#entries + 1] = { entry[1], entry[2][2] }
    end
  end
  if fresh == 0 or #entries > 0 then
    break
  end
end
if cancelled then
  result = end_if_complete(millis())
end
if idleMs ~= '' then
  local left = redis.call('XAUTOCLAIM', outbox, GROUP, CONSUMER, idleMs, cursor, 'COUNT', limit)
  next_cursor = left[1]
  for _, entry in ipairs(left[2]) do
    if entry[2] then
      entries[#entries + 1] = { entry[1], entry[2][2] }
    end
  end
end
return { fresh, next_cursor, entries, result or '' }
`,
})

/**
 * Creates a group. If the group exists, nothing changes.
 */
export const createGroupScript = luaScript<
  'meta',
  'by' | 'onError' | 'totalMs' | 'keepMs' | 'spareMs' | 'lines' | 'digest',
  string[] | 'reused'
>({
  name: 'create-group',
  keys: ['meta'],
  args: ['by', 'onError', 'totalMs', 'keepMs', 'spareMs', 'lines', 'digest'],
  lua: `#!lua
local meta = KEYS[1]
local by, onError, totalMs, keepMs = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local spareMs, lines, digest = ARGV[5], ARGV[6], ARGV[7]
local function whole(number)
  return string.format('%.0f', number)
end
local function micros()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
local function millis()
  return math.floor(micros() / 1000)
end
if redis.call('EXISTS', meta) == 0 then
  local now = millis()
  redis.call('HSET', meta, 'state', 'open', 'by', by, 'onError', onError, 'keepMs', keepMs, 'digest', digest)
  redis.call('HSET', meta, 'createdAt', whole(now), 'timeoutAt', whole(now + totalMs), 'count', 0, 'ended', 0)
  if lines ~= '' then
    redis.call('HSET', meta, 'lines', lines)
  end
  redis.call('PEXPIRE', meta, whole(totalMs + spareMs))
else
  local known = redis.call('HGET', meta, 'digest')
  if known and known ~= digest then
    return 'reused'
  end
end
return redis.call('HGETALL', meta)
`,
})

/**
 * Deletes delivered entries of a group's outbox, and the empty outbox itself. An entry that was deleted before is skipped, so a script
 * that is sent again does no harm.
 */
export const deleteGroupEntriesScript = luaScript<'meta' | 'outbox', never, void>({
  name: 'delete-group-entries',
  keys: ['meta', 'outbox'],
  args: [],
  lua: `#!lua flags=allow-oom
local meta, outbox = KEYS[1], KEYS[2]
for _, entry in ipairs(ARGV) do
  local stored = redis.call('XRANGE', outbox, entry, entry)[1]
  redis.call('XACK', outbox, 'forwarders', entry)
  if stored and redis.call('XDEL', outbox, entry) == 1 and redis.call('EXISTS', meta) == 1 then
    local text = stored[2][2]
    redis.call('HINCRBY', meta, 'outboxBytes', -#text)
    if string.sub(text, 1, 1) ~= 'm' then
      redis.call('HINCRBY', meta, 'owed', -1)
    end
  end
end
if redis.call('XLEN', outbox) == 0 then
  redis.call('DEL', outbox)
end
`,
})

/**
 * Records the ends of a group's members. Only the first end of each member counts, so that the script can be repeated. If the group
 * cancels its members on an error, the first error cancels the group in the same step. Takes constant time for each member.
 */
export const endMembersScript = luaScript<
  'meta' | 'members' | 'queues' | 'requests' | 'outbox',
  'id' | 'channel',
  [owed: number, result: GroupResult | ''] | null
>({
  name: 'end-members',
  keys: ['meta', 'members', 'queues', 'requests', 'outbox'],
  args: ['id', 'channel'],
  lua: `#!lua flags=allow-oom
local meta, members, queues, requests, outbox = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local id, channel = ARGV[1], ARGV[2]
local function whole(number)
  return string.format('%.0f', number)
end
local function micros()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
local function millis()
  return math.floor(micros() / 1000)
end
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
  for letter, template in string.gmatch(lines or '', '(%a)([^\\n]+)') do
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
`,
})

/**
 * Reads how some members of a group have ended, and to which queues they belong, all as of the same moment.
 */
export const readMembersScript = luaScript<
  'meta' | 'members' | 'queues',
  'from' | 'limit',
  [fields: string[], ends: number[], queues: number[]]
>({
  name: 'read-members',
  keys: ['meta', 'members', 'queues'],
  args: ['from', 'limit'],
  lua: `#!lua flags=no-writes
local meta, members, queues = KEYS[1], KEYS[2], KEYS[3]
local from, limit = ARGV[1], ARGV[2]
local ends, positions = {}, {}
local last = math.min(tonumber(redis.call('HGET', meta, 'count') or 0), from + limit) - 1
for member = from, last do
  local at = string.format('#%.0f', member)
  ends[#ends + 1] = redis.call('BITFIELD_RO', members, 'GET', 'u3', at)[1]
  positions[#positions + 1] = redis.call('BITFIELD_RO', queues, 'GET', 'u4', at)[1]
end
return { redis.call('HGETALL', meta), ends, positions }
`,
})

/**
 * Seals a group, so that it gets no further members.
 */
export const sealGroupScript = luaScript<
  'meta' | 'members' | 'queues' | 'requests' | 'outbox',
  'id' | 'channel',
  [fields: string[], result: GroupResult | '']
>({
  name: 'seal-group',
  keys: ['meta', 'members', 'queues', 'requests', 'outbox'],
  args: ['id', 'channel'],
  lua: `#!lua flags=allow-oom
local meta, members, queues, requests, outbox = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local id, channel = ARGV[1], ARGV[2]
local function whole(number)
  return string.format('%.0f', number)
end
local function micros()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
local function millis()
  return math.floor(micros() / 1000)
end
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
  for letter, template in string.gmatch(lines or '', '(%a)([^\\n]+)') do
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
local result
if redis.call('EXISTS', meta) == 1 then
  local now = millis()
  seal_group(now)
  result = end_if_complete(now)
end
return { redis.call('HGETALL', meta), result or '' }
`,
})

/**
 * Looks whether a group needs anything from the leader. Cancels the group if its total timeout has passed. Ends it if it was cancelled
 * too long ago; its remaining members then count as removed.
 */
export const visitGroupScript = luaScript<
  'meta' | 'members' | 'queues' | 'requests' | 'outbox',
  'id' | 'channel' | 'forcedEndMs',
  [state: GroupPhase, timeoutAt: string, entries: number, result: GroupResult | ''] | null
>({
  name: 'visit-group',
  keys: ['meta', 'members', 'queues', 'requests', 'outbox'],
  args: ['id', 'channel', 'forcedEndMs'],
  lua: `#!lua flags=allow-oom
local meta, members, queues, requests, outbox = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local id, channel, forcedEndMs = ARGV[1], ARGV[2], ARGV[3]
local function whole(number)
  return string.format('%.0f', number)
end
local function micros()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
local function millis()
  return math.floor(micros() / 1000)
end
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
  for letter, template in string.gmatch(lines or '', '(%a)([^\\n]+)') do
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
`,
})

/**
 * Adds queues to a namespace's registry. Runs even if Redis is full, because a worker that starts will end tasks.
 */
export const registerQueuesScript = luaScript<'schema' | 'registry', 'schemaVersion' | 'replaces', 0 | 1>({
  name: 'register-queues',
  keys: ['schema', 'registry'],
  args: ['schemaVersion', 'replaces'],
  lua: `#!lua flags=allow-oom
local schema, registry = KEYS[1], KEYS[2]
local schemaVersion, replaces = ARGV[1], ARGV[2]
if redis.call('GET', schema) ~= schemaVersion then
  return 0
end
for i = 3, #ARGV, 2 do
  local queue, retention = ARGV[i], ARGV[i + 1]
  local stored = redis.call('HGET', registry, queue)
  if not stored or retention ~= '' and (replaces == '1' or stored == '') then
    redis.call('HSET', registry, queue, retention)
  end
end
return 1
`,
})

/**
 * Releases the leader's lease, and announces that the namespace has no leader. Does nothing if another process holds it.
 */
export const resignScript = luaScript<'lease', 'holder' | 'channel', void>({
  name: 'resign',
  keys: ['lease'],
  args: ['holder', 'channel'],
  lua: `#!lua flags=allow-oom
local lease = KEYS[1]
local holder, channel = ARGV[1], ARGV[2]
if redis.call('GET', lease) ~= holder then
  return
end
redis.call('DEL', lease)
redis.call('PUBLISH', channel, '')
`,
})

/**
 * Returns when the first lock of a queue's marked tasks expires. O(marked tasks).
 */
export const soonestLockExpiryScript = luaScript<'stalled', 'base', number | null>({
  name: 'soonest-lock-expiry',
  keys: ['stalled'],
  args: ['base'],
  lua: `#!lua flags=no-writes
local stalled = KEYS[1]
local base = ARGV[1]
local soonest
for _, id in ipairs(redis.call('SMEMBERS', stalled)) do
  local left = redis.call('PTTL', base .. id .. ':lock')
  if left >= 0 and (not soonest or left < soonest) then
    soonest = left
  end
end
return soonest
`,
})

/**
 * Acquires or renews the lease of a namespace's leader.
 */
export const takeLeaseScript = luaScript<
  'lease' | 'fencing' | 'schema',
  'holder' | 'leaseMs' | 'schemaVersion' | 'above',
  [fencing: number, leftMs: number, newest: number]
>({
  name: 'take-lease',
  keys: ['lease', 'fencing', 'schema'],
  args: ['holder', 'leaseMs', 'schemaVersion', 'above'],
  lua: `#!lua flags=allow-oom
local lease, fencing, schema = KEYS[1], KEYS[2], KEYS[3]
local holder, leaseMs, schemaVersion, above = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local newest = tonumber(redis.call('GET', schema) or '0')
local number = tonumber(redis.call('GET', fencing) or '0')
if newest > tonumber(schemaVersion) then
  return { 0, tonumber(leaseMs), number }
end
local current = redis.call('GET', lease)
if current and current ~= holder then
  return { 0, redis.call('PTTL', lease), number }
end
if not current or number <= tonumber(above) then
  number = math.max(number, tonumber(above)) + 1
  redis.call('SET', fencing, string.format('%.0f', number))
end
redis.call('SET', lease, holder, 'PX', leaseMs)
return { number, tonumber(leaseMs), number }
`,
})

/**
 * Reads what a queue stores about why one of its tasks does not run.
 */
export const readWaitScript = luaScript<
  'meta' | 'settings' | 'wait' | 'prioritized' | 'active' | 'postponed' | 'limiter',
  'id' | 'max',
  [
    now: string,
    postponed: string | null,
    lost: number | null,
    ahead: number,
    meta: Array<string | null>,
    settings: Array<string | null>,
    active: number,
    used: string | null,
    usedForMs: number,
  ]
>({
  name: 'read-wait',
  keys: ['meta', 'settings', 'wait', 'prioritized', 'active', 'postponed', 'limiter'],
  args: ['id', 'max'],
  lua: `#!lua flags=no-writes
local meta, settings, wait, prioritized = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local active, postponed, limiter = KEYS[5], KEYS[6], KEYS[7]
local id, max = ARGV[1], ARGV[2]
local function whole(number)
  return string.format('%.0f', number)
end
local function micros()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
local function millis()
  return math.floor(micros() / 1000)
end
local length, rank = redis.call('LLEN', wait), redis.call('ZRANK', prioritized, id)
local ahead = length + (rank or redis.call('ZCARD', prioritized))
local place = not rank and redis.call('LPOS', wait, id, 'RANK', -1, 'MAXLEN', max)
if place then
  ahead = length - place - 1
end
return {
  whole(millis()),
  redis.call('ZSCORE', postponed, id),
  redis.call('LPOS', active, id, 'MAXLEN', max),
  math.min(ahead, tonumber(max)),
  redis.call('HMGET', meta, 'paused', 'concurrency', 'max', 'duration'),
  redis.call('HMGET', settings, 'sequence:paused', 'drain'),
  redis.call('LLEN', active),
  redis.call('GET', limiter),
  redis.call('PTTL', limiter),
}
`,
})

/**
 * Notes which editions of schedules a running process declares, and forgets those that no process has declared for a while.
 */
export const declareSchedulesScript = luaScript<'editions', 'forgetMs' | 'keepMs', string[]>({
  name: 'declare-schedules',
  keys: ['editions'],
  args: ['forgetMs', 'keepMs'],
  lua: `#!lua flags=allow-oom
local editions = KEYS[1]
local forgetMs, keepMs = ARGV[1], ARGV[2]
local function whole(number)
  return string.format('%.0f', number)
end
local function micros()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
local function millis()
  return math.floor(micros() / 1000)
end
local now = millis()
local known = redis.call('HGETALL', editions)
for i = 1, #known, 2 do
  local last = string.find(known[i], ' ', 1, true) and string.match(known[i + 1], ' (%d+)$')
  if last and tonumber(last) < now - tonumber(forgetMs) then
    redis.call('HDEL', editions, known[i])
  end
end
for i = 3, #ARGV, 2 do
  local field = ARGV[i] .. ' ' .. ARGV[i + 1]
  local first = string.match(redis.call('HGET', editions, field) or '', '^%d+') or whole(now)
  redis.call('HSET', editions, field, first .. ' ' .. whole(now))
end
redis.call('PEXPIRE', editions, keepMs)
return redis.call('HGETALL', editions)
`,
})

/**
 * Stores the current schema version, unless the namespace already has a version or holds data of 0.1.0.
 */
export const claimNamespaceScript = luaScript<'schema' | 'legacyFleet', 'version' | 'hasLegacyQueue', string>({
  name: 'claim-namespace',
  keys: ['schema', 'legacyFleet'],
  args: ['version', 'hasLegacyQueue'],
  lua: `#!lua
local schema, legacyFleet = KEYS[1], KEYS[2]
local version, hasLegacyQueue = ARGV[1], ARGV[2]
local stored = redis.call('GET', schema)
if stored then
  return stored
end
if hasLegacyQueue == '1' or redis.call('EXISTS', legacyFleet) == 1 then
  return '1'
end
redis.call('SET', schema, version)
return version
`,
})

/**
 * Detects whether Bullpen 0.1.0 wrote a queue. That version stored no schema version, so its data is recognised by keys that only it
 * wrote, or by one of its jobs at either end of a place. Examines at most twelve jobs.
 */
export const isLegacyScript = luaScript<
  'switches' | 'cancelFeeds' | 'wait' | 'active' | 'prioritized' | 'delayed' | 'completed' | 'failed',
  'base' | 'backoffType',
  0 | 1
>({
  name: 'is-legacy',
  keys: ['switches', 'cancelFeeds', 'wait', 'active', 'prioritized', 'delayed', 'completed', 'failed'],
  args: ['base', 'backoffType'],
  lua: `#!lua flags=no-writes
local switches, cancelFeeds, wait, active = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local prioritized, delayed, completed, failed = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local base, backoffType = ARGV[1], ARGV[2]
if redis.call('EXISTS', switches, cancelFeeds) > 0 then
  return 1
end
local function is_legacy(id)
  local job = redis.call('HMGET', base .. id, 'data', 'opts')
  return job[1]
    and job[2]
    and string.sub(job[1], 1, 7) == '{"v":1,'
    and string.find(job[2], '"type":"' .. backoffType .. '"', 1, true)
end
for _, at in ipairs({ 0, -1 }) do
  for _, list in ipairs({ wait, active }) do
    local id = redis.call('LINDEX', list, at)
    if id and is_legacy(id) then
      return 1
    end
  end
  for _, set in ipairs({ prioritized, delayed, completed, failed }) do
    local id = redis.call('ZRANGE', set, at, at)[1]
    if id and is_legacy(id) then
      return 1
    end
  end
end
return 0
`,
})

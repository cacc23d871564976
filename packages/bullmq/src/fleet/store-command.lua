#!lua flags=allow-oom
-- Stores a fleet command, and adds it to the inboxes of the workers that it concerns. Also removes up to 200 old commands.
--
-- KEYS  command, commands, unapplied, logLevel
-- ARGV  base, id
-- ARGV  spec             what it says, as JSON
-- ARGV  by               who sent it
-- ARGV  changesSettings  '1' if it changes the settings of a queue
-- ARGV  keepMs           how long commands are kept
-- ARGV  keepAtMost       how many commands are kept
-- ARGV  level            the log level that it sets for all processes, 'configured' to end such a setting, or ''
-- ARGV  levelMs          how long that level lasts
-- ARGV  cancels          '1' if it also cancels the waiting tasks of the queue
-- ARGV[11...]  the workers that it concerns
--
-- Returns `[sequence: string, at: string] | null`: the command's position in the order of all commands and its time in ms since 1970,
-- or null if the id was used with another spec.
--- @include time

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
if cancels == '1' then
  redis.call('HSET', command, 'cancels', '1')
end
for i = 11, #ARGV do
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

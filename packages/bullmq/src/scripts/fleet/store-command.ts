// Stores a fleet command, and adds it to its recipients' inboxes.
import { TIME } from '../includes/time.ts'
import { defineScript } from '../script.ts'

/**
 * - KEYS: the command, all commands, the unapplied commands, the log level of all processes.
 * - ARGV: the prefix of the fleet's keys, the command's id, its spec as JSON, who sent it, '1' if it changes the settings of a
 *   queue, how long to keep it (ms), how many commands to keep, the log level that it sets for all processes or '' and for how long
 *   (ms), and then the workers that it concerns.
 *
 * Returns the command's position in the order of all commands and its time, or undefined if the id was used with another spec.
 * Also removes up to 200 old commands.
 */
export const storeCommandScript = defineScript({
  name: 'store-command',
  kind: 'frees',
  keys: ['command', 'commands', 'unapplied', 'logLevel'],
  args: ['base', 'id', 'spec', 'by', 'changesSettings', 'keepMs', 'keepAtMost', 'level', 'levelMs'],
  lua: `${TIME}
local stored = redis.call('HMGET', command, 'spec', 'sequence', 'at')
if stored[1] then
  if stored[1] ~= spec then return false end
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
if changesSettings == '1' then redis.call('ZADD', unapplied, whole(sequence), id) end
local old = redis.call('ZRANGEBYSCORE', commands, '-inf', whole(now - tonumber(keepMs) * 1000), 'LIMIT', 0, 100)
local over = redis.call('ZCARD', commands) - tonumber(keepAtMost)
if over > 0 then
  for _, more in ipairs(redis.call('ZRANGE', commands, 0, math.min(over, 100) - 1)) do old[#old + 1] = more end
end
for _, each in ipairs(old) do
  redis.call('ZREM', commands, each)
  redis.call('ZREM', unapplied, each)
  redis.call('DEL', base .. 'command:' .. each)
end
return { whole(sequence), at }
`,
  answer(reply) {
    if (reply === null) return undefined
    const [sequence = '', at] = reply as string[]
    return { sequence, at: Number(at) }
  },
})

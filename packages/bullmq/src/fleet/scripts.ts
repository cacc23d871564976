// The scripts of the fleet: what is written together is written whole. All of them work on keys of one hash tag.

/** Lua numbers hold whole ones up to 2^53; `%.0f` writes them without an exponent. */
const COMMON = `
local function whole(number) return string.format('%.0f', number) end
local function micros()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
local function millis() return math.floor(micros() / 1000) end
`

/** Of a worker that is not there any more: what it has not answered is answered for it. */
const FORGET = `
local function forget(base, worker, now)
  local inbox = base .. 'inbox:' .. worker
  for _, id in ipairs(redis.call('ZRANGE', inbox, 0, -1)) do
    local command = base .. 'command:' .. id
    if redis.call('HGET', command, 'answer:' .. worker) == 'pending' then
      redis.call('HSET', command, 'answer:' .. worker, '{"outcome":"gone","at":' .. whole(now) .. '}')
      redis.call('PUBLISH', base .. 'answers', id)
    end
  end
  redis.call('DEL', inbox, base .. 'worker:' .. worker)
  redis.call('ZREM', base .. 'beats', worker)
end
`

/**
 * KEYS: beats, the worker, its inbox, unset. ARGV: base, worker, about, slots, after how many ms of silence a worker is
 * forgotten, how many commands at most. Returns id, order, author and time of each command in the inbox, one after the
 * other, the oldest first; and the ids of commands whose switch is not known to be set.
 */
export const BEAT = `${COMMON}${FORGET}
local base, worker, silence = ARGV[1], ARGV[2], tonumber(ARGV[5])
local now = millis()
redis.call('HSET', KEYS[2], 'about', ARGV[3], 'slots', ARGV[4])
redis.call('PEXPIRE', KEYS[2], silence)
redis.call('ZADD', KEYS[1], whole(now), worker)
for _, silent in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', whole(now - silence), 'LIMIT', 0, 20)) do
  forget(base, silent, now)
end
local told = {}
for _, id in ipairs(redis.call('ZRANGE', KEYS[3], 0, tonumber(ARGV[6]) - 1)) do
  local command = redis.call('HMGET', base .. 'command:' .. id, 'spec', 'by', 'at')
  if command[1] then
    for _, value in ipairs({ id, command[1], command[2], command[3] }) do told[#told + 1] = value end
  else
    redis.call('ZREM', KEYS[3], id)
  end
end
return { told, redis.call('ZRANGE', KEYS[4], 0, 9) }
`

/** KEYS: beats. ARGV: base, worker. */
export const LEAVE = `${COMMON}${FORGET}
forget(ARGV[1], ARGV[2], millis())
`

/**
 * KEYS: beats. ARGV: base, after how many ms of silence a worker is forgotten, 'slots' or ''. Returns the time, and of
 * each worker its last sign of life, about, and slots where they are asked for.
 */
export const PROCESSES = `${COMMON}
local now = millis()
local found = { whole(now) }
local beats = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. whole(now - tonumber(ARGV[2])), '+inf', 'WITHSCORES')
for i = 1, #beats, 2 do
  local status = redis.call('HMGET', ARGV[1] .. 'worker:' .. beats[i], 'about', ARGV[3])
  if status[1] then
    found[#found + 1] = beats[i + 1]
    found[#found + 1] = status[1]
    found[#found + 1] = status[2] or ''
  end
end
return found
`

/**
 * KEYS: command, commands, unset. ARGV: base, id, order, author, 1 when a switch of a queue follows from it, for how many
 * ms it is kept, how many are kept, and the workers that it concerns. Returns its place in the order of all commands
 * and its time; nothing when the id was used for another order.
 */
export const KEEP = `${COMMON}
local base, id, keepMs, keep = ARGV[1], ARGV[2], tonumber(ARGV[6]), tonumber(ARGV[7])
local known = redis.call('HMGET', KEYS[1], 'spec', 'sequence', 'at')
if known[1] then
  if known[1] ~= ARGV[3] then return false end
  return { known[2], known[3] }
end
local now = micros()
local newest = redis.call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES')
local sequence = math.max(now, tonumber(newest[2] or '0') + 1)
local at = whole(math.floor(now / 1000))
redis.call('HSET', KEYS[1], 'spec', ARGV[3], 'by', ARGV[4], 'at', at, 'sequence', whole(sequence))
for i = 8, #ARGV do
  local inbox = base .. 'inbox:' .. ARGV[i]
  redis.call('HSET', KEYS[1], 'answer:' .. ARGV[i], 'pending')
  redis.call('ZADD', inbox, whole(sequence), id)
  redis.call('PEXPIRE', inbox, keepMs)
end
redis.call('PEXPIRE', KEYS[1], keepMs)
redis.call('ZADD', KEYS[2], whole(sequence), id)
if ARGV[5] == '1' then redis.call('ZADD', KEYS[3], whole(sequence), id) end
local old = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', whole(now - keepMs * 1000), 'LIMIT', 0, 100)
local over = redis.call('ZCARD', KEYS[2]) - keep
if over > 0 then
  for _, more in ipairs(redis.call('ZRANGE', KEYS[2], 0, math.min(over, 100) - 1)) do old[#old + 1] = more end
end
for _, each in ipairs(old) do
  redis.call('ZREM', KEYS[2], each)
  redis.call('ZREM', KEYS[3], each)
  redis.call('DEL', base .. 'command:' .. each)
end
return { whole(sequence), at }
`

/** KEYS: command, inbox. ARGV: base, id, worker, outcome and detail as JSON without its closing brace. The first one counts. */
export const ANSWER = `${COMMON}
redis.call('ZREM', KEYS[2], ARGV[2])
if redis.call('HGET', KEYS[1], 'answer:' .. ARGV[3]) ~= 'pending' then return end
redis.call('HSET', KEYS[1], 'answer:' .. ARGV[3], ARGV[4] .. ',"at":' .. whole(millis()) .. '}')
redis.call('PUBLISH', ARGV[1] .. 'answers', ARGV[2])
`

/**
 * KEYS: commands, beats. ARGV: base, and either an id or '' and how many of the newest. Returns the time, and of each its
 * id, its fields, and the last sign of life of each worker that it waits for, one after the other.
 */
export const COMMANDS = `${COMMON}
local ids = { ARGV[2] }
if ARGV[2] == '' then ids = redis.call('ZREVRANGE', KEYS[1], 0, tonumber(ARGV[3]) - 1) end
local found = { whole(millis()) }
for _, id in ipairs(ids) do
  local fields = redis.call('HGETALL', ARGV[1] .. 'command:' .. id)
  if #fields > 0 then
    local seen = {}
    for i = 1, #fields, 2 do
      if fields[i + 1] == 'pending' then
        local worker = string.match(fields[i], '^answer:(.*)$')
        if worker then
          seen[#seen + 1] = worker
          seen[#seen + 1] = redis.call('ZSCORE', KEYS[2], worker) or '0'
        end
      end
    end
    found[#found + 1] = { id, fields, seen }
  end
end
return found
`

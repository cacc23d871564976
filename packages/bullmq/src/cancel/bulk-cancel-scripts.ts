// The janitor's scripts: each looks at a few tasks, and ends what the cancel rules cover, as a single cancel does.

/** For so long, in ms, a janitor that is heard of no more keeps others out. */
export const LEASE_MS = 3_000

/** KEYS: the janitor's lease, the rules. ARGV: the janitor, its lease in ms. Returns Redis' time in ms and the rules, or false. */
export const BEGIN = `
local rules = redis.call('HVALS', KEYS[2])
if #rules == 0 then return false end
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return false end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
local time = redis.call('TIME')
return { time[1] * 1000 + math.floor(time[2] / 1000), rules }
`

/**
 * KEYS: the janitor's lease, active, delayed, prioritized, wait, failed, events, expiries. ARGV: the janitor, its lease in
 * ms, the prefix of jobs, the prefix of the rules' progress, the rules, where to look, from where on, the id before that,
 * how many to look at, how many stacks are kept.
 *
 * Returns where to go on and the id before it, or '' and '' at the end; how many were found for each rule; id and name of
 * each that was ended. False: another janitor has the lease.
 *
 * Rules are `{id, task?, tag?, before, at, reason, end}` with `end` as JSON without its braces, attempt and times.
 *
 * 'active' finds those that run, and ends none. A set is gone through by score. The waiting list is gone through from its
 * newest end: others take from the other one, and what they add moves the rest on, so that nothing is passed by; where it has
 * been moved otherwise, the id before says how far. Its end looks at what runs once more in the same moment, for what was
 * taken meanwhile and may be handed back.
 */
export const LOOK = `
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return false end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
local rules, place, limit = cjson.decode(ARGV[5]), ARGV[6], tonumber(ARGV[9])
local found, ended = {}, {}
for i = 1, #rules do found[i] = 0 end

local function covering(id)
  local job = ARGV[3] .. id
  local known = redis.call('HMGET', job, 'name', 'timestamp')
  if not known[1] then return nil end
  local enqueued, tags = tonumber(known[2] or '0') or 0, nil
  for i, rule in ipairs(rules) do
    if enqueued <= rule.before and (rule.task == nil or rule.task == known[1]) then
      if rule.tag == nil then return i, known[1] end
      tags = tags or string.match(redis.call('HGET', job, 'data') or '', '^{"v":%d+,"version":%d+,"tags":(%b[])') or ''
      if string.find(tags, '"' .. rule.tag .. '"', 1, true) then return i, known[1] end
    end
  end
end

local function finish(id, i, name)
  local job, rule, at = ARGV[3] .. id, rules[i], rules[i].at
  local known = redis.call('HMGET', job, 'atm', 'stacktrace')
  local stacks = known[2] and cjson.decode(known[2]) or {}
  while #stacks >= tonumber(ARGV[10]) do table.remove(stacks, 1) end
  local last = #stacks > 0 and string.match(stacks[#stacks], '^[^\\n]*"endedAt":(%d+)')
  if last then at = math.max(at, tonumber(last)) end
  at = string.format('%.0f', at)
  local attempt = tonumber(known[1] or '0') + 1
  local times = ',"startedAt":' .. at .. ',"endedAt":' .. at .. '}\\n'
  stacks[#stacks + 1] = '{"attempt":' .. attempt .. ',' .. rule['end'] .. times .. rule.reason
  redis.call('HSET', job, 'finishedOn', at, 'failedReason', rule.reason, 'stacktrace', cjson.encode(stacks))
  redis.call('ZADD', KEYS[6], at, id)
  redis.call('ZREM', KEYS[8], id)
  redis.call('XADD', KEYS[7], '*', 'event', 'failed', 'jobId', id, 'failedReason', rule.reason, 'prev', 'waiting')
  redis.call('HINCRBY', ARGV[4] .. rule.id, 'ended', 1)
  found[i] = found[i] + 1
  ended[#ended + 1] = id
  ended[#ended + 1] = name
end

local function runs()
  for _, id in ipairs(redis.call('LRANGE', KEYS[2], 0, -1)) do
    local i = covering(id)
    if i then found[i] = found[i] + 1 end
  end
end

if place == 'active' then
  runs()
  return { '', '', found, ended }
end

if place ~= 'wait' then
  local set = place == 'delayed' and KEYS[3] or KEYS[4]
  local some = redis.call('ZRANGEBYSCORE', set, ARGV[7] == '' and '-inf' or ('(' .. ARGV[7]), '+inf', 'WITHSCORES', 'LIMIT', 0, limit)
  local score = some[#some]
  local ids = {}
  for at = 1, #some, 2 do
    if #some < 2 * limit or some[at + 1] ~= score then ids[#ids + 1] = some[at] end
  end
  -- All of the last score, however many.
  if #some == 2 * limit then
    for _, id in ipairs(redis.call('ZRANGEBYSCORE', set, score, score)) do ids[#ids + 1] = id end
  end
  for _, id in ipairs(ids) do
    local i, name = covering(id)
    if i and redis.call('ZREM', set, id) == 1 then finish(id, i, name) end
  end
  return { #some == 2 * limit and score or '', '', found, ended }
end

local from, before = tonumber(ARGV[7] == '' and '0' or ARGV[7]), ARGV[8]
if before ~= '' and redis.call('LINDEX', KEYS[5], from - 1) ~= before then
  local at = redis.call('LPOS', KEYS[5], before)
  from = at and at + 1 or 0
end
local ids = redis.call('LRANGE', KEYS[5], from, from + limit - 1)
local removed, kept = 0, before
for offset, id in ipairs(ids) do
  local i, name = covering(id)
  if i then
    redis.call('LSET', KEYS[5], from + offset - 1, 'bullpen:cancelled')
    removed = removed + 1
    finish(id, i, name)
  else
    kept = id
  end
end
-- One walk for all of them: each LREM of its own would cost as much.
if removed > 0 then redis.call('LREM', KEYS[5], removed, 'bullpen:cancelled') end
if #ids < limit then
  runs()
  return { '', '', found, ended }
end
from = from + #ids - removed
return { tostring(from), from > 0 and kept or '', found, ended }
`

/**
 * KEYS: the rules. ARGV: the prefix of the rules' progress, how long that is kept in ms, then the rules' ids. Those that
 * cover nothing any more are forgotten.
 */
export const FINISH = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for i = 3, #ARGV do
  if redis.call('HDEL', KEYS[1], ARGV[i]) == 1 then
    redis.call('HSET', ARGV[1] .. ARGV[i], 'doneAt', string.format('%.0f', now))
    redis.call('PEXPIRE', ARGV[1] .. ARGV[i], ARGV[2])
  end
end
`

// The scripts of the bulk canceller. Each looks at a bounded number of waiting tasks and ends those that a cancel rule matches.

import { STATUS_INDEX } from '../internals/status-index.ts'
import { FENCE } from '../scripts/includes/fence.ts'

/**
 * KEYS: the queue's fencing number, the rules. ARGV: the leader's number. Returns Redis's time in ms and the rules, or nil if there
 * are no rules or if there is a newer leader.
 */
export const BEGIN_PASS = `${FENCE}
if is_deposed(KEYS[1], ARGV[1]) then return false end
local rules = redis.call('HVALS', KEYS[2])
if #rules == 0 then return false end
local time = redis.call('TIME')
return { time[1] * 1000 + math.floor(time[2] / 1000), rules }
`

/**
 * KEYS: the queue's fencing number, active, delayed, prioritized, wait, failed, events, expiries. ARGV: the leader's number, the
 * prefix of jobs, the prefix of the rules' progress, the rules, the place to look at, the position to start at, the id before that
 * position, how many tasks to look at, how many stacks to keep.
 *
 * Returns the position to continue from and the id before it ('' and '' at the end of the place), how many tasks matched each
 * rule, and the id and name of each task that was ended. Returns nil if there is a newer leader.
 *
 * Each rule is `{id, task?, tag?, before, at, reason, record}`, where `record` is the attempt record as JSON without its braces,
 * its attempt number and its times.
 *
 * - For 'active', the script only counts the matching tasks, because running tasks are stopped by their workers.
 * - A sorted set is scanned by score, and the position is a score. All tasks that share the last score belong to one page.
 * - The waiting list is scanned from its newest end, and the position is an index. Workers take tasks from the other end, and
 *   new tasks push the rest further along, so that no task is skipped. If the list has shifted in any other way, the id before
 *   the position shows by how much. At the end of the list, the script counts the running tasks again, because a task that was
 *   fetched during the scan may be requeued.
 */
export const END_PAGE = `${STATUS_INDEX}${FENCE}
if is_deposed(KEYS[1], ARGV[1]) then return false end
local index = status_index(ARGV[2])
local redis = index.redis
index.into.failed = 'cancelled'
local rules, place, limit = cjson.decode(ARGV[4]), ARGV[5], tonumber(ARGV[8])
local matched, ended = {}, {}
for i = 1, #rules do matched[i] = 0 end

local function matching(id)
  local job = ARGV[2] .. id
  local stored = redis.call('HMGET', job, 'name', 'timestamp')
  if not stored[1] then return nil end
  local enqueued, tags = tonumber(stored[2] or '0') or 0, nil
  for i, rule in ipairs(rules) do
    if enqueued <= rule.before and (rule.task == nil or rule.task == stored[1]) then
      if rule.tag == nil then return i, stored[1] end
      tags = tags or string.match(redis.call('HGET', job, 'data') or '', '^{"v":%d+,"version":%d+,"tags":(%b[])') or ''
      if string.find(tags, '"' .. rule.tag .. '"', 1, true) then return i, stored[1] end
    end
  end
end

local function finish(id, i, name)
  local job, rule, at = ARGV[2] .. id, rules[i], rules[i].at
  local stored = redis.call('HMGET', job, 'atm', 'stacktrace')
  local stacks = stored[2] and cjson.decode(stored[2]) or {}
  while #stacks >= tonumber(ARGV[9]) do table.remove(stacks, 1) end
  local last = #stacks > 0 and string.match(stacks[#stacks], '^[^\\n]*"endedAt":(%d+)')
  if last then at = math.max(at, tonumber(last)) end
  at = string.format('%.0f', at)
  local attempt = tonumber(stored[1] or '0') + 1
  local times = ',"startedAt":' .. at .. ',"endedAt":' .. at .. '}\\n'
  stacks[#stacks + 1] = '{"attempt":' .. attempt .. ',' .. rule.record .. times .. rule.reason
  redis.call('HSET', job, 'finishedOn', at, 'failedReason', rule.reason, 'stacktrace', cjson.encode(stacks))
  redis.call('ZADD', KEYS[6], at, id)
  redis.call('ZREM', KEYS[8], id)
  redis.call('XADD', KEYS[7], '*', 'event', 'failed', 'jobId', id, 'failedReason', rule.reason, 'prev', 'waiting')
  redis.call('HINCRBY', ARGV[3] .. rule.id, 'ended', 1)
  matched[i] = matched[i] + 1
  ended[#ended + 1] = id
  ended[#ended + 1] = name
end

local function count_running()
  for _, id in ipairs(redis.call('LRANGE', KEYS[2], 0, -1)) do
    local i = matching(id)
    if i then matched[i] = matched[i] + 1 end
  end
end

if place == 'active' then
  count_running()
  return { '', '', matched, ended }
end

if place ~= 'wait' then
  local set = place == 'delayed' and KEYS[3] or KEYS[4]
  local page = redis.call('ZRANGEBYSCORE', set, ARGV[6] == '' and '-inf' or ('(' .. ARGV[6]), '+inf', 'WITHSCORES', 'LIMIT', 0, limit)
  local score = page[#page]
  local ids = {}
  for at = 1, #page, 2 do
    if #page < 2 * limit or page[at + 1] ~= score then ids[#ids + 1] = page[at] end
  end
  -- Add all tasks of the last score, however many there are.
  if #page == 2 * limit then
    for _, id in ipairs(redis.call('ZRANGEBYSCORE', set, score, score)) do ids[#ids + 1] = id end
  end
  for _, id in ipairs(ids) do
    local i, name = matching(id)
    if i and redis.call('ZREM', set, id) == 1 then finish(id, i, name) end
  end
  return { #page == 2 * limit and score or '', '', matched, ended }
end

local from, before = tonumber(ARGV[6] == '' and '0' or ARGV[6]), ARGV[7]
if before ~= '' and redis.call('LINDEX', KEYS[5], from - 1) ~= before then
  local at = redis.call('LPOS', KEYS[5], before)
  from = at and at + 1 or 0
end
local ids = redis.call('LRANGE', KEYS[5], from, from + limit - 1)
local removed, kept = 0, before
for offset, id in ipairs(ids) do
  local i, name = matching(id)
  if i then
    redis.call('LSET', KEYS[5], from + offset - 1, 'bullpen:cancelled')
    removed = removed + 1
    finish(id, i, name)
  else
    kept = id
  end
end
-- A single LREM removes all of them in one walk of the list.
if removed > 0 then redis.call('LREM', KEYS[5], removed, 'bullpen:cancelled') end
if #ids < limit then
  count_running()
  return { '', '', matched, ended }
end
from = from + #ids - removed
return { tostring(from), from > 0 and kept or '', matched, ended }
`

/**
 * Deletes rules that no longer match anything.
 *
 * KEYS: the rules. ARGV: the prefix of the rules' progress, how long to keep the progress in ms, then the ids of the rules to
 * delete. Returns nothing.
 */
export const FORGET_RULES = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for i = 3, #ARGV do
  if redis.call('HDEL', KEYS[1], ARGV[i]) == 1 then
    redis.call('HSET', ARGV[1] .. ARGV[i], 'doneAt', string.format('%.0f', now))
    redis.call('PEXPIRE', ARGV[1] .. ARGV[i], ARGV[2])
  end
end
`

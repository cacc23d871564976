#!lua flags=allow-oom
-- Retries or deletes one page of the dead tasks that a request selects. The script also stores the position and the number of changed
-- tasks, so it may be sent again, also by another process, without changing a task twice.
--
-- KEYS  leader, deadRequests
-- KEYS  progress           the request's progress
-- KEYS  set                the set to search, which is that of the dead tasks or of one fingerprint
-- ARGV  fencing, base, id
-- ARGV  action             `retry` or `delete`
-- ARGV  by                 who sent the request
-- ARGV  filterText         the filter as JSON
-- ARGV  earliest           the earliest time of death to select, or '-inf'
-- ARGV  latest             the latest time of death to select, or '+inf'
-- ARGV  rate               how many tasks to change per second
-- ARGV  keepMs             how long to keep the progress of a request that is done
-- ARGV  afterCompensation  '1' to retry tasks although their compensations were released
--
-- Returns `number | null`: how long to wait until the rate permits another task, in ms, or null if there is a newer leader.
--- @include fence
--- @include matching-dead
--- @include rank-in-set
--- @include remove-ended
--- @include retry-dead

-- How many tasks one script changes at most. Retrying 100 tasks takes Redis a few milliseconds.
local CHANGED_AT_ONCE = 100
local EXAMINED_AT_ONCE = 500
-- How many seconds' worth of its rate a request can save up while it changes nothing.
local SAVED_S = 0.5

if is_deposed(leader, fencing) then
  return false
end
if redis.call('HEXISTS', deadRequests, id) == 0 then
  return 0
end
local filter, now = decode_json(filterText), millis()
local score, last, tokens, at = unpack(redis.call('HMGET', progress, 'score', 'last', 'tokens', 'tokensAt'))
local most = math.max(1, rate * SAVED_S)
tokens = math.min(most, tokens and tonumber(tokens) + math.max(0, now - tonumber(at)) * rate / 1000 or most)
local allowed = math.min(CHANGED_AT_ONCE, math.floor(tokens))
if allowed == 0 then
  return math.ceil((1 - tokens) * 1000 / rate)
end

-- Skips a task that the request has already retried and that is dead again, even if the clock of the worker that ended it is behind; a task
-- that was retried as a new task in another queue; and a task whose compensations were released, unless the request includes such tasks.
local function retry(task)
  local stored, compensated = unpack(redis.call('HMGET', base .. task, 'retries', 'compensated'))
  if compensated and afterCompensation ~= '1' then
    return false
  end
  local retries = stored and decode_json(stored) or {}
  for _, each in ipairs(retries) do
    if each.request == id or each.copy then
      return false
    end
  end
  return retry_dead(task, retries, { at = now, by = by, request = id }, '')
end

local function delete(task)
  remove_ended_task(base, 'dead', task)
  return true
end

local change = action == 'retry' and retry or delete
local first = last and rank_in(set, score, last) or redis.call('ZCOUNT', set, '-inf', '(' .. earliest)
local beyond = redis.call('ZCOUNT', set, '-inf', latest)
local page = redis.call('ZRANGE', set, first, math.min(first + EXAMINED_AT_ONCE, beyond) - 1, 'WITHSCORES')
local changed, is_full = 0, false
for i = 1, #page, 2 do
  if matches_dead(base, filter, page[i]) then
    if changed == allowed then
      is_full = true
      break
    end
    if change(page[i]) then
      changed = changed + 1
    end
  end
  last, score = page[i], page[i + 1]
end
if changed > 0 then
  redis.call('HINCRBY', progress, 'changed', changed)
end
if not is_full and first + EXAMINED_AT_ONCE >= beyond then
  redis.call('HDEL', deadRequests, id)
  redis.call('HSET', progress, 'doneAt', whole(now))
  redis.call('PEXPIRE', progress, keepMs)
else
  redis.call(
    'HSET',
    progress,
    'score',
    score,
    'last',
    last,
    'tokens',
    tostring(tokens - changed),
    'tokensAt',
    whole(now)
  )
end
return 0

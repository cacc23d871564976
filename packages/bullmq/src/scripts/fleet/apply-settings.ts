// Applies a command to its queue's settings.
import { BREAKER_SETTING } from '../../breakers/stored-breaker.ts'
import {
  CAPACITY_SETTING,
  DERIVE_LIMITS,
  DERIVE_LIMITS_OF_KEYS,
  KEY_LIMIT_SETTING,
} from '../../internals/turns/derive-limits.ts'
import { GATES } from '../../store/scripts.ts'
import { defineScript } from '../script.ts'

/**
 * - KEYS: settings, meta, marker, wait, prioritized, lanes, delayed, events, limiter.
 * - ARGV: the prefix of the queue's keys, the command's sequence number, the mark of a throttle, the step of a delayed score, and then
 *   the names and values of the settings, where '' removes a setting.
 *
 * Returns nothing.
 *
 * An older command never overwrites a newer one, whichever is applied first. Pause and resume have the same effect as BullMQ's
 * own. A change that may let tasks start adds BullMQ's wake marker, because workers that were refused a task are waiting for it.
 */
export const applySettingsScript = defineScript({
  name: 'apply-settings',
  kind: 'frees',
  keys: ['settings', 'meta', 'marker', 'wait', 'prioritized', 'lanes', 'delayed', 'events', 'limiter'],
  args: ['base', 'sequence', 'mark', 'scoreStep'],
  lua: `
local lifted, limits_of_keys, sets_others = false, {}, false
local function is_newest(name)
  if tonumber(redis.call('HGET', settings, 'sequence:' .. name) or '0') >= tonumber(sequence) then return false end
  redis.call('HSET', settings, 'sequence:' .. name, sequence)
  return true
end
local set = {}
function set.paused(value)
  if value == '' then
    lifted = true
    if redis.call('HDEL', meta, 'paused') == 1 then redis.call('XADD', events, '*', 'event', 'resumed') end
  else
    redis.call('HSET', meta, 'paused', 1)
    redis.call('DEL', marker)
    redis.call('XADD', events, '*', 'event', 'paused')
  end
end
for _, name in ipairs({ 'drain', 'maxTasks', 'maxBytes', 'maxAgeMs' }) do
  set[name] = function(value)
    if value == '' then redis.call('HDEL', settings, name) else redis.call('HSET', settings, name, value) end
  end
end
function set.concurrency(value)
  lifted = true
  if value == '' then redis.call('HDEL', meta, 'concurrency') else redis.call('HSET', meta, 'concurrency', value) end
end
function set.rate(value)
  lifted = true
  if value ~= '' then
    local max, duration = string.match(value, '^(%d+)/(%d+)$')
    redis.call('HSET', meta, 'max', max, 'duration', duration)
  elseif redis.call('GET', limiter) == mark then
    redis.call('HSET', meta, 'max', mark, 'duration', 1)
  else
    redis.call('HDEL', meta, 'max', 'duration')
  end
end
local function set_limit(name, value)
  if value == '' then redis.call('HDEL', settings, name) else redis.call('HSET', settings, name, value) end
end
local function set_breaker(service, value)${GATES}
  local given = cjson.decode(value)
  gates().set(service, given.mode, given.by, given.settings)
end
for i = 5, #ARGV, 2 do
  local name, value = ARGV[i], ARGV[i + 1]
  if is_newest(name) then
    local service = string.match(name, '^${BREAKER_SETTING}(.*)$')
    if service then set_breaker(service, value) elseif set[name] then set[name](value) else set_limit(name, value) end
    local field = string.match(name, '^${KEY_LIMIT_SETTING}(.*)$')
    local key = field and string.match(field, '^%a+:(.*)$')
    if key then limits_of_keys[field] = key end
    sets_others = sets_others or field and not key or string.sub(name, 1, ${CAPACITY_SETTING.length}) == '${CAPACITY_SETTING}'
  end
end
if sets_others or next(limits_of_keys) then${DERIVE_LIMITS}${DERIVE_LIMITS_OF_KEYS}
  if sets_others or not derive_limits_of_keys(base, limits_of_keys) then derive_limits(base) end
end
if lifted and redis.call('HEXISTS', meta, 'paused') == 0 then
  if redis.call('LLEN', wait) + redis.call('EXISTS', prioritized, lanes) > 0 then
    redis.call('ZADD', marker, 0, '0')
  else
    local due = redis.call('ZRANGE', delayed, 0, 0, 'WITHSCORES')
    if due[2] then redis.call('ZADD', marker, tonumber(due[2]) / tonumber(scoreStep), '1') end
  end
end
`,
})

// Defines a Lua function that decides whether a dead task matches a filter.
import { DECODE_JSON } from '../decode-json.ts'

/**
 * `matches_dead(base, filter, id)` returns whether a dead task matches the filter. `filter` is a table of
 * `{task?, state?, code?, tag?, text?}`, with the text in lower case. The caller checks the time and the fingerprint, which select
 * the tasks that are examined at all. In TypeScript, `matchesDead` makes the same decision (engine, task/dead-filter.ts).
 */
export const MATCHING_DEAD = `${DECODE_JSON}
local function has_dead_tag(stored, tag)
  for _, each in ipairs(stored and decode_json(stored) or {}) do
    if each == tag then return true end
  end
  return false
end
local function matches_dead(base, filter, id)
  if next(filter) == nil then return redis.call('EXISTS', base .. id) == 1 end
  local name, stored = unpack(redis.call('HMGET', base .. id, 'name', 'fingerprint'))
  if not name or filter.task and filter.task ~= name then return false end
  if filter.state or filter.code then
    local state, code = string.match(stored or '', '^%S+ (%S+) (.*)$')
    if filter.state and filter.state ~= state or filter.code and filter.code ~= code then return false end
  end
  if filter.tag and not has_dead_tag(redis.call('HGET', base .. id, 'tags'), filter.tag) then return false end
  if not filter.text then return true end
  -- The reason begins with the state and the code, unless BullMQ itself has failed the task.
  local reason = redis.call('HGET', base .. id, 'failedReason') or ''
  local message = string.match(reason, '^[A-Z_]+ %b(): (.*)$') or reason
  return string.find(string.lower(message), filter.text, 1, true) ~= nil
end
`

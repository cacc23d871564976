// Defines a Lua function that finds the cancel rule that matches a task.
import { DECODE_JSON } from './decode-json.ts'

/**
 * `matching_rule(base, rules, id)` returns the position of the first rule that matches the task, and the task's name. Returns nil
 * if no rule matches. `rules` is a table of `{task?, tag?, group?, before, at}`. In TypeScript, `covers` makes the same decision (engine,
 * task/cancel-filter.ts).
 */
export const MATCHING_RULE = `${DECODE_JSON}
local function has_tag(tags, tag)
  for _, each in ipairs(tags) do
    if each == tag then return true end
  end
  return false
end
local function matching_rule(base, rules, id)
  local name, timestamp, stored, retries, member = unpack(redis.call('HMGET', base .. id, 'name', 'timestamp', 'tags', 'retries', 'group'))
  if not name then return nil end
  local retried = -1
  for _, each in ipairs(retries and decode_json(retries) or {}) do
    if not each.copy then retried = each.at end
  end
  local enqueued = tonumber(timestamp or '0') or 0
  local tags = stored and decode_json(stored) or {}
  local group = member and string.match(member, '^%S+')
  for i, rule in ipairs(rules) do
    if enqueued <= rule.before and retried < (rule.at or math.huge) and (rule.task == nil or rule.task == name) and (rule.group == nil or rule.group == group)
      and (rule.tag == nil or has_tag(tags, rule.tag)) then
      return i, name
    end
  end
end
`

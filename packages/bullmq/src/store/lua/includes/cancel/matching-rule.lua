-- matching_rule(base, rules, id) returns the position of the first cancel rule that matches the task, and the task's name. Returns nil if
-- no rule matches. `rules` is a table of `{task?, tag?, group?, before, at}`. In TypeScript, `covers` makes the same decision (engine,
-- task/cancel-filter.ts).
--- @include has-tag

local function matching_rule(base, rules, id)
  local fields = redis.call('HMGET', base .. id, 'name', 'timestamp', 'tags', 'retries', 'group')
  local name, timestamp, tags, retries, member = unpack(fields)
  if not name then
    return nil
  end
  local retried = -1
  for _, each in ipairs(retries and decode_json(retries) or {}) do
    if not each.copy then
      retried = each.at
    end
  end
  local enqueued = tonumber(timestamp or '0') or 0
  local group = member and string.match(member, '^%S+')
  for i, rule in ipairs(rules) do
    if
      enqueued <= rule.before
      and retried < (rule.at or math.huge)
      and (rule.task == nil or rule.task == name)
      and (rule.group == nil or rule.group == group)
      and (rule.tag == nil or has_tag(tags, rule.tag))
    then
      return i, name
    end
  end
end

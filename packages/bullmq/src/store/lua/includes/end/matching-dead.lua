-- matches_dead(base, filter, id) returns whether a dead task matches the filter, `{task?, state?, code?, tag?, text?}` with the text in
-- lower case. The caller checks the time and the fingerprint, which select the tasks that are examined at all. In TypeScript, `matchesDead`
-- makes the same decision (engine, task/dead-filter.ts).
--- @include has-tag

local function matches_dead(base, filter, id)
  local job = base .. id
  if next(filter) == nil then
    return redis.call('EXISTS', job) == 1
  end
  local name, stored = unpack(redis.call('HMGET', job, 'name', 'fingerprint'))
  if not name or filter.task and filter.task ~= name then
    return false
  end
  if filter.state or filter.code then
    local state, code = string.match(stored or '', '^%S+ (%S+) (.*)$')
    if filter.state and filter.state ~= state or filter.code and filter.code ~= code then
      return false
    end
  end
  if filter.tag and not has_tag(redis.call('HGET', job, 'tags'), filter.tag) then
    return false
  end
  if not filter.text then
    return true
  end
  -- The reason begins with the state and the code, unless BullMQ itself has failed the task.
  local reason = redis.call('HGET', job, 'failedReason') or ''
  local message = string.match(reason, '^[A-Z_]+ %b(): (.*)$') or reason
  return string.find(string.lower(message), filter.text, 1, true) ~= nil
end

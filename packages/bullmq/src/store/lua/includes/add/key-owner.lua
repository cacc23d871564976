-- key_owner(base, entry, now) returns the id of the task that has a unique key, or nil if no task has it. `base` is the prefix of the
-- queue's keys, and `now` is in ms since 1970. In TypeScript, `hasKey` makes the same decision (engine, task/unique-key.ts).
--
-- A queue's hash `unique-keys` has an entry for each key: `<task id> <span>`. The span is `s` until the task has started, `f` until it has
-- ended, or a time in ms since 1970. A key that is no longer in use may still have an entry, which the next task with that key overwrites,
-- or which the leader deletes (leader/remove-unique-keys.lua).
local function key_owner(base, entry, now)
  local id, span = string.match(entry, '^(%S+) (%S+)')
  if tonumber(span) then
    return now < tonumber(span) and id or nil
  end
  local name, ended, starts = unpack(redis.call('HMGET', base .. id, 'name', 'finishedOn', 'ats'))
  if not name or ended or span == 's' and tonumber(starts or '0') > 0 then
    return nil
  end
  return id
end

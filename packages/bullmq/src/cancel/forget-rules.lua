#!lua flags=allow-oom
-- Deletes the cancel rules for which a whole pass did not find a matching task.
--
-- A pass misses a task that was fetched before the pass reached the place where the task waited, and that returned from `active` before
-- the pass reached `active`, and a task that moved to where the pass had already been. The set `cancelReturned` holds these tasks
-- (store/lua/includes/cancel/note-moved.lua), and this script empties it page by page. In the current pass's hash, the script records each
-- rule that matches a task in the set. Once the set is empty, the script deletes the other rules.
--
-- The script may be sent again if its reply is lost. The recorded rules are kept until the next pass begins, so a repeated call does not
-- delete a rule because the first call has emptied the set. A call that belongs to an earlier pass, whose records are gone, does nothing.
--
-- KEYS  leader, cancelRules, cancelReturned, cancelPass
-- ARGV  fencing
-- ARGV  pass         the id of the caller's pass
-- ARGV  base
-- ARGV  progress     the prefix of the rules' progress
-- ARGV  rulesText    the rules of the pass that are to be deleted, as JSON
-- ARGV  keepMs       how long to keep the progress of a rule
-- ARGV  groupKeepMs  the same for the rule of a group or run
-- ARGV  limit        how many tasks to examine
--
-- Returns `0 | 1`: 0 if there are more tasks in the set, so that the caller runs the script again; 1 if nothing is left to do. If there is
-- a newer leader or a newer pass, no rule is deleted.
--- @include time
--- @include fence
--- @include matching-rule

if is_deposed(leader, fencing) or redis.call('HGET', cancelPass, 'id') ~= pass then
  return 1
end
local rules = decode_json(rulesText)
for _, id in ipairs(redis.call('SPOP', cancelReturned, limit)) do
  local i = matching_rule(base, rules, id)
  if i then
    redis.call('HSET', cancelPass, rules[i].id, 'matches')
  end
end
if redis.call('EXISTS', cancelReturned) == 1 then
  return 0
end
local now = whole(millis())
for _, rule in ipairs(rules) do
  if redis.call('HEXISTS', cancelPass, rule.id) == 0 and redis.call('HDEL', cancelRules, rule.id) == 1 then
    redis.call('HSET', progress .. rule.id, 'doneAt', now)
    redis.call('PEXPIRE', progress .. rule.id, rule.group and groupKeepMs or keepMs)
  end
end
if redis.call('EXISTS', cancelRules) == 0 then
  redis.call('DEL', cancelPass)
end
return 1

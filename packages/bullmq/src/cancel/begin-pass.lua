#!lua flags=allow-oom
-- Begins one of the bulk canceller's passes through a queue. If there are more rules than one pass takes, each pass selects a random
-- subset.
--
-- KEYS  leader, cancelRules, cancelReturned, cancelPass
-- ARGV  fencing
-- ARGV  pass  an id of the new pass
--
-- Returns `[now: number, rules: string[]] | null`: Redis's time in ms and the rules as JSON, or null if there are no rules or if there
-- is a newer leader.
--- @include time
--- @include fence

-- Each script of a pass compares up to 200 tasks with each of the rules.
local RULES_PER_PASS = 50

if is_deposed(leader, fencing) then
  return false
end
local found = redis.call('HRANDFIELD', cancelRules, RULES_PER_PASS, 'WITHVALUES')
if #found == 0 then
  return false
end
local rules = {}
for i = 2, #found, 2 do
  rules[#rules + 1] = found[i]
end
redis.call('DEL', cancelReturned, cancelPass)
redis.call('HSET', cancelPass, 'id', pass)
return { millis(), rules }

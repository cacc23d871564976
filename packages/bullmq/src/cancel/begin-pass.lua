#!lua flags=allow-oom
-- Begins one of the bulk canceller's passes through a queue. If there are more rules than one pass takes, each pass selects a random
-- subset.
--
-- KEYS[1]  leader          the queue's fencing number
-- KEYS[2]  cancelRules     the rules
-- KEYS[3]  cancelReturned  the tasks that have returned from `active`, or moved back, during a pass
-- KEYS[4]  cancelPass      the current pass
-- ARGV[1]  fencing         the leader's number
-- ARGV[2]  pass            an id of the new pass
--
-- Returns `[now: number, rules: string[]] | null`: Redis's time in ms and the rules as JSON, or null if there are no rules or if there
-- is a newer leader.
local leader, cancelRules, cancelReturned, cancelPass = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local fencing, pass = ARGV[1], ARGV[2]
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

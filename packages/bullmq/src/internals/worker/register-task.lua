#!lua flags=allow-oom
-- Stores a task that a handler has registered for the end of its own task: a compensation, or a follow-up of a failure or of any end.
-- A registration replaces an earlier one with the same letter and identity, in its place, so the script may be sent again. Runs even if
-- Redis is full, because running tasks must be able to end.
--
-- KEYS  job, totals
-- ARGV  token         the lock's token
-- ARGV  fencingToken  that of the attempt
-- ARGV  letter        the first letter of the registration's line, or '' for a compensation, whose lines have a field of their own
-- ARGV  identity      the registration's
-- ARGV  template      the registered task
-- ARGV  nextLetter    of the lines of a compensation for those that run after it, which do not count towards the limits
-- ARGV  maxLines      the most compensations, and the most follow-ups
-- ARGV  maxBytes      their most bytes
-- ARGV  mark          the first character of the field `atEnd` of a task with registrations
--
-- Returns `Registration`
--- @type Registration from @bullpen/engine/internal
--- @include lock

if not owns_lock(job, token) or redis.call('HGET', job, 'ats') ~= fencingToken then
  return 'lock_lost'
end
local field = letter == '' and 'compensations' or 'followUps'
local stored, at_end = unpack(redis.call('HMGET', job, field, 'atEnd'))
stored, at_end = stored or '', at_end or ''
local head = letter .. identity .. ' '
local own, lines, is_known, counted, bytes = head .. template, {}, false, 0, 0
local function add(line)
  lines[#lines + 1] = line
  if string.sub(line, 1, 2) ~= nextLetter .. '{' then
    counted, bytes = counted + 1, bytes + #line
  end
end
for line in string.gmatch(stored, '[^\n]+') do
  local is_same = string.sub(line, 1, #head) == head
  add(is_same and own or line)
  is_known = is_known or is_same
end
if not is_known then
  add(own)
end
if counted > tonumber(maxLines) or bytes > tonumber(maxBytes) then
  return 'full'
end
local text = table.concat(lines, '\n')
redis.call('HSET', job, field, text, 'atEnd', mark .. string.sub(at_end, 2))
redis.call('HINCRBY', totals, 'bytes', #text - #stored)
return 'stored'

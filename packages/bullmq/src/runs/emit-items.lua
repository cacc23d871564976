#!lua
-- Adds the items that an attempt of a source has emitted to its run. Values whose positions were emitted before are ignored, so that the
-- script can be sent again.
--
-- KEYS[1]  base        the prefix of the run's keys
-- KEYS[2]  meta        the fields of the run
-- KEYS[3]  definition  its settings and templates
-- KEYS[4]  tasks       the tasks that it awaits
-- KEYS[5]  inputs      long inputs of tasks
-- KEYS[6]  early       outputs that came before their turn
-- KEYS[7]  results     what will be reduced
-- KEYS[8]  errors      the errors that are kept
-- KEYS[9]  outbox      what has to be delivered
-- ARGV[1]  id           the run
-- ARGV[2]  channels     the prefix of the channels
-- ARGV[3]  incarnation  distinguishes the run from others that have had its id
-- ARGV[4]  segment      the number of the source's segment
-- ARGV[5]  token        the attempt's fencing token
-- ARGV[6]  from         the position of the first item
-- ARGV[7]  count        how many items the values contain
-- ARGV[8]  digest       the digest after the last item
-- ARGV[9]  cursor       the cursor after the last item
-- ARGV[10]  isLast      '1' if it is the source's last
-- ARGV...  the values
--
-- Returns `RunReply<'stopped' | 'fenced' | [emitted: number, batch: number, free: number, digest: string, cursor: string]>`: `stopped` means
-- that the source is not needed any more, and `fenced` that another attempt has replaced this one.
--- @type RunReply from ./run-change.ts
local base, meta, definition, tasks, inputs = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local early, results, errors, outbox = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local id, channels, incarnation, segment, token = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local from, count, digest, cursor, isLast = ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10]
--- @include run

local FIRST = 11
if run.state ~= 'running' or run.incarnation ~= incarnation then
  return { false, {}, 'stopped', {} }
end
if
  run.source ~= 'active'
  or run.segment ~= segment
  or tonumber(token) < number('fencingToken')
  or tonumber(from) > number('emitted')
then
  return { false, {}, 'fenced', {} }
end
set('fencingToken', token)
set('isWaiting', '')
-- Only the source's last batch can be shorter.
local fresh = FIRST + math.ceil((number('emitted') - from) / tonumber(run.batch1 or 1))
for i = fresh, #ARGV do
  push_item(ARGV[i])
end
if fresh <= #ARGV then
  set('emitted', from + count)
  set('digest', digest)
  set('cursor', cursor)
end
if isLast == '1' and from + count == number('emitted') then
  set('isExhausted', '1')
end
if run.isExhausted ~= '1' and free() <= 0 then
  set('isWaiting', '1')
end
local answer = reply(millis())
answer[3] = { number('emitted'), number('batch1'), free(), run.digest or '', run.cursor or '' }
return answer

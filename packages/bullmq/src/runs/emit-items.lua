#!lua
-- Adds the items that an attempt of a source has emitted to its run. Values whose positions were emitted before are ignored, so that the
-- script can be sent again.
--
-- KEYS  base, meta, definition, tasks, inputs, early, results, errors, outbox
-- ARGV  id
-- ARGV  channels     the prefix of the channels
-- ARGV  incarnation  distinguishes the run from others that have had its id
-- ARGV  segment      the number of the source's segment
-- ARGV  token        the attempt's fencing token
-- ARGV  from         the position of the first item
-- ARGV  count        how many items the values contain
-- ARGV  digest       the digest after the last item
-- ARGV  cursor       the cursor after the last item
-- ARGV  isLast       '1' if it is the source's last
-- ARGV[11...]  the values
--
-- Returns `RunReply<'stopped' | 'fenced' | [emitted: number, batch: number, free: number, digest: string, cursor: string]>`: `stopped` means
-- that the source is not needed any more, and `fenced` that another attempt has replaced this one.
--- @type RunReply from ./run-change.ts
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

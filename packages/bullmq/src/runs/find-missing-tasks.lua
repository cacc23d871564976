#!lua flags=no-writes
-- Returns which of the given tasks do not exist in their queue, and the outbox of the queue, as of the same moment.
--
-- KEYS[1]  outbox  the queue's outbox
-- ARGV[1]  base    the prefix of the queue's keys
-- ARGV...  the ids of the tasks
--
-- Returns `[outbox: OutboxSpanReply, missing: string[]]`
--- @type OutboxSpanReply from ../outbox/outbox-span.ts
local outbox = KEYS[1]
local base = ARGV[1]
--- @include outbox-span

local missing = {}
for i = 2, #ARGV do
  if redis.call('EXISTS', base .. ARGV[i]) == 0 then
    missing[#missing + 1] = ARGV[i]
  end
end
return { outbox_span(outbox), missing }

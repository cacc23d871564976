#!lua flags=no-writes
-- Returns which of the given tasks do not exist in their queue, and the outbox of the queue, as of the same moment.
--
-- KEYS  outbox
-- ARGV  base
-- ARGV[2...]  the ids of the tasks
--
-- Returns `[outbox: OutboxSpanReply, missing: string[]]`
--- @type OutboxSpanReply from ../outbox/outbox-span.ts
--- @include outbox-span

local missing = {}
for i = 2, #ARGV do
  if redis.call('EXISTS', base .. ARGV[i]) == 0 then
    missing[#missing + 1] = ARGV[i]
  end
end
return { outbox_span(outbox), missing }

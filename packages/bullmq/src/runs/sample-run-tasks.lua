#!lua flags=no-writes
-- Reads which tasks a pipeline run awaits, a sample at a time, and the outbox of the run, as of the same moment.
--
-- KEYS  meta, tasks, outbox
-- ARGV  cursor  where the sample begins
-- ARGV  count   about how many tasks it contains
-- ARGV[3...]  the names of tasks
--
-- Returns `[incarnation: string, outbox: OutboxSpanReply, awaited: string[], sample: string[], cursor: string] | null`: the names of those
-- of the given tasks that the run still awaits, the names of the next tasks that it awaits, and where the sample after that begins ('0'
-- after the last one). Null if there is no such run.
--- @type OutboxSpanReply from ../outbox/outbox-span.ts
--- @include outbox-span

local incarnation = redis.call('HGET', meta, 'incarnation')
if not incarnation then
  return false
end
local awaited = {}
for i = 3, #ARGV do
  if redis.call('SISMEMBER', tasks, ARGV[i]) == 1 then
    awaited[#awaited + 1] = ARGV[i]
  end
end
local sample = redis.call('SSCAN', tasks, cursor, 'COUNT', count)
return { incarnation, outbox_span(outbox), awaited, sample[2], sample[1] }

#!lua flags=allow-oom
-- Cancels a pipeline run by request. A run that is stopping or has ended stays as it is.
--
-- KEYS  base, meta, definition, tasks, inputs, early, results, errors, outbox
-- ARGV  id
-- ARGV  channels  the prefix of the channels
-- ARGV  by        who cancels the run
--
-- Returns `RunReply<false | null> | null`: null if there is no such run.
--- @type RunReply from ./run-change.ts
--- @include run

if not run.state then
  return false
end
local now = millis()
stop('cancelled', by, now)
return reply(now)

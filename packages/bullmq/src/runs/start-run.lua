#!lua
-- Starts a pipeline run. If the run exists, nothing changes.
--
-- KEYS  base, meta, definition, tasks, inputs, early, results, errors, outbox
-- ARGV  id
-- ARGV  channels  the prefix of the channels
-- ARGV  settings  the settings and templates as JSON
-- ARGV  totalMs   the total timeout
-- ARGV  spareMs   for how long after its timeout an unfinished run is kept
-- ARGV[6...]  the further fields of the run's hash, each with its value
--
-- Returns `RunReply<false | null>`
--- @type RunReply from ./run-change.ts
--- @include run

local now = millis()
if run.state then
  return reply(now)
end
for i = 6, #ARGV, 2 do
  set(ARGV[i], ARGV[i + 1])
end
stages = number('stages')
set('state', 'running')
set('createdAt', now)
set('timeoutAt', now + totalMs)
set('expiresAt', now + totalMs + spareMs)
set('source', 'active')
for _, name in ipairs({ 'fencingToken', 'emitted', 'results', 'resultBytes', 'errorCount' }) do
  set(name, 0)
end
set('segment', 1)
set('reduce', run.reduceQueue and 'pending' or 'none')
write('SET', definition, settings)
start(0, 1, '')
touched[meta] = true
return reply(now)

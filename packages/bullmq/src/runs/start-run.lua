#!lua
-- Starts a pipeline run. If the run exists, nothing changes.
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
-- ARGV[3]  settings     the settings and templates as JSON
-- ARGV[4]  totalMs      the total timeout
-- ARGV[5]  spareMs      for how long after its timeout an unfinished run is kept
-- ARGV...  the further fields of the run's hash, each with its value
--
-- Returns `RunReply<false | null>`
--- @type RunReply from ./run-change.ts
local base, meta, definition, tasks, inputs = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local early, results, errors, outbox = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local id, channels, settings, totalMs, spareMs = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
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

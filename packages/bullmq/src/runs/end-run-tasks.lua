#!lua flags=allow-oom
-- Records the ends of a pipeline run's tasks, and starts what may start now. Only the first end of each task counts, so that the script
-- can be repeated. Takes constant time for each task.
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
-- ARGV...  for each task, its stage, its position, the letter of its end and its value, which is '' if it has none
--
-- Returns `RunReply<false | null> | null`: null if there is no such run.
--- @type RunReply from ./run-change.ts
local base, meta, definition, tasks, inputs = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local early, results, errors, outbox = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local id, channels, incarnation = ARGV[1], ARGV[2], ARGV[3]
--- @include run

if run.incarnation ~= incarnation then
  return false
end
local now = millis()
for i = 4, #ARGV, 4 do
  end_run_task(tonumber(ARGV[i]), ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], now)
end
return reply(now)

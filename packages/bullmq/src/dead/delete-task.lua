#!lua flags=allow-oom
-- Deletes one dead task.
--
-- KEYS[1]  job   the task
-- KEYS[2]  dead  the dead tasks
-- ARGV[1]  base  the prefix of the queue's keys
-- ARGV[2]  id    the task's id
--
-- Returns `DeadTaskAnswer`: what the script did.
--- @type DeadTaskAnswer from @bullpen/engine/internal
local job, dead = KEYS[1], KEYS[2]
local base, id = ARGV[1], ARGV[2]
--- @include remove-ended

if redis.call('EXISTS', job) == 0 then
  return 'not_found'
end
if not redis.call('ZSCORE', dead, id) then
  return 'not_dead'
end
remove_ended_task(base, 'dead', id)
return 'done'

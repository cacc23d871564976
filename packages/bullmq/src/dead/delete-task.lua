#!lua flags=allow-oom
-- Deletes one dead task.
--
-- KEYS  job, dead
-- ARGV  base, id
--
-- Returns `DeadTaskAnswer`: what the script did.
--- @type DeadTaskAnswer from @bullpen/engine/internal
--- @include remove-ended

if redis.call('EXISTS', job) == 0 then
  return 'not_found'
end
if not redis.call('ZSCORE', dead, id) then
  return 'not_dead'
end
remove_ended_task(base, 'dead', id)
return 'done'

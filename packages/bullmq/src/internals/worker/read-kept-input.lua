#!lua flags=no-writes
-- Reads the input of a task that its pipeline run keeps.
--
-- KEYS[1]  meta         the fields of the run
-- KEYS[2]  inputs       the inputs that the run keeps
-- ARGV[1]  incarnation  that of the run
-- ARGV[2]  task         the number of its stage and its position
--
-- Returns `string | null`: the input, or null if the run does not have it.
local meta, inputs = KEYS[1], KEYS[2]
local incarnation, task = ARGV[1], ARGV[2]

return redis.call('HGET', meta, 'incarnation') == incarnation and redis.call('HGET', inputs, task)

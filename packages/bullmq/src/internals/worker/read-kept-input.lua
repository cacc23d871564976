#!lua flags=no-writes
-- Reads the input of a task that its pipeline run keeps.
--
-- KEYS  meta, inputs
-- ARGV  incarnation  that of the run
-- ARGV  task         the number of its stage and its position
--
-- Returns `string | null`: the input, or null if the run does not have it.
return redis.call('HGET', meta, 'incarnation') == incarnation and redis.call('HGET', inputs, task)

#!lua flags=no-writes
-- Reads a pipeline run.
--
-- KEYS  base, meta, definition
--
-- Returns `[fields: string[], definition: string, waiting: number[]] | null`: the fields of the run's hash, its settings and templates as
-- JSON, and how many items wait for each stage, and at last, how many outputs wait for the rest of a batch of results. Null if there is
-- no such run.
local fields = redis.call('HGETALL', meta)
if #fields == 0 then
  return false
end
local waiting = {}
for stage = 1, redis.call('HGET', meta, 'stages') + 1 do
  waiting[stage] = redis.call('LLEN', base .. 'waiting:' .. stage)
end
return { fields, redis.call('GET', definition), waiting }

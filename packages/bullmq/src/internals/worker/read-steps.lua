#!lua flags=no-writes
-- Reads the results of a task's finished steps.
--
-- KEYS  job
-- ARGV  prefix  that of the steps' fields in the job's hash
--
-- Returns `string[]`: the name and the result of each step, in turns.
local found = {}
for _, field in ipairs(redis.call('HKEYS', job)) do
  if string.sub(field, 1, #prefix) == prefix then
    found[#found + 1] = string.sub(field, #prefix + 1)
    found[#found + 1] = redis.call('HGET', job, field)
  end
end
return found

-- take_deduplication(key, id, options)  lets a job have a deduplication id, whose key is `key` (deduplication.lua)
-- deduplication_ms(options)             returns how long a job has the deduplication id, in ms, or nil if it has it until it ends
--
-- `options` is the option `de` of a job, decoded:
--
--   id                its deduplication id
--   ttl               how long the job has the id, in ms
--   extend            whether each job that is not added because of it extends that time
--   replace           whether a delayed job that has the id gives way to a new one
--   reschedule        whether a delayed job that has the id becomes due when a new one would be, unless it gives way
--   keepLastIfActive  whether the last job that was not added while the job was running is added when it ends. `ttl` does not apply then
--- @include time

local function deduplication_ms(options)
  local ttl = options.ttl or 0
  return ttl > 0 and not options.keepLastIfActive and ttl or nil
end

local function take_deduplication(key, id, options)
  local lifetime = deduplication_ms(options)
  if lifetime then
    redis.call('SET', key, id, 'PX', whole(lifetime))
  else
    redis.call('SET', key, id)
  end
end

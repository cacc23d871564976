-- BullMQ's deduplication of jobs, which only a team's own Queue uses. The key `de:<id>` holds the id of the job that has this deduplication
-- id, and expires if the deduplication id has a lifetime. While that job runs, the hash `dn:<id>` keeps the last job that was added with
-- the option `keepLastIfActive`. The field `deid` of a job is its deduplication id.
--
-- read_next_job(deduplication)                        returns the job that the hash keeps, or nil
-- end_deduplicated(id, deduplication, next_job, at)   releases the deduplication id of a job that ends, and adds `next_job`, unless it
--                                                     is nil or the end of another job has added it since. `at` is in ms since 1970
--
-- `base` is the prefix of the queue's keys.
--- @include bullmq-job
--- @include task-charge

local function read_next_job(deduplication)
  local names = { 'name', 'data', 'opts', 'jid', 'pk', 'pd', 'pdk', 'rjk' }
  local name, data, options, id, parent_key, parent, siblings, repeat_key =
    unpack(redis.call('HMGET', base .. 'dn:' .. deduplication, unpack(names)))
  if not options then
    return nil
  end
  return {
    id = id,
    options = cjson.decode(options),
    siblings = siblings,
    fields = {
      name = name,
      data = data,
      opts = options,
      parentKey = parent_key,
      parent = parent,
      rjk = repeat_key,
    },
  }
end

local function take_deduplication(deduplication, id, options)
  local lifetime = not options.keepLastIfActive and options.ttl or 0
  if lifetime > 0 then
    redis.call('SET', base .. 'de:' .. deduplication, id, 'PX', whole(lifetime))
  else
    redis.call('SET', base .. 'de:' .. deduplication, id)
  end
end

local function add_next_job(deduplication, job, at)
  -- BullMQ also increments its counter of ids if the job already has an id.
  local counted = redis.call('INCR', base .. 'id')
  local id, options = job.id or whole(counted), job.options
  take_deduplication(deduplication, id, options.de or {})
  local delay, priority = options.delay or 0, options.priority or 0
  local hash = { 'timestamp', at, 'delay', whole(delay), 'priority', whole(priority) }
  job.fields.deid = options.de and options.de.id
  for name, value in pairs(job.fields) do
    if value then
      hash[#hash + 1] = name
      hash[#hash + 1] = value
    end
  end
  redis.call('HSET', base .. id, unpack(hash))
  redis.call('XADD', base .. 'events', '*', 'event', 'added', 'jobId', id, 'name', job.fields.name)
  redis.call('HINCRBY', base .. 'totals', 'accepted', 1)
  charge(base, base .. id, 1)
  place_job(base, id, {
    due = delay > 0 and at + delay or nil,
    part = 'scheduled',
    priority = priority,
    to_head = options.lifo,
  })
  if job.siblings then
    redis.call('SADD', job.siblings, base .. id)
  end
  redis.call('DEL', base .. 'dn:' .. deduplication)
end

local function end_deduplicated(id, deduplication, next_job, at)
  local key = base .. 'de:' .. deduplication
  if redis.call('PTTL', key) == -1 and redis.call('GET', key) == id then
    redis.call('DEL', key)
  end
  if next_job and redis.call('EXISTS', base .. 'dn:' .. deduplication) == 1 then
    add_next_job(deduplication, next_job, at)
  end
end

-- Ends the deduplication of a job in BullMQ, which only a team's own Queue uses; deduplicate.lua begins it. The key `de:<id>` holds the
-- id of the job that has this deduplication id, and expires if the deduplication id has a lifetime. While that job runs, the hash
-- `dn:<id>` keeps the last job that was added with the option `keepLastIfActive`. The field `deid` of a job is its deduplication id.
--
-- read_next_job(deduplication)                        returns the job that the hash keeps, or nil
-- end_deduplicated(id, deduplication, next_job, at)   releases the deduplication id of a job that ends, and adds `next_job`, unless it
--                                                     is nil or the end of another job has added it since. `at` is in ms since 1970
--
-- `base` is the prefix of the queue's keys.
--- @include deduplication-key
--- @include own-job

local function read_next_job(deduplication)
  local names = { 'name', 'data', 'opts', 'jid', 'pk', 'pd', 'pdk', 'rjk' }
  local name, data, text, id, parent_key, parent, siblings, repeat_key =
    unpack(redis.call('HMGET', base .. 'dn:' .. deduplication, unpack(names)))
  if not text then
    return nil
  end
  local options = cjson.decode(text)
  return {
    id = id,
    name = name,
    data = data,
    options = text,
    delay = options.delay or 0,
    priority = options.priority or 0,
    lifo = options.lifo,
    deduplication = options.de,
    repeatKey = repeat_key,
    parentKey = parent_key,
    parent = parent,
    siblings = siblings,
  }
end

local function add_next_job(deduplication, job, at)
  -- BullMQ also increments its counter of ids if the job already has an id.
  local counted = redis.call('INCR', base .. 'id')
  local id = job.id or whole(counted)
  take_deduplication(base .. 'de:' .. deduplication, id, job.deduplication or {})
  job.at = at
  add_own_job(base, id, job)
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

-- Decides by BullMQ's deduplication whether a job that a team adds is added. The keys are those of deduplication.lua.
--
-- deduplicate(home, id, job)  returns the id of the job because of which this one is not added, or nil if the job is to be added, which
--                             then has the deduplication id. `job` is that of own-job.lua, and `home` is the prefix of its queue's
--                             keys
--- @include deduplication-key
--- @include delayed-set
--- @include delete-counted
--- @include own-job

-- Removes a job if it is delayed, and returns whether it was.
local function remove_delayed(home, id)
  if not leave_delayed(home, id) then
    return false
  end
  delete_counted(home, id)
  redis.call('XADD', home .. 'events', '*', 'event', 'removed', 'jobId', id, 'prev', 'delayed')
  return true
end

local function note_deduplicated(home, kept, deduplication, id)
  add_event_of(home, 'deduplicated', kept, 'deduplicationId', deduplication, 'deduplicatedJobId', id)
end

-- Keeps the job for the end of the one that runs, whose deduplication id must not expire before.
local function keep_next_job(key, next_key, id, job)
  local fields = { 'name', job.name, 'data', job.data, 'opts', job.options, 'jid', id }
  append_given(fields, 'pk', job.parentKey)
  append_given(fields, 'pd', job.parent)
  append_given(fields, 'pdk', job.siblings)
  append_given(fields, 'rjk', job.repeatKey)
  redis.call('DEL', next_key)
  redis.call('HSET', next_key, unpack(fields))
  redis.call('PERSIST', key)
end

local function reschedule(home, id, job)
  if redis.call('ZSCORE', home .. 'delayed', id) then
    local part = redis.call('ZSCORE', home .. 'retrying', id) and 'retrying' or 'scheduled'
    redis.call('HSET', home .. id, 'delay', job.delay)
    delay_job(home, id, job.at + math.max(job.delay, 0), part)
  end
end

local function deduplicate(home, id, job)
  local options, may_change = job.deduplication, not job.hasChildren
  local deduplication, replaces = options.id, options.replace and may_change
  local key, next_key = home .. 'de:' .. deduplication, home .. 'dn:' .. deduplication
  local holder = redis.call('GET', key)
  if not holder then
    return take_deduplication(key, id, options)
  end
  if replaces and remove_delayed(home, holder) then
    note_deduplicated(home, id, deduplication, holder)
    redis.call('DEL', next_key)
    if deduplication_ms(options) and not options.extend then
      redis.call('SET', key, id, 'KEEPTTL')
      return nil
    end
    return take_deduplication(key, id, options)
  end
  -- A job that is gone has not released its id.
  if redis.call('PTTL', key) == -1 and redis.call('EXISTS', home .. holder) == 0 then
    redis.call('DEL', next_key)
    return take_deduplication(key, id, options)
  end
  local is_kept = options.keepLastIfActive and redis.call('LPOS', home .. 'active', holder)
  if is_kept then
    keep_next_job(key, next_key, id, job)
  elseif replaces then
    return holder
  elseif options.extend and (options.ttl or 0) > 0 then
    take_deduplication(key, holder, options)
  end
  note_deduplicated(home, holder, deduplication, id)
  if options.reschedule and may_change and not replaces then
    reschedule(home, holder, job)
  end
  return holder
end

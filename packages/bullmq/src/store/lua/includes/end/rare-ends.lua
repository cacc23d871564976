-- What follows from the ends of few tasks (task-end.lua): those of BullMQ's flows and with a deduplication id, those that are not
-- completed, and those that are not kept.
--
-- Some ends have (attempt-end.lua):
--
--   fingerprint             the kind of the error of a dead task (fingerprints.lua)
--   followUps               the lines of the follow-ups that the handler has added for a success (outbox.lua)
--   rule                    the cancel rule because of which the task ends
--   maxAttempts             how many attempts a task has that is not completed
--   metrics                 how many minutes BullMQ's metrics list
--   keptSince, keptCount    which tasks are kept among those with this final status, if this end also removes old ones (remove-ended.lua)
--   keepAge, keepCount and  the same as BullMQ's options of a job or a Worker say it, in seconds, among the jobs that are completed or have
--   keepLimit               failed. `keepCount` is '0' if the job itself is not kept
--
-- decode_end(ending)                        decodes what tell_others needs
-- tell_others(ending)                       releases the job's deduplication id, and tells the job's parent
-- store_end(ending, set, result, attempts)  stores the end in `set`, and its value in the field `result`, and removes jobs that BullMQ's
--                                           options do not keep
-- note_exhausted(id, attempts)              adds BullMQ's event of a failed job without attempts
-- remove_old(ending)                        removes old tasks with this final status
-- remove_unkept(ending)                     removes a task that is not kept, such as that of a run
--
-- `base`, `now` and `time` are those of end-and-start.lua.
--- @include time
--- @include deduplication
--- @include flow-parent
--- @include remove-ended

local REMOVED_PER_END = 16

local function decode_end(ending)
  ending.parent = ending.parent and cjson.decode(ending.parent)
  ending.next_job = ending.deduplication and read_next_job(ending.deduplication)
end

local function tell_others(ending)
  local job, value = ending.job, ending.value
  if ending.deduplication then
    end_deduplicated(ending.id, ending.deduplication, ending.next_job, now)
  end
  if ending.parent_key and ending.verdict == 'completed' then
    report_completed(ending.parent_key, job, value, now)
  elseif ending.parent then
    report_to_parent(ending.parent, job, value, now)
  end
end

-- If the end has removed its task, remembers the end. Nothing else would show that it was carried out if it is sent again (resent-end.lua).
local function remember_if_removed(ending)
  if ending.fencing_token ~= '' and redis.call('EXISTS', ending.job) == 0 then
    remember_removal(base, ending.id .. ' e' .. ending.fencing_token)
  end
end

local function remove_unkept(ending)
  remove_ended_task(base, ending.verdict, ending.id)
  remember_if_removed(ending)
end

local function store_end(ending, set, result, attempts)
  local id, job, status, keep_count = ending.id, ending.job, ending.verdict, ending.keepCount
  if keep_count == '0' then
    return remove_unkept(ending)
  end
  local fields = ending.fields or {}
  local n = #fields
  fields[n + 1], fields[n + 2], fields[n + 3], fields[n + 4] = 'atm', attempts, result, ending.value
  fields[n + 5], fields[n + 6], fields[n + 7], fields[n + 8] = 'finishedOn', time, 'lock', ''
  redis.call('HSET', job, unpack(fields))
  if set == 'completed' then
    redis.call('ZADD', base .. 'completed', time, id)
  else
    enter_failed(base, id, status, time, status == 'dead' and ending.fingerprint or nil)
    if ending.deferred then
      redis.call('HDEL', job, 'defa')
    end
  end
  if ending.keepAge or keep_count then
    local since = ending.keepAge and whole(math.floor(now - ending.keepAge * 1000) + 1) or ''
    remove_ended(base, set, since, keep_count or '', tonumber(ending.keepLimit))
    remember_if_removed(ending)
  end
end

local function note_exhausted(id, attempts)
  local event = { 'event', 'retries-exhausted', 'jobId', id, 'attemptsMade', whole(attempts) }
  redis.call('XADD', base .. 'events', '*', unpack(event))
end

local function remove_old(ending)
  remove_ended(base, ending.verdict, ending.keptSince or '', ending.keptCount or '', REMOVED_PER_END)
  remember_if_removed(ending)
end

-- Ends an attempt: refuses the end or carries out its verdict.
--
-- The arguments of an end are
--
--   the verdict, and its value
--   the fencing token of the attempt, or '' if it is not known
--   the number of named arguments, and the name and the value of each
--   the number of fields to store with the task, and the name and the value of each
--
-- The named arguments are
--
--   calls    what the attempt has shown about services, as JSON (gates.lua)
--   events   the events of the attempt (task-events.lua)
--   budget   see retry-budget.lua
--   ...      what only some verdicts have (rare-ends.lua, task-return.lua)
--
--   verdict                            value          the task
--   completed                          the result     has ended
--   dead, cancelled, expired           the reason     has ended
--   retrying                           a delay in ms  has failed, and is delayed. The attempt counts
--   retried                            'head' or ''   has failed, and waits again at once: behind the others, or before them. The attempt
--                                                     counts
--   scheduled                          a delay in ms  is snoozed: it is delayed, and the attempt does not count
--   requeued                           ''             was interrupted, for example by a drain, and waits again, before the others
--   released                           ''             did not run, because its pool drains or is full, and waits again, before the others.
--                                                     Its start does not count
--   postponed                          a delay in ms  did not run, because its worker has no free place for a quarantined task, and is
--                                                     delayed for a moment. Its start does not count
--
-- read_end(id, token, at)  returns the end of the task with this id and the token of its lock ('0' if it has none), whose arguments
--                          begin at this position, and the position after them
-- end_attempt(ending)      returns the reply, and whether the end was carried out now
--
-- An end that is not refused takes the task out of `active`, gives back what the task has held of limits, counts its calls of services, and
-- then carries out the verdict: end_task (task-end.lua) for a task that has ended, put_back (task-return.lua) for another. Both empty the
-- task's lock. What BullMQ has stored of a parent or of deduplication is decoded before the first write, because Redis keeps what a
-- script has written before an error.
--
-- An end is refused with BullMQ's codes: -1 if the task does not exist, -2 if its lock is gone, -3 if it is not active, -4 if it has
-- children that have not ended, -6 if another attempt has the lock, and -9 if one of its children has failed. By then, nothing has been
-- written.
--
-- If the reply is lost, the end is sent again. The lock is gone by then, but what the attempt has stored shows that it has ended: the reply
-- is 0. The fencing token shows it if the task has started again since, with the same token, or in a Worker without Bullpen's backend, whose
-- start leaves the field as it is.
--
-- Expects: base, has_ended and features, which end-and-start.lua has, and rare (rare-functions.lua).
--- @include task-end
--- @include lock
--- @include unmark

-- The table has all of its fields from the beginning, because Lua would take longer to enlarge it for one after the other.
local function read_end(id, token, at)
  local ending = {
    id = id,
    job = base .. id,
    token = token,
    verdict = ARGV[at],
    value = ARGV[at + 1],
    fencing_token = ARGV[at + 2],
    attempts = 0,
    at_end = false,
    lane = false,
    priority = 0,
    deferred = false,
    has_key = false,
    deduplication = false,
    parent_key = false,
    parent = false,
  }
  local first = at + 4
  local last = first + 2 * tonumber(ARGV[first - 1])
  for i = first, last - 1, 2 do
    ending[ARGV[i]] = ARGV[i + 1]
  end
  first = last + 1
  last = first + 2 * tonumber(ARGV[first - 1])
  if last > first then
    ending.fields = { unpack(ARGV, first, last - 1) }
  end
  return ending, last
end

-- Reads the task into `ending`. Returns the code with which the end is refused, 0 if it has been stored before, or nil.
local function refusal_of(ending)
  local job, token = ending.job, ending.token
  local name, lock, starts, attempts, at_end, lane, priority, deferred, deduplication, parent_key, parent = unpack(
    redis.call(
      'HMGET',
      job,
      'name',
      'lock',
      'ats',
      'atm',
      'atEnd',
      'lane',
      'priority',
      'defa',
      'deid',
      'parentKey',
      'parent'
    )
  )
  if not name and redis.call('EXISTS', job) == 0 then
    return (rare('resent').was_deleted(ending) or rare('resent').has_gone_on(ending)) and 0 or -1
  end
  ending.attempts, ending.at_end, ending.lane = tonumber(attempts or '0'), at_end, lane
  ending.priority, ending.deferred, ending.deduplication = tonumber(priority or '0') or 0, deferred, deduplication
  ending.parent_key, ending.parent = parent_key, parent
  if ending.verdict == 'completed' and redis.call('EXISTS', job .. ':dependencies', job .. ':unsuccessful') > 0 then
    return redis.call('EXISTS', job .. ':dependencies') == 1 and -4 or -9
  end
  if token == '0' then
    return nil
  end
  local owner = owner_of(lock)
  if not owner then
    -- A Worker without Bullpen's backend may return a job through this script (internals/worker/refused-worker.ts).
    owner = redis.call('GET', job .. ':lock')
    ending.has_key = owner and true
  end
  if owner == token and (ending.fencing_token == '' or ending.fencing_token == starts) then
    return nil
  end
  return (rare('resent').was_stored(ending) or rare('resent').has_gone_on(ending)) and 0 or owner and -6 or -2
end

local function end_attempt(ending)
  local id, verdict = ending.id, ending.verdict
  local refusal = refusal_of(ending)
  if refusal then
    return refusal, false
  end
  local is_end = verdict == 'completed' or verdict == 'dead' or verdict == 'cancelled' or verdict == 'expired'
  if is_end and (ending.parent or ending.deduplication) then
    rare('ends').decode_end(ending)
  end
  if redis.call('LREM', base .. 'active', '-1', id) == 0 then
    return -3, false
  end
  if ending.token ~= '0' then
    unmark(id)
  end
  if ending.has_key then
    redis.call('DEL', ending.job .. ':lock')
  end
  if ending.lane then
    features = rare('turns').give_back(ending.lane)
  end
  if ending.calls then
    rare('calls').gates().count_calls(id, ending.calls)
  end
  if is_end then
    end_task(ending)
    return 0, true
  end
  return rare('returns').put_back(ending), true
end

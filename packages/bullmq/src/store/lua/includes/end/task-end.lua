-- Ends a task: it is completed, dead, cancelled or expired (attempt-end.lua). BullMQ's metrics and event stream change as in BullMQ.
-- Whatever few tasks have is in rare-ends.lua.
--
-- end_task(ending)  ends a task that has left `active`: tells the job's parent, writes the outbox, stores the end, adds the events, and
--                   removes what is not to be kept. Its charge is refunded by refund_ended
-- refund_ended()    refunds the charges of all tasks that have ended. The script calls it once, at its end
--
-- `base`, `time`, `now` and `has_ended` are those of end-and-start.lua.
--- @include task-charge
--- @include queue-meta

local refunded = 0

local function end_task(ending)
  local id, job, status, value = ending.id, ending.job, ending.verdict, ending.value
  local is_completed, is_unkept, attempts = status == 'completed', false, ending.attempts + 1
  local set, result = 'failed', 'failedReason'
  if is_completed then
    set, result = 'completed', 'returnvalue'
  end
  has_ended = true
  if ending.deduplication or ending.parent_key then
    rare('ends').tell_others(ending)
  end
  local follow_ups = is_completed and ending.followUps
  local bytes, at_end = stored_bytes_of(job, ending.at_end)
  refunded = refunded + bytes
  if count_for_key(base, at_end, -1) or follow_ups then
    is_unkept = rare('outbox').write_outbox(base, id, status, value, follow_ups)
    -- A full outbox closes the queue.
    queue_meta(true)
  end
  if is_completed and not ending.fields and not ending.keepCount and not ending.keepAge then
    redis.call('HSET', job, 'atm', attempts, 'returnvalue', value, 'finishedOn', time, 'lock', '')
    redis.call('ZADD', base .. 'completed', time, id)
  else
    rare('ends').store_end(ending, set, result, attempts)
  end
  -- BullMQ's stream would keep the result that a task of a run has passed on. 'null' takes its place, because BullMQ parses it as JSON.
  add_bullmq_event(set, id, result, is_unkept and is_completed and 'null' or value, 'prev', 'active')
  if not is_completed and attempts >= tonumber(ending.maxAttempts) then
    rare('ends').note_exhausted(id, attempts)
  end
  if ending.metrics then
    rare('metrics').count_ended(base, set, now, tonumber(ending.metrics))
  end
  if ending.rule and status == 'cancelled' then
    redis.call('HINCRBY', base .. 'cancel-progress:' .. ending.rule, 'ended', '1')
  end
  if ending.keptSince or ending.keptCount then
    rare('ends').remove_old(ending)
  end
  if ending.budget then
    rare('budget').end_retry(ending.budget, now, is_completed)
  end
  if ending.events then
    rare('events').add_task_events(base, id, ending.events)
  end
  if is_unkept then
    rare('ends').remove_unkept(ending)
  end
end

-- An error here must not hide the replies for the ends, which are stored. The leader counts again from time to time.
local function refund_ended()
  if refunded > 0 then
    redis.pcall('HINCRBY', base .. 'totals', 'bytes', -refunded)
  end
end

-- rare(group) returns the functions of one group, which few tasks need. The first call creates them: creating all groups would cost Redis
-- more than the end and the start of a plain task.
--
--   turns       lanes and limits (turns.lua)       returns   tasks that go back to a place where they wait (task-return.lua)
--   candidates  see candidates.lua                 budget    see retry-budget.lua
--   calls       see gates.lua                      events    see task-events.lua
--   rate        see start-rate.lua                 metrics   see bullmq-metrics.lua
--   ends        see rare-ends.lua                  resent    see resent-end.lua
--   outbox      see outbox.lua                     idle      see idle-queue.lua
--
-- promote_due() lets the tasks whose time has come wait for their start. Once none is due, it does nothing until a group is asked for
-- that may delay a task or change when it is due (MOVES_TASKS).
--
-- The moves of a batch share what they have found: `is_plain` says that a start has found neither lanes nor limits, which those groups may
-- change, and `has_marker` that a start has set the marker that wakes a worker, which an outbox that closes the queue removes.
--
-- `base` and `now` are those of end-and-start.lua.

local rare

local MOVES_TASKS = { returns = true, ends = true, budget = true, calls = true }
local is_promoted, is_plain, has_marker = false, false, false

local function promote_due()
  if is_promoted then
    return
  end
  -- The scores of the tasks that are due at the latest now (delayed-set.lua).
  local last = string.format('%.0f', (now + 1) * 0x1000 - 1)
  local due = redis.call('ZRANGEBYSCORE', base .. 'delayed', '0', last, 'LIMIT', '0', '1000')
  if #due > 0 then
    rare('returns').promote(due)
  end
  is_promoted = #due < 1000
end

local created = {}

function rare(group)
  if MOVES_TASKS[group] then
    is_promoted, is_plain = false, false
  end
  has_marker = has_marker and group ~= 'outbox'
  local functions = created[group]
  if functions then
    return functions
  end
  if group == 'turns' then
    --- @include turns
    functions = { give_back = give_back, start_next = start_next, limited = limited }
  elseif group == 'candidates' then
    --- @include candidates
    functions = { start_candidate = start_candidate }
  elseif group == 'calls' then
    --- @include gates
    functions = { gates = gates }
  elseif group == 'ends' then
    --- @include rare-ends
    functions = {
      decode_end = decode_end,
      tell_others = tell_others,
      store_end = store_end,
      note_exhausted = note_exhausted,
      remove_old = remove_old,
      remove_unkept = remove_unkept,
    }
  elseif group == 'returns' then
    --- @include task-return
    functions = { put_back = put_back, promote = promote }
  elseif group == 'outbox' then
    --- @include outbox
    functions = { write_outbox = write_outbox }
  elseif group == 'budget' then
    --- @include retry-budget
    functions = { admit_retry = admit_retry, end_retry = end_retry }
  elseif group == 'events' then
    --- @include task-events
    functions = { add_task_events = add_task_events }
  elseif group == 'metrics' then
    --- @include bullmq-metrics
    functions = { count_ended = count_ended }
  elseif group == 'rate' then
    --- @include start-rate
    functions = { limited_ms = limited_ms, count_start = count_start }
  elseif group == 'idle' then
    --- @include idle-queue
    functions = { next_due = next_due, wake_when_due = wake_when_due, note_drained = note_drained }
  else
    --- @include resent-end
    functions =
      { was_stored = was_stored, was_deleted = was_deleted, has_gone_on = has_gone_on, started_before = started_before }
  end
  created[group] = functions
  return functions
end

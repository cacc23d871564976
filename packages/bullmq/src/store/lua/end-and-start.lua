#!lua flags=allow-oom
-- Ends attempts of the tasks of one queue, and starts tasks: what one Worker asks for at about the same time.
--
-- KEYS  any         any key of the queue, by which a Redis Cluster finds the queue
-- ARGV  base
-- ARGV  time        the time by the clock that all of the queue's processes share, in ms since 1970, or '' to read Redis's clock
-- ARGV  count       how many moves follow
-- ARGV  length      how many arguments the call has; if it may have been sent before, it has one more
-- ARGV  lockMs      how long the locks of the tasks that start last, in ms
-- ARGV  worker      the name of the Worker or ''
-- ARGV  ownMax      the rate limit of the Worker's own option: how many tasks may start
-- ARGV  ownPerMs    per how many ms they may start. Both are '' if there is no such limit
-- ARGV  candidates  the only tasks that may start: their ids, each after a blank, or '' for all tasks
-- ARGV[10...]  the moves. Each of them is the token of a lock ('0' for no lock), '1' if a task may start with this token and otherwise '',
--              the id of the task whose attempt ends or '' if none does, and, if one does, the end (includes/end/attempt-end.lua)
--
-- Returns `MoveReply[]`, for each move:
--
-- - the code: 0, the code with which BullMQ refuses the end, or how long the queue's rate limit still holds up a task that returns to its
--   place. If the end was refused, or has been stored before, nothing starts. If the call may have been sent before, a start replies with
--   the task that it has started before
-- - what the start replies (includes/start/task-start.lua), or 0 if none was asked for or made. After many bytes of tasks, the
--   following starts are not made, and 'later' takes the place of their reply
-- - or the message of an error, because of which the end, or a start without an end, has failed
--
-- and, if no time was given, one more reply, whose code is the time by Redis's clock
--
-- The moves are made one after the other, as if each of them had been sent alone. A move that fails does not keep the others from theirs.
--- @type MoveReply from ../move-batch.ts
--- @include given-time
--- @include lock
local reads_clock, is_repeat = time == '', #ARGV > tonumber(length)
time = given_time(time)
local now = tonumber(time)

-- What a move so far leaves for its rest: the queue's features (queue-features.lua), whether tasks have ended or been delayed, and whether
-- its start has found that nothing waits.
local features, has_ended, has_delayed, is_idle
--- @include task-charge
--- @include queue-meta
--- @include rare-functions
--- @include task-end
--- @include attempt-end
--- @include task-start
--- @include error-text

-- Large tasks would hold up Redis and the replies of the other moves.
local MAX_BYTES = 262144

local function size_of(fields)
  local size = 0
  for i = 2, fields == 0 and 0 or #fields, 2 do
    size = size + #fields[i]
  end
  return size
end

-- Starts the next task, if the move asks for one, and does what follows an end. `id` is that of the task whose attempt has ended, or ''.
-- `is_done` is whether no end was asked for, or it was carried out now. Returns the reply of the start, or nil.
local function go_on(token, starts, id, is_done)
  local start = is_repeat and starts and rare('resent').started_before(token, id) or nil
  if start or not is_done then
    return start
  end
  start = starts and start_task(token) or nil
  if has_delayed and not (start and start[1] ~= 0) then
    rare('idle').wake_when_due()
  end
  if has_ended and (not start or is_idle) then
    rare('idle').note_drained()
  end
  return start
end

local replies, bytes, at = {}, 0, 10
for n = 1, tonumber(count) do
  local token, starts, id = ARGV[at], ARGV[at + 1] == '1', ARGV[at + 2]
  local is_whole, code, is_done, start = true, 0, true, 0
  features, has_ended, has_delayed, is_idle = nil, false, false, false
  at = at + 3
  if id ~= '' then
    found_nothing = nil
    local ending
    ending, at = read_end(id, token, at)
    is_whole, code, is_done = pcall(end_attempt, ending)
  end
  if not is_whole then
    code = error_text(code)
  elseif code >= 0 then
    -- A repeat replies with all tasks that it has started, because nobody else would learn of them.
    local is_late, found = starts and bytes > MAX_BYTES and not is_repeat, nil
    is_whole, found = pcall(go_on, token, starts and not is_late, id, is_done)
    if not is_whole and id == '' then
      code = error_text(found)
    elseif is_late and is_done then
      start = 'later'
    elseif is_whole and found then
      start = found
      bytes = bytes + size_of(found[1])
    end
  end
  replies[n] = { code, start }
end
refund_ended()
if reads_clock then
  replies[#replies + 1] = { now, 0 }
end
return replies

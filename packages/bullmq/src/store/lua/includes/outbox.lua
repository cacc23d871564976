-- write_outbox(home, id, status, result, own) stores what follows from this end of a task in the queue's outbox. The script that ends
-- the task calls it. `home` is the prefix of the queue's keys. `status` is the task's final status, or `removed` if it is deleted
-- before its end, which releases only compensations and tells a group. `result` is the stored output of a completed task, and `own` the
-- lines that its handler has added; both may be nil. Returns whether the task is not to be kept.
--
-- A task with follow-ups is marked when it is added: its field `followUps` has a line for each of them (packages/contract/src/task/
-- follow-up.ts), and its field `atEnd` begins with a mark (task-charge.lua). The refund of its charge at its end reads `atEnd` anyway,
-- so an unmarked task costs nothing more. The end and its entries are stored together or not at all, and however often a commit is
-- sent, only the run that moves the task writes entries. Forwarders move the entries to their targets (outbox/forwarder.ts).
--
-- A dead task keeps its lines, because it can be retried and end again. Each end of a task has a number, which becomes a part of the
-- follow-ups' ids.
--
-- A handler can also add follow-ups of a success. They exist only in its process until the script that completes the task takes them as an
-- argument, so an attempt that does not complete the task has added nothing. Those of a failure or of any end that a handler registers are
-- lines of the task from then on, with the registration's identity before the template. A group's member has a field `group`, and each of
-- its ends adds an entry that reports the end to the group.
--
-- A task of a pipeline run has the same field, with the id of its run, its stage and its position. The entry of a completed task also
-- contains its stored result. The script that completes the task therefore deletes it, so that a run stores as much as its stages can hold,
-- and not as much as it has items. A task that is cancelled because its run has been stopped is deleted by the script that ends it, so that
-- a cancelled run leaves no task behind.
--
-- A handler can register compensations, which undo its steps. They are lines of the field `compensations`, each with the registration's
-- identity before the template, in the order of registration. Any end but a success releases them, as does the deletion of a task before
-- its end, because a step may have been taken. Only the last one gets an entry. It brings the others with it as lines of its own, and
-- releases the next one whenever it ends itself, so that they run one after another even if processes die in between. The field
-- `compensated` then has the time. It stays through every retry until the task completes, because the steps stay undone until a handler has
-- taken them again.
--
-- If the outbox reaches its bound, the queue is closed for fetching: the field `paused` of `meta`, which BullMQ reads at every fetch,
-- is set to `outbox`. Ends are never refused. The script that deletes delivered entries opens the queue again.
--- @include time

local MAX_OUTBOX_ENTRIES, MAX_OUTBOX_BYTES = 10000, 33554432
local CLOSED_BY_OUTBOX = 'outbox'
local END_LETTERS = { completed = 'c', dead = 'd', cancelled = 'x', expired = 'e', removed = 'r' }
local NEXT, HANDLER_SLOT, OWN_COMPENSATION_SLOT = 'n', 'h', 'c'

local function is_released(letter, status)
  if letter == 's' then
    return status == 'completed'
  end
  return letter == 'e' and status ~= 'removed' or letter == 'f' and (status == 'dead' or status == 'expired')
end

-- Reports the end to the task's group or run. Returns whether the task is not to be kept.
local function report_to_group(home, group, status, result, write)
  local run = string.match(group, '^run%-%S+') or string.match(group, '^reduce%-%S+')
  local passes_on = run and status == 'completed' and result
  write('g ' .. group .. ' ' .. END_LETTERS[status] .. (passes_on and '\n' .. result or ''))
  return passes_on or run and status == 'cancelled' and redis.call('EXISTS', home .. 'cancelled-group:' .. run) == 1
end

-- Adds the last of these templates, which brings the others with it.
local function add_chain(slot, templates, add)
  local last = #templates
  if last > 0 then
    local others = last > 1 and '\n' .. NEXT .. table.concat(templates, '\n' .. NEXT, 1, last - 1) or ''
    add(slot, templates[last] .. others)
  end
end

-- Adds the follow-ups that this end releases: those among the task's lines, those that its handler has added, and the compensations
-- that run after the task if it is one itself. A dead task can be retried and end again, so it keeps its lines, but each compensation
-- is released once.
local function release_follow_ups(job, lines, own, status, add)
  local kept, next_ones, number = {}, {}, 0
  for letter, identity, template in string.gmatch(lines, '(%a)([^{\n]*)({[^\n]+)') do
    if letter == NEXT then
      next_ones[#next_ones + 1] = template
    else
      kept[#kept + 1] = letter .. identity .. template
      if is_released(letter, status) then
        add(letter .. #kept, template)
      end
    end
  end
  for template in string.gmatch(own, '%a([^\n]+)') do
    number = number + 1
    add(HANDLER_SLOT .. number, template)
  end
  add_chain(NEXT, next_ones, add)
  if lines ~= '' and (status ~= 'dead' or #kept == 0) then
    redis.call('HDEL', job, 'followUps')
  elseif #next_ones > 0 then
    redis.call('HSET', job, 'followUps', table.concat(kept, '\n'))
  end
end

local function release_compensations(job, lines, status, add)
  if status ~= 'completed' then
    local templates = {}
    for template in string.gmatch(lines, '%S+ ([^\n]+)') do
      templates[#templates + 1] = template
    end
    add_chain(OWN_COMPENSATION_SLOT, templates, add)
    redis.call('HSET', job, 'compensated', whole(millis()))
  end
  redis.call('HDEL', job, 'compensations')
end

local function close_if_full(home, added_bytes)
  local total = redis.call('HINCRBY', home .. 'totals', 'outboxBytes', added_bytes)
  if total < MAX_OUTBOX_BYTES and redis.call('XLEN', home .. 'outbox') < MAX_OUTBOX_ENTRIES then
    return
  end
  if redis.call('HSETNX', home .. 'meta', 'paused', CLOSED_BY_OUTBOX) == 1 then
    redis.call('DEL', home .. 'marker')
  end
end

local function write_outbox(home, id, status, result, own)
  local job, bytes, head, is_unkept = home .. id, 0, nil, false
  local lines, compensations, enqueued_at, group, compensated =
    unpack(redis.call('HMGET', job, 'followUps', 'compensations', 'timestamp', 'group', 'compensated'))
  local function write(entry)
    redis.call('XADD', home .. 'outbox', '*', 'e', entry)
    bytes = bytes + #entry
  end
  local function add(slot, template)
    write(head .. slot .. ' ' .. template)
  end

  if group then
    is_unkept = report_to_group(home, group, status, result, write)
  end
  if lines or compensations or own then
    head = 't ' .. id .. ' ' .. enqueued_at .. ' ' .. redis.call('HINCRBY', job, 'ends', 1) .. ' '
  end
  if lines or own then
    release_follow_ups(job, lines or '', own or '', status, add)
  end
  if compensations then
    release_compensations(job, compensations, status, add)
  end
  if compensated and status == 'completed' then
    redis.call('HDEL', job, 'compensated')
  end
  if bytes > 0 then
    close_if_full(home, bytes)
  end
  return is_unkept
end

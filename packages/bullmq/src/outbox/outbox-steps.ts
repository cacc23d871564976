// Defines the Lua that writes a queue's outbox: what follows from the end of a task is stored by the script that ends the task.
//
// A task with follow-ups is marked when it is added (`STORE_FOLLOW_UPS`): its field `followUps` has a line for each of them
// (packages/contract/src/task/follow-up.ts), and its field `atEnd` begins with a mark. The status index sees every end of a task,
// whichever script makes it, because it refunds the task's charge at that moment. The refund reads `atEnd` anyway, so an unmarked
// task costs nothing more. For a marked one, the index calls `write_outbox`, which adds an entry to the stream `outbox` for each
// line that this end releases. The end and its entries are therefore stored together or not at all, and however often a commit is
// sent, only the run that moves the task writes entries. Forwarders move the entries to their targets (./forwarder.ts).
//
// A dead task keeps its lines, because it can be retried and end again. Each end of a task has a number, which becomes a part of
// the follow-ups' ids.
//
// A handler can also add follow-ups of a success. They exist only in its process until the script that completes the task takes them as
// an argument (`index.follow_ups`), so an attempt that does not complete the task has added nothing. Those of a failure or of any end
// that a handler registers are lines of the task from then on, with the registration's identity before the template
// (../internals/worker/register-task.lua). A group's member has a field `group`, and each of its ends adds an entry that reports the end to
// the group.
//
// A task of a pipeline run has the same field, with the id of its run, its stage and its position. The entry of a completed task
// also contains its stored result. The script that completes the task therefore deletes it, so that a run stores as much as its stages
// can hold, and not as much as it has items. A task that is cancelled because its run has been stopped is deleted by the script that ends
// it, so that a cancelled run leaves no task behind.
//
// A handler can register compensations, which undo its steps. They are lines of the field `compensations`, each with the
// registration's identity before the template, in the order of registration. Any end but a success releases them, as does the deletion
// of a task before its end, because a step may have been taken. Only the last one gets an entry. It brings the others with it as lines of
// its own, and releases the next one whenever it ends itself, so that they run one after another even if processes die in between.
// The field `compensated` then has the time. It stays through every retry until the task completes, because the steps stay undone until a
// handler has taken them again.
//
// If the outbox reaches its bound, the queue is closed for fetching: the field `paused` of `meta`, which BullMQ reads at every
// fetch, is set to `outbox`. Ends are never refused. The script that deletes delivered entries opens the queue again
// (delete-entries.lua).
import { FOLLOW_UP_LETTERS, NEXT_LETTER } from '@bullpen/contract/internal'
import { COMPENSATION_SLOTS, HANDLER_SLOT } from '@bullpen/engine/internal'
import { END_LETTERS } from '../groups/end-letters.ts'
import { FOLLOWED_MARK } from '../internals/status/task-charge.ts'

/** How many entries an outbox may have before its queue is closed for fetching. */
export const MAX_OUTBOX_ENTRIES = 10_000
/** The same for the total size of the entries, in bytes. */
export const MAX_OUTBOX_BYTES = 32 * 2 ** 20

/** The value of BullMQ's field `paused` while a full outbox closes the queue. A command that pauses the queue stores another value. */
export const CLOSED_BY_OUTBOX = 'outbox'

/**
 * A Lua function, `write_outbox(home, id, status)`, which stores what follows from this end of the task. `home` is the prefix of the
 * queue's keys. `status` is the task's final status, or `removed` if the task is deleted before its end, which releases only
 * compensations and tells a group. The function needs the local variables `call` and `index`.
 */
export const WRITE_OUTBOX = `
    local END_LETTERS = { ${Object.entries(END_LETTERS)
      .map(([end, letter]) => `${end} = '${letter}'`)
      .join(', ')} }
    -- A completed task of a pipeline run passes its output on to the next stage, and is not kept. Neither is one that ends as cancelled
    -- when all tasks of its run are cancelled in this queue.
    local function output_for(home, group, id, status)
      local ending = index.ending
      local token = string.match(group, '^run%-%S+') or string.match(group, '^reduce%-%S+')
      if token and status == 'cancelled' and call('EXISTS', home .. 'cancelled-group:' .. token) == 1 then index.unkept = id end
      if not token or status ~= 'completed' or not ending or ending[1] ~= id then return '' end
      index.unkept = id
      return '\\n' .. ending[4]
    end
    local function write_outbox(home, id, status)
      local job, outbox = home .. id, home .. 'outbox'
      local lines, compensations, enqueued_at, group, compensated =
        unpack(call('HMGET', job, 'followUps', 'compensations', 'timestamp', 'group', 'compensated'))
      local bytes = 0
      local function write(entry)
        call('XADD', outbox, '*', 'e', entry)
        bytes = bytes + #entry
      end
      if group then write('g ' .. group .. ' ' .. END_LETTERS[status] .. output_for(home, group, id, status)) end

      -- A script can also end the parent of a flow, to which the lines of the handler do not belong.
      local own = status == 'completed' and index.follow_ups and index.ending[1] == id and index.follow_ups or ''
      local head = (lines or compensations or own ~= '')
        and 't ' .. id .. ' ' .. enqueued_at .. ' ' .. call('HINCRBY', job, 'ends', 1) .. ' '
      local function add(slot, template) write(head .. slot .. ' ' .. template) end
      -- Adds the last of these templates, which brings the others with it.
      local function add_chain(slot, templates)
        local last = table.remove(templates)
        local others = #templates > 0 and '\\n${NEXT_LETTER}' .. table.concat(templates, '\\n${NEXT_LETTER}') or ''
        add(slot, last .. others)
      end

      local is_released = {
        ${FOLLOW_UP_LETTERS.success} = status == 'completed',
        ${FOLLOW_UP_LETTERS.failure} = status == 'dead' or status == 'expired',
        ${FOLLOW_UP_LETTERS.end} = status ~= 'removed',
      }
      local kept, next_ones = {}, {}
      for letter, identity, template in string.gmatch(lines or '', '(%a)([^{\\n]*)({[^\\n]+)') do
        if letter == '${NEXT_LETTER}' then
          next_ones[#next_ones + 1] = template
        else
          kept[#kept + 1] = letter .. identity .. template
          if is_released[letter] then add(letter .. #kept, template) end
        end
      end
      local number = 0
      for template in string.gmatch(own, '%a([^\\n]+)') do
        number = number + 1
        add('${HANDLER_SLOT}' .. number, template)
      end
      if #next_ones > 0 then add_chain('${COMPENSATION_SLOTS.next}', next_ones) end
      if compensations and status ~= 'completed' then
        local templates = {}
        for template in string.gmatch(compensations, '%S+ ([^\\n]+)') do templates[#templates + 1] = template end
        add_chain('${COMPENSATION_SLOTS.own}', templates)
        local time = call('TIME')
        call('HSET', job, 'compensated', time[1] * 1000 + math.floor(time[2] / 1000))
      end
      if compensations then call('HDEL', job, 'compensations') end
      if compensated and status == 'completed' then call('HDEL', job, 'compensated') end
      -- A dead task can be retried and end again, but each compensation is released once.
      if lines and (status ~= 'dead' or #kept == 0) then
        call('HDEL', job, 'followUps')
      elseif #next_ones > 0 then
        call('HSET', job, 'followUps', table.concat(kept, '\\n'))
      end
      if bytes == 0 then return end
      local total = call('HINCRBY', home .. 'totals', 'outboxBytes', bytes)
      if total >= ${MAX_OUTBOX_BYTES} or call('XLEN', outbox) >= ${MAX_OUTBOX_ENTRIES} then
        if call('HSETNX', home .. 'meta', 'paused', '${CLOSED_BY_OUTBOX}') == 1 then call('DEL', home .. 'marker') end
      end
    end`

/**
 * The step after an add, which runs after the step that counts the task for an API key. `followUps` is '' or the task's lines.
 * `group` is '', or the id of a group and the number of its member that the task is. By then, the task `id` is stored.
 */
export const STORE_FOLLOW_UPS = `
if followUps ~= '' or group ~= '' then
  local at_end = call('HGET', base .. id, 'atEnd') or ''
  call('HSET', base .. id, 'atEnd', '${FOLLOWED_MARK}' .. string.sub(at_end, 2))
  if group ~= '' then call('HSET', base .. id, 'group', group) end
  if followUps ~= '' then
    call('HSET', base .. id, 'followUps', followUps)
    -- A task that was charged for before the add has been charged for its follow-ups, too.
    if not index.is_charged then call('HINCRBY', base .. 'totals', 'bytes', #followUps) end
  end
end`

/**
 * The step before the add of a group's member. If the group is cancelled, the member is refused, because the rule that has cancelled
 * the other members may be gone.
 */
export const REFUSE_CANCELLED_GROUP = `
if group ~= '' and call('EXISTS', base .. 'cancelled-group:' .. string.match(group, '^%S+')) == 1 then
  return { 'group cancelled' }
end`

// Defines Lua that remembers, for a short time, which tasks were deleted soon after their enqueue.
//
// If Redis runs an add but its reply is lost, the add is sent again with the same task id. The script usually recognises the first
// add because the task exists. By then, however, the task may have been deleted: another call may have replaced it, or it has run
// and is not kept. Without this memory, the second add would store the task again, and would even delete a task that has replaced
// it.
//
// The memory is a sorted set for each queue. Its members are `<task id> <caller>`, followed by ` r` if the task replaced another
// one when it was stored; its scores are the times at which the tasks were enqueued. `caller` distinguishes calls that use the
// same id, as in the task's own field. A task that is deleted later than {@link REPEATS_WITHIN_MS} after its enqueue is not
// remembered, so a queue that keeps its ended tasks for longer has no such set. Each member takes about 130 bytes.
//
// A task of a pipeline run that is completed, or cancelled with its run, is deleted by the script that ends it
// (../../../outbox/outbox-steps.ts). If that script is sent again, nothing that the attempt has stored is left. The set
// therefore has another member for such a task, `<task id> e<fencing token>`, with the time of the end.
import { REPEATS_WITHIN_MS } from '@bullpen/engine/internal'

/** The set's key without the prefix of the queue's keys. */
export const RECENTLY_REMOVED = 'recently-removed'

/**
 * How many old members a script removes from the set at most, which takes Redis about 1 ms. No script deletes more tasks, so the set does
 * not grow. After a burst, removing all of them at once would hold up every other client.
 */
const TRIM_AT_ONCE = 1_000

/**
 * A Lua function, `remember_removed(home, id, enqueued_at, caller, replaced)`, which remembers a task that is about to be deleted.
 * `home` is the prefix of the queue's keys, and `enqueued_at` is in ms since 1970. `caller` and `replaced` are the task's fields
 * of these names, or false. `index.remember_end(id, attempt)` remembers which attempt has ended a task that is not kept. The functions
 * need the local variables `call`, `base` and `index`.
 */
export const REMEMBER_REMOVED = `
    local trimmed, oldest, now = {}
    local function remember(home, member, at)
      if not now then
        local time = call('TIME')
        now = time[1] * 1000 + math.floor(time[2] / 1000)
        oldest = now - ${REPEATS_WITHIN_MS}
      end
      if at and at < oldest then return end
      local set = home .. '${RECENTLY_REMOVED}'
      -- The clock of a process that uses plain BullMQ may be ahead.
      call('ZADD', set, math.min(at or now, now), member)
      if trimmed[home] then return end
      trimmed[home] = true
      local old = call('ZRANGE', set, '-inf', string.format('(%.0f', oldest), 'BYSCORE', 'LIMIT', 0, ${TRIM_AT_ONCE})
      if #old > 0 then call('ZREM', set, unpack(old)) end
      call('PEXPIRE', set, ${REPEATS_WITHIN_MS})
    end
    local function remember_removed(home, id, enqueued_at, caller, replaced)
      remember(home, id .. ' ' .. (caller or '') .. (replaced and ' r' or ''), enqueued_at)
    end
    function index.remember_end(id, attempt) remember(base, id .. ' e' .. attempt) end`

/**
 * Lua lines that set `was_removed` to whether the task `id` of the same `caller` has recently been deleted, and `has_replaced` to
 * whether that task replaced another one. Only tasks with a unique key (`unique`) can replace others.
 */
export const RECALL_REMOVED = `
  local member = id .. ' ' .. caller
  local has_replaced = unique ~= '' and call('ZSCORE', base .. '${RECENTLY_REMOVED}', member .. ' r')
  local was_removed = has_replaced or call('ZSCORE', base .. '${RECENTLY_REMOVED}', member)`

/** A Lua expression: whether this attempt, a fencing token as text, has ended a task that is not kept. */
export const recallEnd = (id: string, attempt: string): string =>
  `call('ZSCORE', base .. '${RECENTLY_REMOVED}', ${id} .. ' e' .. ${attempt})`

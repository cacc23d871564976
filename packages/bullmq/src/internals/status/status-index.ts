// Maintains the status index, which records which tasks of BullMQ's delayed set are scheduled or retrying, and which tasks of its
// failed set are dead, cancelled or expired.
//
// BullMQ has one set for each of these two groups. Bullpen divides each set into parts, which are sorted sets with the same
// scores, so that counting reads a set's size and listing reads a range. BullMQ moves jobs in about twenty scripts, and the parts
// must follow each move. Instead of changing each of these scripts, the index watches commands: it runs each command that can
// change a divided set or that adds or deletes a job, and makes the same change to the parts. BullMQ's scripts are composed with
// the index (../composition/composed-scripts.ts). Bullpen's own scripts write the parts themselves (../../store/lua/includes).
//
// The conservation law: accepted = the tasks in all statuses + removed. Only these two counters are kept, together with the number
// of ended tasks that have returned to their queue, and the number of bytes that the unfinished tasks take
// (../../store/lua/includes/task-charge.lua). Everything else is the size of a set, or follows from these numbers: a task has ended
// accepted + retried - unfinished times, which costs nothing when it ends. A BullMQ Queue or Worker that is not attached causes drift,
// which the leader repairs (index-repair.ts, bytes-recount.ts).
import { TASK_OVERHEAD_BYTES } from '@bullpen/engine/internal'
import { luaInclude } from '../../store/scripts.ts'

/** The parts of each divided set. A task that is added for an unknown reason belongs to the first part. */
export const PARTS = {
  delayed: ['scheduled', 'retrying'],
  failed: ['dead', 'cancelled', 'expired'],
} as const

export type Part = (typeof PARTS)[keyof typeof PARTS][number]

/**
 * The Lua functions that run in place of the watched commands. Each function takes the command's arguments.
 *
 * - ZADD: a task goes to the part from which the script has taken it, or to the part that has it. If there is none, a task with an
 *   attempt behind it is retrying, and other tasks are scheduled. BullMQ's scripts add tasks to no other divided set, and do not pass any
 *   options before the score.
 * - DEL: BullMQ deletes a job together with its log and its lists of children, and deletes nothing else in that way. A job that
 *   was enqueued recently is remembered, in case its add is sent again.
 */
const MOVES = {
  ZADD: `function moves.ZADD(set, score, id, ...)
      local home, parts = divided(set)
      if parts then call('ZADD', home .. part_of(set, home, parts, id), score, id) end
      return call('ZADD', set, score, id, ...)
    end`,
  ZREM: `function moves.ZREM(set, id, another, ...)
      local home, parts = divided(set)
      if not parts then
        if another then return call('ZREM', set, id, another, ...) end
        return call('ZREM', set, id)
      end
      if another then
        for _, part in ipairs(parts) do call('ZREM', home .. part, id, another, ...) end
        if parts[1] == '${PARTS.failed[0]}' then
          for _, each in ipairs({ id, another, ... }) do forget_error(home, each) end
        end
        return call('ZREM', set, id, another, ...)
      end
      if parts[1] == '${PARTS.failed[0]}' then forget_error(home, id) end
      for _, part in ipairs(parts) do
        if call('ZREM', home .. part, id) == 1 then
          was[set .. id] = part
          break
        end
      end
      return call('ZREM', set, id)
    end`,
  DEL: `function moves.DEL(key, logs, ...)
      local home = logs == key .. ':logs' and home_of(key)
      if home then
        local has_ended, enqueued_at, caller, replaced, fingerprint =
          unpack(call('HMGET', key, 'finishedOn', 'timestamp', 'caller', 'replaced', 'fingerprint'))
        leave_fingerprint(home, string.sub(key, #home + 1), fingerprint)
        if enqueued_at or call('EXISTS', key) == 1 then
          call('HINCRBY', home .. 'totals', 'removed', 1)
          if not has_ended and charge(home, key, -1) then write_outbox(home, string.sub(key, #home + 1), 'removed') end
        end
        if enqueued_at then
          local member = string.sub(key, #home + 1) .. ' ' .. (caller or '') .. (replaced and ' r' or '')
          remember_removal(home, member, tonumber(enqueued_at) or 0)
        end
      end
      return call('DEL', key, logs, ...)
    end`,
} as const

export type WatchedCommand = keyof typeof MOVES | 'HMSET'

/** HMSET is watched because BullMQ writes the name and the data of a job, in this order, only when it adds the job. */
export const WATCHED: readonly WatchedCommand[] = [...(Object.keys(MOVES) as (keyof typeof MOVES)[]), 'HMSET']

/** Lua lines that count a job if an HMSET with these arguments adds it. */
const NOTE_ADDED = `
      local _, second, data = ...
      if first == 'name' and second == 'data' then
        index.added = key
        call('HINCRBY', base .. 'totals', 'accepted', '1')
        call('HINCRBY', base .. 'totals', 'bytes', #data + ${TASK_OVERHEAD_BYTES})
      end`

/**
 * A Lua function, `status_index(base)`, where `base` is the prefix of the queue's keys. The function returns a table:
 *
 * - `watch(command, key, ...)`: runs a watched command.
 * - `added`: the key of the last job that was added.
 * - `charge(home, job, sign)`: see ../../store/lua/includes/task-charge.lua.
 *
 * Most of the watched commands concern a lock or a marker. `watch` passes these commands on at once, and creates the functions for the
 * others only when it first needs one of them.
 */
const STATUS_INDEX = `
local function status_index(base)
  local call = redis.call
${luaInclude('task-charge')}
  local index = { added = false, charge = charge }

  local function create_moves()
    local moves, was = {}, {}

    -- The prefix of the queue to which a key belongs. A flow can move and delete the jobs of another queue.
    local function home_of(key)
      if string.sub(key, 1, #base) == base then return base end
      return string.match(key, '^%b{}:[^:]+:')
    end

    local function divided(set)
      local home = home_of(set)
      local name = home and string.sub(set, #home + 1)
${Object.entries(PARTS)
  .map(([set, parts]) => `      if name == '${set}' then return home, { '${parts.join("', '")}' } end`)
  .join('\n')}
    end

    local function part_of(set, home, parts, id)
      if was[set .. id] then return was[set .. id] end
      if index.added == home .. id then return parts[1] end
      for _, part in ipairs(parts) do
        if call('ZSCORE', home .. part, id) then return part end
      end
      if (tonumber(call('HGET', home .. id, 'atm') or '0') or 0) > 0 then return '${PARTS.delayed[1]}' end
      return parts[1]
    end

${luaInclude('removed-tasks')}
${luaInclude('fingerprints')}
${luaInclude('outbox')}
    -- A task that leaves the failed set has no fingerprint until it is dead again.
    local function forget_error(home, id)
      local fingerprint = call('HGET', home .. id, 'fingerprint')
      if not fingerprint then return end
      leave_fingerprint(home, id, fingerprint)
      call('HDEL', home .. id, 'fingerprint')
    end

    ${Object.values(MOVES).join('\n    ')}
    return moves
  end

  local moves
  function index.watch(command, key, first, ...)
    if command == 'HMSET' then
${NOTE_ADDED}
      return call('HMSET', key, first, ...)
    end
    if first == nil then return call(command, key) end
    local set = string.sub(key, -7)
    if command ~= 'DEL' and set ~= 'delayed' and set ~= ':failed' then return call(command, key, first, ...) end
    moves = moves or create_moves()
    return moves[command](key, first, ...)
  end
  return index
end
`

/** Lua lines that define the local variables `index` and `watch`. */
export const OPEN_INDEX = `${STATUS_INDEX}
local index = status_index(base)
local watch = index.watch`

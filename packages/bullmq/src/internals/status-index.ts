// The status index: which tasks of BullMQ's delayed set are scheduled and which are retrying, and which tasks of its failed set
// are dead, cancelled and expired.
//
// BullMQ has one set for each group. Bullpen divides each into parts, which are sorted sets with the same scores, so that counts
// are sizes and listings are ranges. BullMQ moves jobs in about twenty scripts, and a part must follow each move. Instead of
// knowing all of these places, the index watches the commands: a script of BullMQ is run with a `redis.call` that repeats what it
// does to a divided set on the parts, and counts the jobs that it adds and deletes (composed-scripts.ts). Bullpen's own scripts
// use the same function.
//
// The conservation law: accepted = the tasks in all statuses + removed. Only these two counters are kept; everything else is the
// size of a set. A Queue or Worker of BullMQ that is not wrapped causes drift, which the leader repairs (index-repair.ts).

/** The parts of each divided set. A task that is added for an unknown reason belongs to the first part. */
export const PARTS = {
  delayed: ['scheduled', 'retrying'],
  failed: ['dead', 'cancelled', 'expired'],
} as const

export type Part = (typeof PARTS)[keyof typeof PARTS][number]

const luaParts = Object.entries(PARTS)
  .map(([set, parts]) => `[base .. '${set}'] = { ${parts.map((part) => `base .. '${part}'`).join(', ')} }`)
  .join(', ')

/**
 * A Lua function, `status_index(base)`, where `base` is the prefix of the queue's keys. It returns a table:
 *
 * - `redis`: use it in place of `redis`.
 * - `into[set] = part`: the part to which tasks belong that are added to this set from now on; both are names without the base.
 *   Otherwise, a task returns to the part from which this script has taken it. If it was in none, a delayed task with an attempt
 *   behind it is retrying, other delayed tasks are scheduled, and failed tasks are dead.
 * - `added`: whether a job has been added.
 */
export const STATUS_INDEX = `
local function status_index(base)
  local call, totals, delayed = redis.call, base .. 'totals', base .. 'delayed'
  local parts = { ${luaParts} }
  local index = { into = {}, added = false }
  local was = {}

  local function part_of(set, id)
    local chosen = index.into[string.sub(set, #base + 1)]
    if chosen then return base .. chosen end
    if was[id] and string.sub(set, #base + 1) == was[id].set then return was[id].part end
    if set == delayed and (tonumber(call('HGET', base .. id, 'atm') or '0') or 0) > 0 then return parts[set][2] end
    return parts[set][1]
  end

  local hooks = {}
  function hooks.ZADD(set, score, id, ...)
    if parts[set] then call('ZADD', part_of(set, id), score, id) end
    return call('ZADD', set, score, id, ...)
  end
  function hooks.ZREM(set, id, another, ...)
    for _, part in ipairs(parts[set] or {}) do
      if another then
        call('ZREM', part, id, another, ...)
      elseif call('ZREM', part, id) == 1 then
        was[id] = { set = string.sub(set, #base + 1), part = part }
        break
      end
    end
    if another then return call('ZREM', set, id, another, ...) end
    return call('ZREM', set, id)
  end
  function hooks.ZREMRANGEBYSCORE(set, ...)
    for _, part in ipairs(parts[set] or {}) do call('ZREMRANGEBYSCORE', part, ...) end
    return call('ZREMRANGEBYSCORE', set, ...)
  end
  function hooks.ZREMRANGEBYRANK(set, ...)
    if parts[set] then
      for _, id in ipairs(call('ZRANGE', set, ...)) do hooks.ZREM(set, id) end
      return 0
    end
    return call('ZREMRANGEBYRANK', set, ...)
  end
  function hooks.DEL(key, logs, ...)
    for _, part in ipairs(parts[key] or {}) do call('DEL', part) end
    if not logs then return call('DEL', key) end
    -- BullMQ deletes a job together with its log and its lists of children.
    if logs == key .. ':logs' and string.sub(key, 1, #base) == base and call('EXISTS', key) == 1 then
      call('HINCRBY', totals, 'removed', 1)
    end
    return call('DEL', key, logs, ...)
  end
  function hooks.HMSET(key, field, ...)
    -- A job's name is only written when the job is added.
    if field == 'name' and string.sub(key, 1, #base) == base then
      index.added = true
      call('HINCRBY', totals, 'accepted', 1)
    end
    return call('HMSET', key, field, ...)
  end

  index.redis = setmetatable({
    call = function(command, ...)
      local hook = hooks[command]
      if hook then return hook(...) end
      return call(command, ...)
    end,
  }, { __index = redis })
  return index
end
`

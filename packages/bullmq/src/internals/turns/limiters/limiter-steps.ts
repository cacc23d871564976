// Limits what all active tasks of a queue together hold of its limiters, across all workers.
//
// A limiter has a name, which begins with its kind, and a capacity. There are three kinds:
//
// - `permits:db`: the permits of a resource. The queue's definition says how many there are, and each task definition
//   how many it needs.
// - `task:reports.render`: the `concurrency` of a task definition. Each of its tasks needs 1.
// - `service:smtp`: a circuit breaker. Its capacity is 0 while no task may start, and absent otherwise
//   (../../../store/lua/includes/gates.lua).
//
// The name of a lane contains what its tasks need (./needs.ts), so all tasks of a lane can start, or none of them.
// These keys belong to the limiters of a queue (../../../keys.ts):
//
// - `capacities` has the limiters that limit something. A limiter without a capacity limits nothing, and nothing is
//   counted for it.
// - `in-use` counts what the active tasks hold. As with the keys (../key-concurrency.ts), `active` is the truth, a
//   start adds to the count, and the text that removes a task from `active` subtracts from it.
// - `need-waiters:<need>` has the blocked lanes with this need that have met the limit, by the pass of the turn in
//   which they did: their tickets. The lanes that wait for their concurrency key are in `need-waiters:key:<key>=1`.
// - `waited-needs` names the needs for which lanes wait.
// - `key-passes` has the pass of each concurrency key that has several lanes, so that they share its turns
//   (../turn-steps.ts).
//
// A task starts when all that it needs is free, and takes it in the same script. A lane whose tasks may not start
// leaves the turns, like one whose key is at its limit:
//
// - Lanes that wait for a limiter start strictly in the order of their tickets. A lane keeps its tickets until one of
//   its tasks starts, so a large need is not starved by small ones. It gets a ticket at each limiter that refuses it.
//   The tickets of a lane have the same pass, so no two lanes wait for each other.
// - A lane that waits for its key, or for a time, gives its tickets back. So does a lane that needs more than a
//   capacity: it can never start, and must not hold up others. It waits at that limiter alone, where it is passed over
//   until the capacity is raised.
// - What is given back wakes the first lane that waits for the limiter: the lane takes turns again, with the pass of
//   its ticket. A lane that gives its ticket back wakes the next one, whether or not its task has started. One wake-up
//   thus reaches each lane that may start.
//
// After each script, besides what ../key-concurrency.ts says:
//
// 1. `in-use` agrees with the tasks in `active`, for each limiter with a capacity.
// 2. A lane with a ticket is blocked, or has been woken and takes turns.
// 3. The first lane that waits for a limiter has been woken, or some limiter refuses it.
import { eachNeed, LUA_MARK } from './needs.ts'

const CAPACITIES = `base .. 'capacities'`
/** Lua: what the active tasks hold, by limiter. */
export const IN_USE = `base .. 'in-use'`
/** Lua: the needs for which lanes wait. */
export const WAITED_NEEDS = `base .. 'waited-needs'`
const BLOCKED = `base .. 'blocked-lanes'`
const TURNS = `base .. 'turns'`
/** Lua: the passes of the concurrency keys that have several lanes. */
export const KEY_PASSES = `base .. 'key-passes'`

/** The Lua expression for the lanes that wait with a need, which is a Lua expression itself. */
export const waitersOf = (need: string): string => `base .. 'need-waiters:' .. ${need}`

/** The Lua expression for the need for which the lanes of a key wait if the key is at its limit. */
const needOfKey = (key: string): string => `'key:' .. ${key} .. '=1'`

/** The Lua expression for the lanes with needs that wait for the key `key`. */
export const WAITERS_OF_KEY = waitersOf(needOfKey('key'))

/** Lua lines that let the lane `first` take turns again if it is blocked. `ticket` is a Lua expression. */
export const wakeFirst = (ticket: string): string => `if first and call('ZREM', ${BLOCKED}, first) == 1 then
      call('ZADD', ${TURNS}, ${ticket}, first)
      call('ZADD', base .. 'marker', '0', '0')
    end`

/** Lua lines that wake the first of the lanes with needs that wait for the key `key`. */
export const WAKE_KEY = `local first, ticket = unpack(call('ZRANGE', ${WAITERS_OF_KEY}, 0, 0, 'WITHSCORES'))
    ${wakeFirst('ticket')}`

/**
 * A Lua line that declares the functions of {@link LIMITERS}, so that they can be defined where they are first needed.
 */
export const DECLARE_LIMITERS =
  'local is_before, first_waiter, wake, leave, leave_waiters, refusals, is_full, wait_for, take'

/**
 * Lua functions that look for the first lane that waits for a limiter, and wake it. They need the local variables
 * `call` and `base`.
 */
const WAKE = `
  function is_before(one, other)
    for i = 1, math.min(#one, #other) do
      local a, b = string.byte(one, i), string.byte(other, i)
      if a ~= b then return a < b end
    end
    return #one < #other
  end
  function first_waiter(limiter)
    local capacity, first, ticket = tonumber(call('HGET', ${CAPACITIES}, limiter) or nil), nil, nil
    for _, need in ipairs(call('ZRANGEBYLEX', ${WAITED_NEEDS}, '[' .. limiter .. '=', '(' .. limiter .. '>')) do
      if not capacity or tonumber(string.match(need, '%d+$')) <= capacity then
        local lane, score = unpack(call('ZRANGE', ${waitersOf('need')}, 0, 0, 'WITHSCORES'))
        local at = tonumber(score)
        if not first or at < ticket or at == ticket and is_before(lane, first) then first, ticket = lane, at end
      end
    end
    return first, ticket
  end
  function wake(limiter)
    local first, ticket = first_waiter(limiter)
    ${wakeFirst('ticket')}
  end`

/**
 * Lua functions for the lane whose turn it is. They need the local variables `call` and `base`, and follow
 * {@link DECLARE_LIMITERS}. `name`, `key` and `needs` are the lane's.
 *
 * - `leave_waiters(name, key, needs, kept)` gives back the lane's tickets, and wakes the next lanes. `kept` is a
 *   limiter, or 'key', for which the lane keeps its ticket. Returns whether it has given one back.
 * - `refusals(name, key, needs, pass)` returns the needs for which the lane has to wait, or nil if its next task may
 *   start. It also returns the pass that all lanes have reached: that of the lane or, if others wait longer for the
 *   same, theirs. A lane that has to wait gives back its ticket for the key. One that needs more than a capacity also
 *   gives back those for the other limiters, and the pass is nil.
 * - `wait_for(name, needs, pass, time)` blocks the lane until it is woken because of one of the needs, a table. `time`
 *   is the pass that all lanes have reached, or nil.
 * - `is_full(needs)` returns whether some limiter has too little left. Lanes that wait are not considered.
 * - `take(needs)` counts a start.
 */
export const LIMITERS = `${WAKE}
  function leave(name, need)
    if call('ZREM', ${waitersOf('need')}, name) == 0 then return false end
    if call('EXISTS', ${waitersOf('need')}) == 0 then call('ZREM', ${WAITED_NEEDS}, need) end
    return true
  end
  function leave_waiters(name, key, needs, kept)
    if call('EXISTS', ${WAITED_NEEDS}) == 0 then return false end
    local has_left = false
    ${eachNeed('needs')}
      if limiter ~= kept and leave(name, limiter .. '=' .. amount) then
        has_left = true
        wake(limiter)
      end
    end
    if kept ~= 'key' and leave(name, ${needOfKey('key')}) then
      has_left = true
      ${WAKE_KEY}
    end
    return has_left
  end
  function refusals(name, key, needs, pass)
    local refused, time = nil, pass
    ${eachNeed('needs')}
      local capacity = tonumber(call('HGET', ${CAPACITIES}, limiter) or nil)
      if capacity then
        local need, used = limiter .. '=' .. amount, tonumber(call('ZSCORE', ${IN_USE}, limiter) or 0)
        if tonumber(amount) > capacity then
          leave_waiters(name, key, needs, limiter)
          return { need }
        end
        local first, ticket = first_waiter(limiter)
        local is_behind = first and first ~= name and (ticket < pass or ticket == pass and is_before(first, name))
        if is_behind or used + amount > capacity then
          refused = refused or {}
          refused[#refused + 1] = need
          if first then time = math.min(time, ticket) end
        end
      end
    end
    if refused and leave(name, ${needOfKey('key')}) then
      ${WAKE_KEY}
    end
    return refused, time
  end
  function is_full(needs)
    ${eachNeed('needs')}
      local capacity = tonumber(call('HGET', ${CAPACITIES}, limiter) or nil)
      if capacity and tonumber(call('ZSCORE', ${IN_USE}, limiter) or 0) + amount > capacity then return true end
    end
    return false
  end
  function wait_for(name, needs, pass, time)
    for _, need in ipairs(needs) do
      call('ZADD', ${waitersOf('need')}, 'NX', pass, name)
      call('ZADD', ${WAITED_NEEDS}, '0', need)
    end
    call('ZREM', ${TURNS}, name)
    call('ZADD', ${BLOCKED}, pass, name)
    if time and time > tonumber(call('HGET', base .. 'turn-state', 'time') or -1) then call('HSET', base .. 'turn-state', 'time', time) end
  end
  function take(needs)
    ${eachNeed('needs')}
      -- A service has no permits, even if its breaker has just let its last probe start.
      if string.sub(limiter, 1, 8) ~= 'service:' and call('HEXISTS', ${CAPACITIES}, limiter) == 1 then
        call('ZINCRBY', ${IN_USE}, amount, limiter)
      end
    end
  end`

/**
 * Lua lines that block the lane `name` until its key may start a task. They follow {@link LIMITERS}. `pass` and `time`
 * are Lua expressions.
 */
export const waitForKey = (pass: string, time: string): string =>
  `wait_for(name, { ${needOfKey('key')} }, ${pass}, ${time})`

/**
 * Lua lines that give back what a task with the needs `needs` has held, and wake the next lanes. A limiter without a
 * capacity was not counted.
 */
export const GIVE_BACK_NEEDS = `
    ${DECLARE_LIMITERS}${WAKE}
    ${eachNeed('needs')}
      local left = call('ZADD', ${IN_USE}, 'XX', 'INCR', '-' .. amount, limiter)
      if left then
        if tonumber(left) <= 0 then call('ZREM', ${IN_USE}, limiter) end
        wake(limiter)
      end
    end`

/**
 * Lua lines that let the lane `name`, a Lua expression, take turns if it has become empty while it was blocked. The
 * next fetch then gives its tickets back.
 */
export const resumeEmptied = (name: string): string => `
      local pass = string.find(${name}, ${LUA_MARK}, 1, true) and call('ZSCORE', ${BLOCKED}, ${name})
      if pass then
        call('ZREM', ${BLOCKED}, ${name})
        call('ZREM', base .. 'lane-times', ${name})
        call('ZADD', ${TURNS}, pass, ${name})
        call('ZADD', base .. 'marker', '0', '0')
      end`

/** Lua lines that delete what is stored about lanes that wait. No task may be in a lane. */
export const FORGET_WAITERS = `if call('EXISTS', ${WAITED_NEEDS}) == 1 then
        for _, need in ipairs(call('ZRANGE', ${WAITED_NEEDS}, 0, -1)) do call('UNLINK', ${waitersOf('need')}) end
        call('UNLINK', ${WAITED_NEEDS})
      end`

/** Lua lines that take all tickets away, and remove the lanes that had them from `blocked`, a Lua variable. */
export const TAKE_TICKETS = `for _, need in ipairs(call('ZRANGE', ${WAITED_NEEDS}, 0, -1)) do
          call('ZDIFFSTORE', blocked, '2', blocked, ${waitersOf('need')})
        end
        ${FORGET_WAITERS}`

/**
 * A Lua function, `wake_all()`, which wakes the first lane of each limiter for which lanes wait, because a capacity has
 * changed. Those that wait for their concurrency key are not woken. The function follows {@link LIMITERS}.
 */
export const WAKE_ALL = `
  local function wake_all()
    local is_woken = {}
    for _, need in ipairs(call('ZRANGE', ${WAITED_NEEDS}, 0, -1)) do
      local limiter = string.match(need, '^(.*)=%d+$')
      if not is_woken[limiter] and string.sub(limiter, 1, 4) ~= 'key:' then wake(limiter) end
      is_woken[limiter] = true
    end
  end`

/** Lua: what is limited, by limiter. Services have no permits, so nothing is counted for them. */
export const READ_CAPACITIES = `local capacities, stored_capacities = {}, call('HGETALL', ${CAPACITIES})
  for i = 1, #stored_capacities, 2 do
    local limiter = stored_capacities[i]
    if string.sub(limiter, 1, 8) ~= 'service:' then capacities[limiter] = tonumber(stored_capacities[i + 1]) end
  end`

// Defines the steps that keep retries within the retry budget of their definition. They run in the scripts that end an attempt,
// but only for an attempt that is retried and for the last attempt of a task that was retried. They make the same decisions as
// packages/engine/src/verdict/retry-budget.ts, which explains the budget.
//
// A held retry is an ordinary retrying task that is due when its slot begins. The retry therefore starts even if every process that
// knows of it is gone. Releasing the retry only makes it due earlier.
//
// The attempts that the ratio refers to are counted in the worker (attempt-counts.ts). The worker sends its counts with the next
// step, so an attempt that succeeds costs nothing. Attempts of workers without any failures are missing, which makes the ratio
// stricter.
import { BUDGET_WINDOW_S, GAP, MAX_RELEASED, MOVED_UP } from '@bullpen/engine/internal'
import { DELAYED_SCORE_STEP } from '../internals/status/places.ts'

/** How many held retries one step looks at. Most of them are still held, unless many tasks were cancelled at once. */
const MAX_EXAMINED = 1_000

/**
 * A Lua function, `open_budget(packed, now)`, where `packed` comes from {@link packBudget}, and `now` is in ms since 1970. It
 * returns a table with two functions:
 *
 * - `admit(id, backoff_ends_at)` returns when the retry of the task `id` starts.
 * - `finish(is_completed)` takes the end of a retry into account. It returns how many held retries now start earlier.
 *
 * Two keys are stored for each definition. The hash `retry-budget:…` contains `tokens` and `at` as in {@link BudgetUse}, and
 * for each second the number of attempts that ended (`a` and the second) and of retries that the ratio allowed (`r` and the
 * second). The sorted set `held-retries:…` contains the line, by the beginning of each slot. Its members consist of the end of
 * the backoff, the time at which the task is due, and its id.
 */
const OPEN_BUDGET = `
local function open_budget(packed, now)
  local task, ratio, interval, latest, counts = string.match(packed, '^(%S+) (%S+) (%S+) (%S+)(.*)$')
  ratio, interval, latest = tonumber(ratio), tonumber(interval), tonumber(latest) or math.huge
  local key, line = base .. 'retry-budget:' .. task, base .. 'held-retries:' .. task
  local second, max = math.floor(now / 1000), math.max(1, ${BUDGET_WINDOW_S * 1_000} / interval)
  local attempts, by_ratio, allowed, forgotten = 0, 0, 0, {}
  local tokens, at = max, now
  local stored = call('HGETALL', key)
  for i = 1, #stored, 2 do
    local field, value = stored[i], tonumber(stored[i + 1])
    local kind, counted_in = string.match(field, '^(%l)(%d+)$')
    if field == 'tokens' then tokens = value
    elseif field == 'at' then at = value
    elseif tonumber(counted_in) <= second - ${BUDGET_WINDOW_S} then forgotten[#forgotten + 1] = field
    elseif kind == 'a' then attempts = attempts + value
    else by_ratio = by_ratio + value end
  end
  for age, count in string.gmatch(counts, '(%d+):(%d+)') do
    if tonumber(age) < ${BUDGET_WINDOW_S} then
      attempts = attempts + count
      call('HINCRBY', key, 'a' .. (second - age), count)
    end
  end
  tokens = math.min(max, tokens + math.max(0, now - at) / interval - call('ZREMRANGEBYSCORE', line, '-inf', now))

  local function ratio_allows() return ratio * attempts - by_ratio - allowed >= 1 - 1e-6 end
  local function may_start() return ratio_allows() or tokens >= 1 - 1e-6 end
  local function spend()
    if ratio_allows() then allowed = allowed + 1 else tokens = tokens - 1 end
  end

  -- Returns the end of the backoff, the time at which the task is due, and its id, or nothing if the task is no longer held.
  local function held(member)
    local backoff_ends_at, due, id = string.match(member, '^(%d+) (%d+) (.*)$')
    local score = call('ZSCORE', base .. 'retrying', id)
    if score and math.floor(score / ${DELAYED_SCORE_STEP}) == tonumber(due) then return tonumber(backoff_ends_at), tonumber(due), id end
  end
  local moved = 0
  local function move(id, due, starts_at)
    if starts_at == due then return end
    watch('ZADD', base .. 'delayed', starts_at * ${DELAYED_SCORE_STEP}, id)
    -- BullMQ adds the same event if the delay of a job changes.
    call('XADD', base .. 'events', '*', 'event', 'delayed', 'jobId', id, 'delay', string.format('%.0f', starts_at))
    moved = moved + 1
  end
  local function add(backoff_ends_at, starts_at, id, slot_at)
    call('ZADD', line, slot_at, string.format('%.0f %.0f %s', backoff_ends_at, starts_at, id))
  end
  local function next_token_at() return now + (tokens < 1 and 1 - tokens or 1) * interval end

  local function move_up()
    local from, slot_at = next_token_at(), call('ZRANGE', line, 0, 0, 'WITHSCORES')[2]
    if not slot_at or slot_at - from < ${GAP} * interval then return end
    for _, member in ipairs(call('ZRANGE', line, 0, ${MOVED_UP - 1})) do
      local backoff_ends_at, due, id = held(member)
      call('ZREM', line, member)
      if id then
        local starts_at = math.max(backoff_ends_at, math.min(math.ceil(from), due))
        add(backoff_ends_at, starts_at, id, from)
        move(id, due, starts_at)
        from = from + interval
      end
    end
  end

  local function release_held()
    local released, examined = 0, 0
    while released < ${MAX_RELEASED} and examined < ${MAX_EXAMINED} and may_start() do
      local first = call('ZPOPMIN', line)[1]
      if not first then break end
      examined = examined + 1
      local backoff_ends_at, due, id = held(first)
      if id then
        spend()
        released = released + 1
        move(id, due, math.max(now, backoff_ends_at))
      end
    end
    move_up()
  end

  local function store()
    if #forgotten > 0 then call('HDEL', key, unpack(forgotten)) end
    if allowed > 0 then call('HINCRBY', key, 'r' .. second, allowed) end
    call('HSET', key, 'tokens', string.format('%.9f', tokens), 'at', math.max(at, now))
    local last = call('ZREVRANGE', line, 0, 0, 'WITHSCORES')[2]
    -- The definition's whole budget is unused by then.
    local life = math.ceil(math.max(0, (last or now) - now)) + ${2 * BUDGET_WINDOW_S * 1_000}
    call('PEXPIRE', key, life)
    if last then call('PEXPIRE', line, life) end
  end

  local budget = {}
  function budget.admit(id, backoff_ends_at)
    release_held()
    local starts_at, last = backoff_ends_at, call('ZREVRANGE', line, 0, 0, 'WITHSCORES')[2]
    if not last and may_start() then
      spend()
    else
      local slot_at = last and last + interval or next_token_at()
      starts_at = math.max(backoff_ends_at, math.min(math.ceil(slot_at), latest))
      add(backoff_ends_at, starts_at, id, slot_at)
    end
    store()
    return starts_at
  end
  function budget.finish(is_completed)
    if is_completed then tokens = math.min(max, tokens + 1) end
    release_held()
    store()
    return moved
  end
  return budget
end`

/** Lua lines that run `lines` with the open budget if the script has one in `budget`, which is '' otherwise. */
export const withBudget = (now: string, lines: string): string => `
if budget ~= '' then${OPEN_BUDGET}
  local now = tonumber(${now})
  local opened = open_budget(budget, now)
${lines}
end`

/**
 * Lua lines that set BullMQ's argument `delay` to the time until the retry of the task `id` starts. They do nothing if the
 * task's lock, whose key is `lock`, does not have the token `token`, because BullMQ then refuses the move.
 */
export const admitRetry = (move: {
  readonly id: string
  readonly now: string
  readonly delay: string
  readonly lock: string
  readonly token: string
}): string => `
if budget ~= '' and call('GET', ${move.lock}) ~= ${move.token} then budget = '' end
${withBudget(move.now, `  ${move.delay} = string.format('%.0f', opened.admit(${move.id}, now + ${move.delay}) - now)`)}`

/**
 * Lua lines for the end of a task that was retried. If held retries move, an idle Worker is woken when the first one is
 * due.
 */
export const finishRetry = (end: { readonly now: string; readonly isCompleted: string }): string =>
  withBudget(
    end.now,
    `  if opened.finish(${end.isCompleted}) > 0 then
    local first = call('ZRANGE', base .. 'delayed', 0, 0, 'WITHSCORES')[2]
    if first then call('ZADD', base .. 'marker', first / ${DELAYED_SCORE_STEP}, '1') end
  end`,
  )

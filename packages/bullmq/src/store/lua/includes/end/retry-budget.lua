-- Keeps retries within the retry budget of their definition. The scripts that end an attempt use it, but only if the attempt is retried, or
-- if it is the last attempt of a task that was retried. The functions make the same decisions as
-- packages/engine/src/verdict/retry-budget.ts, which explains the budget.
--
-- Each worker counts the attempts to which the ratio refers (retry-budget/attempt-counts.ts). It sends its counts with the next end that
-- needs the budget, so an attempt that succeeds costs nothing. The attempts of workers without any failures are missing, which makes the
-- ratio stricter.
--
-- The hash `retry-budget:<definition>` contains `tokens` and `at` as in the engine, and for each second the number of attempts that ended
-- (`a` and the second) and of retries that the ratio allowed (`r` and the second). It expires when the whole budget is unused.
--
-- admit_retry(packed, now, id, backoff_ends_at)  returns when the retry of the task starts. `packed` comes from attempt-counts.ts. Times
--                                                are in ms since 1970
-- end_retry(packed, now, is_completed)           takes the end of a retry into account, which may release held retries
--- @include time
--- @include held-retries

local BUDGET_WINDOW_S, MAX_RELEASED = 10, 100
local BUDGET_WINDOW_MS = BUDGET_WINDOW_S * 1000
-- How many held retries one script examines. Nearly all of them are still held, unless many tasks were cancelled at once.
local MAX_EXAMINED = 1000

-- Reads what is stored, and adds the attempts that `counts` has by their age in seconds.
local function read_budget(budget, counts)
  local stored = redis.call('HGETALL', budget.key)
  for i = 1, #stored, 2 do
    local field, value = stored[i], tonumber(stored[i + 1])
    local kind, second = string.match(field, '^(%l)(%d+)$')
    if not kind then
      budget[field] = value
    elseif tonumber(second) <= budget.second - BUDGET_WINDOW_S then
      table.insert(budget.forgotten, field)
    elseif kind == 'a' then
      budget.attempts = budget.attempts + value
    else
      budget.by_ratio = budget.by_ratio + value
    end
  end
  for age, count in string.gmatch(counts, '(%d+):(%d+)') do
    if tonumber(age) < BUDGET_WINDOW_S then
      budget.attempts = budget.attempts + count
      redis.call('HINCRBY', budget.key, 'a' .. whole(budget.second - age), count)
    end
  end
end

-- Each retry whose slot has begun has used the token that was added by then.
local function open_budget(packed, now)
  local task, ratio, interval, latest, counts = string.match(packed, '^(%S+) (%S+) (%S+) (%S+)(.*)$')
  local max = math.max(1, BUDGET_WINDOW_MS / interval)
  local budget = { key = base .. 'retry-budget:' .. task, line = base .. 'held-retries:' .. task }
  budget.ratio, budget.interval, budget.latest = tonumber(ratio), tonumber(interval), tonumber(latest) or math.huge
  budget.now, budget.second, budget.max = now, math.floor(now / 1000), max
  budget.attempts, budget.by_ratio, budget.allowed, budget.forgotten = 0, 0, 0, {}
  budget.tokens, budget.at = max, now
  read_budget(budget, counts)
  local begun = redis.call('ZREMRANGEBYSCORE', budget.line, '-inf', whole(now))
  budget.tokens = math.min(max, budget.tokens + math.max(0, now - budget.at) / budget.interval - begun)
  return budget
end

local function ratio_allows(budget)
  return budget.ratio * budget.attempts - budget.by_ratio - budget.allowed >= 1 - 1e-6
end

local function may_retry(budget)
  return ratio_allows(budget) or budget.tokens >= 1 - 1e-6
end

local function spend(budget)
  if ratio_allows(budget) then
    budget.allowed = budget.allowed + 1
  else
    budget.tokens = budget.tokens - 1
  end
end

local function next_token_at(budget)
  return budget.now + (budget.tokens < 1 and 1 - budget.tokens or 1) * budget.interval
end

-- Returns how many held retries now start earlier.
local function release_held(budget)
  local released, examined, moved = 0, 0, 0
  while released < MAX_RELEASED and examined < MAX_EXAMINED and may_retry(budget) do
    local is_found, was_held, is_earlier = release_retry(budget.line, budget.now)
    if not is_found then
      break
    end
    examined = examined + 1
    if was_held then
      spend(budget)
      released, moved = released + 1, moved + (is_earlier and 1 or 0)
    end
  end
  return moved + move_up(budget.line, next_token_at(budget), budget.interval)
end

local function store_budget(budget)
  local key, line, now = budget.key, budget.line, budget.now
  if #budget.forgotten > 0 then
    redis.call('HDEL', key, unpack(budget.forgotten))
  end
  if budget.allowed > 0 then
    redis.call('HINCRBY', key, 'r' .. whole(budget.second), budget.allowed)
  end
  redis.call('HSET', key, 'tokens', string.format('%.9f', budget.tokens), 'at', whole(math.max(budget.at, now)))
  local last = redis.call('ZREVRANGE', line, 0, 0, 'WITHSCORES')[2]
  local life = math.ceil(math.max(0, (last or now) - now)) + 2 * BUDGET_WINDOW_MS
  redis.call('PEXPIRE', key, life)
  if last then
    redis.call('PEXPIRE', line, life)
  end
end

local function admit_retry(packed, now, id, backoff_ends_at)
  local budget = open_budget(packed, now)
  release_held(budget)
  local starts_at = backoff_ends_at
  local last = redis.call('ZREVRANGE', budget.line, 0, 0, 'WITHSCORES')[2]
  if not last and may_retry(budget) then
    spend(budget)
  else
    local slot_at = last and last + budget.interval or next_token_at(budget)
    starts_at = math.max(backoff_ends_at, math.min(math.ceil(slot_at), budget.latest))
    hold_retry(budget.line, id, backoff_ends_at, starts_at, slot_at)
  end
  store_budget(budget)
  return starts_at
end

-- Returns how many held retries now start earlier. If any do, the marker is set, so that an idle worker wakes when the first of them is
-- due.
local function end_retry(packed, now, is_completed)
  local budget = open_budget(packed, now)
  if is_completed then
    budget.tokens = math.min(budget.max, budget.tokens + 1)
  end
  local moved = release_held(budget)
  store_budget(budget)
  local first = moved > 0 and redis.call('ZRANGE', base .. 'delayed', 0, 0, 'WITHSCORES')[2]
  if first then
    redis.call('ZADD', base .. 'marker', whole(math.floor(first / DELAYED_STEP)), '1')
  end
  return moved
end

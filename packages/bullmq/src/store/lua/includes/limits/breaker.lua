-- Decides when tasks that depend on a service may start, from how their calls of the service end. The functions make the same decisions as
-- packages/engine/src/breaker/breaker.ts, which explains breakers. They may change the breaker that they are given. Times are in ms since
-- 1970, and `settings` are those of the breaker.
--
-- A breaker is stored as JSON. The JSON of an empty Lua table is an object, so a breaker has no lists: `buckets` has the numbers of calls,
-- failures and slow calls by the time at which their bucket begins. `until` is a time or 'none'.
--
-- new_breaker(now)                                         a breaker that has counted nothing
-- breaker_starts_at(breaker, now, settings)                when a task may start: `now` if it may start now, a later time, or 'none' if
--                                                          someone has to set the breaker first
-- admit_start(breaker, now, settings)                      the breaker after the start of a task that may start now. Its attempt gets the
--                                                          breaker's generation
-- record_call(breaker, call, now, settings, random)        the breaker after the end of a call, or nil if the call does not count. `random`
--                                                          is at least 0 and less than 1
-- with_mode(breaker, mode, now)                            the breaker after someone has set another mode
local BUCKETS, OPEN_JITTER, ROUNDING = 10, 0.1, 1e-9

local function new_breaker(now)
  return { state = 'closed', mode = 'auto', generation = 0, since = now, buckets = {} }
end

local function next_breaker(breaker, state, now)
  return { state = state, mode = breaker.mode, generation = breaker.generation + 1, since = now }
end

local function half_opened(breaker, at)
  local after = next_breaker(breaker, 'half_open', at)
  after.from, after.openings = after.generation, breaker.openings
  after.started, after['until'], after.succeeded = 0, 'none', 0
  return after
end

local function closed(breaker, now)
  local after = next_breaker(breaker, 'closed', now)
  after.buckets = {}
  return after
end

local function open_ms(openings, settings)
  return math.min(settings.openMs * 2 ^ (openings - 1), settings.maxOpenMs)
end

local function opened(breaker, openings, now, settings, random)
  local after = next_breaker(breaker, 'open', now)
  after['until'] = now + math.ceil(open_ms(openings, settings) * (1 + OPEN_JITTER * random))
  after.openings = openings
  return after
end

-- A time that is further ahead than any breaker waits was stored before the clock stepped back, or with other settings.
local function has_passed(ends_at, now, settings)
  return ends_at <= now or ends_at - now > settings.maxOpenMs * (1 + OPEN_JITTER) + 1
end

-- Returns the breaker after what has happened because time has passed.
local function advance(breaker, now, settings)
  local ends_at = breaker['until']
  if not ends_at or ends_at == 'none' or not has_passed(ends_at, now, settings) then
    return breaker
  end
  if breaker.state == 'open' then
    return half_opened(breaker, math.min(ends_at, now))
  end
  breaker.generation, breaker.started, breaker['until'] = breaker.generation + 1, 0, 'none'
  return breaker
end

local function breaker_starts_at(breaker, now, settings)
  local current = advance(breaker, now, settings)
  local is_probed = current.state == 'half_open' and current.started < settings.probes
  return (current.state == 'closed' or is_probed) and now or current['until']
end

local function admit_start(breaker, now, settings)
  local current = advance(breaker, now, settings)
  if current.state == 'half_open' then
    if current['until'] == 'none' then
      current['until'] = now + open_ms(current.openings, settings)
    end
    current.started = current.started + 1
  end
  return current
end

-- Adds a call to its bucket, and drops the buckets that are no longer in the window. Returns whether too many calls failed or were slow.
local function count_call(breaker, call, now, settings)
  local length = math.ceil(settings.windowMs / BUCKETS)
  local current = math.floor(now / length) * length
  local name = string.format('%.0f', current)
  local own = breaker.buckets[name] or { 0, 0, 0 }
  local kept, calls, failures, slow = {}, 0, 0, 0
  kept[name] = { own[1] + 1, own[2] + (call.failed and 1 or 0), own[3] + (call.slow and 1 or 0) }
  for at, bucket in pairs(breaker.buckets) do
    local is_in_window = tonumber(at) <= current and tonumber(at) > current - BUCKETS * length
    kept[at] = kept[at] or is_in_window and bucket or nil
  end
  for _, bucket in pairs(kept) do
    calls, failures, slow = calls + bucket[1], failures + bucket[2], slow + bucket[3]
  end
  breaker.buckets = kept
  return calls >= settings.minimumCalls
    and (failures / calls >= settings.failureRate - ROUNDING or slow / calls >= settings.slowCallRate - ROUNDING)
end

local function record_call(breaker, call, now, settings, random)
  if breaker.state == 'closed' and call.generation == breaker.generation then
    local is_exceeded = count_call(breaker, call, now, settings)
    return is_exceeded and breaker.mode == 'auto' and opened(breaker, 1, now, settings, random) or breaker
  end
  if breaker.state ~= 'half_open' or call.generation < breaker.from then
    return nil
  end
  if call.failed or call.slow then
    return opened(breaker, breaker.openings + 1, now, settings, random)
  end
  breaker.succeeded = breaker.succeeded + 1
  return breaker.succeeded >= settings.probes and closed(breaker, now) or breaker
end

local function with_mode(breaker, mode, now)
  breaker.mode = mode
  if mode == 'open' then
    local after = next_breaker(breaker, 'open', now)
    after['until'], after.openings = 'none', breaker.openings or 1
    return after
  end
  if mode == 'closed' then
    return breaker.state == 'closed' and breaker or closed(breaker, now)
  end
  return breaker.state == 'open' and half_opened(breaker, now) or breaker
end

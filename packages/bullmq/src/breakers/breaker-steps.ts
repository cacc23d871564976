// Defines the steps that apply a queue's circuit breakers in the scripts that start and end attempts. They make the
// same decisions as packages/engine/src/breaker/breaker.ts, which explains breakers.
//
// The random number comes from the worker, because Redis's `math.random` yields the same numbers in every script.
import { BUCKETS, OPEN_JITTER } from '@bullpen/engine/internal'

/** The beginning of the name of each setting of a queue that sets a breaker by hand. */
export const BREAKER_SETTING = 'breaker:'

/**
 * A Lua function, `open_breakers(base, now)`, where `now` is in ms since 1970. It returns a table with these functions:
 *
 * - `define(service, settings)` stores the settings of a breaker, which come from {@link encodeSettings}. A service
 *   without settings has no breaker: its tasks start, and its calls are not counted.
 * - `starts_at(service)` returns when a task that depends on the service may start: `now` if it may start now, a later
 *   time, or 'none' if a person must set the breaker first.
 * - `admit(service)` notes the start of a task that may start now. Returns the generation for its attempt.
 * - `record(service, generation, failed, slow, random)` counts a call that has ended. `random` is at least 0 and less
 *   than 1, and the attempt got `generation` when it started.
 * - `set(service, mode, by, settings)` sets the mode of a breaker. The settings apply if none are stored.
 * - `remove(service)` deletes a breaker.
 * - `refresh(service)` takes into account that time has passed.
 *
 * Each function reads and writes one field, and calls `set_gate(service, starts_at)` whenever the time at which a task
 * may start changes. They need this function and the local variable `call`. `record` and `set` return whether the
 * breaker has another state than before.
 */
export const OPEN_BREAKERS = `
local function open_breakers(base, now)
  local key = base .. 'breakers'
  local function read(service)
    local stored = call('HGET', key, service)
    return stored and cjson.decode(stored)
  end
  local function new(settings)
    local breaker = { state = 'closed', mode = 'auto', generation = 0, since = now, buckets = {} }
    return { breaker = breaker, settings = cjson.decode(settings) }
  end
  local function store(service, stored) call('HSET', key, service, cjson.encode(stored)) end

  local function next_of(breaker, state)
    return { state = state, mode = breaker.mode, generation = breaker.generation + 1, since = now }
  end
  local function half_opened(breaker, at)
    local after = next_of(breaker, 'half_open')
    after.since = at
    after.from, after.started, after['until'], after.succeeded = after.generation, 0, 'none', 0
    after.openings = breaker.openings
    return after
  end
  local function closed(breaker)
    local after = next_of(breaker, 'closed')
    after.buckets = {}
    return after
  end
  local function open_ms(openings, settings)
    return math.min(settings.openMs * 2 ^ (openings - 1), settings.maxOpenMs)
  end
  local function opened(breaker, openings, settings, random)
    local after = next_of(breaker, 'open')
    after['until'] = now + math.ceil(open_ms(openings, settings) * (1 + ${OPEN_JITTER} * random))
    after.openings = openings
    return after
  end

  local function advance(stored)
    local breaker = stored.breaker
    local ends_at = breaker['until']
    if not ends_at or ends_at == 'none' then return breaker end
    if ends_at > now and ends_at - now <= stored.settings.maxOpenMs * (1 + ${OPEN_JITTER}) + 1 then return breaker end
    if breaker.state == 'open' then return half_opened(breaker, math.min(ends_at, now)) end
    breaker.generation, breaker.started, breaker['until'] = breaker.generation + 1, 0, 'none'
    return breaker
  end
  local function starts_at(stored)
    local breaker = advance(stored)
    if breaker.state == 'closed' then return now end
    if breaker.state == 'half_open' and breaker.started < stored.settings.probes then return now end
    return breaker['until']
  end

  local function write(service, stored)
    store(service, stored)
    set_gate(service, starts_at(stored))
  end

  local function count(breaker, failed, slow, settings)
    local length = math.ceil(settings.windowMs / ${BUCKETS})
    local current = math.floor(now / length) * length
    local name, buckets, calls, failures, slows = string.format('%.0f', current), {}, 1, failed, slow
    local own = breaker.buckets[name] or { 0, 0, 0 }
    breaker.buckets[name] = own
    for at, bucket in pairs(breaker.buckets) do
      if tonumber(at) <= current and tonumber(at) > current - ${BUCKETS} * length then
        calls, failures, slows = calls + bucket[1], failures + bucket[2], slows + bucket[3]
        buckets[at] = bucket
      end
    end
    buckets[name] = { own[1] + 1, own[2] + failed, own[3] + slow }
    breaker.buckets = buckets
    return calls >= settings.minimumCalls
      and (failures / calls >= settings.failureRate - 1e-9 or slows / calls >= settings.slowCallRate - 1e-9)
  end

  local breakers = {}
  function breakers.define(service, settings)
    local stored = read(service) or new(settings)
    stored.settings = cjson.decode(settings)
    write(service, stored)
  end
  function breakers.starts_at(service)
    local stored = read(service)
    return stored and starts_at(stored) or now
  end
  function breakers.admit(service)
    local stored = read(service)
    if not stored then return 0 end
    local breaker = advance(stored)
    if breaker.state == 'half_open' then
      if breaker['until'] == 'none' then breaker['until'] = now + open_ms(breaker.openings, stored.settings) end
      breaker.started = breaker.started + 1
      stored.breaker = breaker
      write(service, stored)
    end
    return breaker.generation
  end
  function breakers.record(service, generation, failed, slow, random)
    local stored = read(service)
    if not stored then return false end
    local breaker, after = stored.breaker, nil
    if breaker.state == 'closed' and generation == breaker.generation then
      after = breaker
      local is_exceeded = count(breaker, failed and 1 or 0, slow and 1 or 0, stored.settings)
      if is_exceeded and breaker.mode == 'auto' then after = opened(breaker, 1, stored.settings, random) end
    elseif breaker.state == 'half_open' and generation >= breaker.from then
      after = breaker
      if failed or slow then
        after = opened(breaker, breaker.openings + 1, stored.settings, random)
      else
        breaker.succeeded = breaker.succeeded + 1
        if breaker.succeeded >= stored.settings.probes then after = closed(breaker) end
      end
    end
    if not after then return false end
    stored.breaker = after
    if after.state == 'closed' and breaker.state == 'closed' then store(service, stored) else write(service, stored) end
    return after.state ~= breaker.state
  end
  function breakers.set(service, mode, by, settings)
    local stored = read(service) or new(settings)
    local breaker = stored.breaker
    if breaker.mode == mode then return false end
    local after = breaker
    after.mode = mode
    if mode == 'open' then
      after = next_of(breaker, 'open')
      after['until'], after.openings = 'none', breaker.openings or 1
    elseif mode == 'closed' and breaker.state ~= 'closed' then
      after = closed(breaker)
    elseif mode == 'auto' and breaker.state == 'open' then
      after = half_opened(breaker, now)
    end
    write(service, { breaker = after, settings = stored.settings, setBy = { by = by, at = now } })
    return after.state ~= breaker.state
  end
  function breakers.remove(service)
    call('HDEL', key, service)
    set_gate(service, now)
  end
  function breakers.refresh(service) set_gate(service, breakers.starts_at(service)) end
  return breakers
end
`

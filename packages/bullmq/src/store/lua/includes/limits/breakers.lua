-- Stores the circuit breakers of a queue. The hash `breakers` has one field for each service, with the breaker (breaker.lua), its settings
-- and who has set its mode by hand, as JSON. A service without settings has no breaker: tasks that depend on it start, and their calls of
-- it are not counted.
--
-- Each function concerns one service, and calls `set_gate(service, starts_at)` whenever the time at which a task may start may have
-- changed. `set_gate`, `base` and `now` (ms since 1970) are declared before the include.
--
-- define_breaker(service, settings)                    stores settings (breakers/stored-breaker.ts)
-- set_breaker(service, mode, by, settings)             sets the mode of a breaker. The settings apply if none are stored
-- remove_breaker(service)
-- refresh_breaker(service)                             only calls `set_gate`, because time has passed
-- admit_to(service)                                    notes the start of a task that may start now, and returns the breaker's generation
-- record_breaker_call(service, call, random)           counts a call that has ended
--- @include breaker

local function read_breaker(service)
  local stored = redis.call('HGET', base .. 'breakers', service)
  return stored and cjson.decode(stored)
end

local function store_breaker(service, stored)
  redis.call('HSET', base .. 'breakers', service, cjson.encode(stored))
end

local function write_breaker(service, stored)
  store_breaker(service, stored)
  set_gate(service, breaker_starts_at(stored.breaker, now, stored.settings))
end

local function define_breaker(service, settings)
  local stored = read_breaker(service) or { breaker = new_breaker(now) }
  stored.settings = cjson.decode(settings)
  write_breaker(service, stored)
end

local function set_breaker(service, mode, by, settings)
  local stored = read_breaker(service) or { breaker = new_breaker(now), settings = cjson.decode(settings) }
  if stored.breaker.mode ~= mode then
    local after = with_mode(stored.breaker, mode, now)
    write_breaker(service, { breaker = after, settings = stored.settings, setBy = { by = by, at = now } })
  end
end

local function remove_breaker(service)
  redis.call('HDEL', base .. 'breakers', service)
  set_gate(service, now)
end

local function refresh_breaker(service)
  local stored = read_breaker(service)
  set_gate(service, stored and breaker_starts_at(stored.breaker, now, stored.settings) or now)
end

local function admit_to(service)
  local stored = read_breaker(service)
  if not stored then
    return 0
  end
  stored.breaker = admit_start(stored.breaker, now, stored.settings)
  if stored.breaker.state == 'half_open' then
    write_breaker(service, stored)
  end
  return stored.breaker.generation
end

local function record_breaker_call(service, call, random)
  local stored = read_breaker(service)
  local was_closed = stored and stored.breaker.state == 'closed'
  local after = stored and record_call(stored.breaker, call, now, stored.settings, random)
  if not after then
    return
  end
  stored.breaker = after
  if was_closed and after.state == 'closed' then
    store_breaker(service, stored)
  else
    write_breaker(service, stored)
  end
end

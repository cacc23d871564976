-- Makes tasks wait while a circuit breaker does not let them start. A breaker (breaker.lua) decides when they may; the gate of its service
-- carries that out with a limiter and times of lanes.
--
-- A breaker is a limiter without permits. Each task that depends on the service `smtp` needs 1 of `service:smtp`. While the breaker lets no
-- task start, the limiter has the capacity 0, so the lanes of these tasks leave the turns, and cost nothing. Otherwise, it has no capacity,
-- and nothing is counted for it.
--
-- Whatever changes a breaker also sets the capacity (`set_gate`). If tasks may start again at a known time, `lane-times` has an entry with
-- this time, one for the service and not one for each lane. An idle worker wakes at that time, and the next fetch notices the entry. Each
-- fetch then lets at most 32 of the service's lanes take turns again, and the entry stays until none of them is left. If the breaker lets
-- only a few tasks probe the service, the other lanes leave the turns again, so 100,000 lanes cost no more than 32.
--
-- Entries are deleted together with the turns when no task waits, and none is added while there are no lanes: an idle worker would
-- otherwise find a time that has passed, and fetch in a loop. The first lane that has to wait adds the entry again.
--
-- The field `admitted` of a task has, for each service, the breaker's generation when the last attempt started, as JSON.
--
-- gates() returns these functions. The first call creates them, because few tasks depend on a service:
--
-- define, set, remove           see breakers.lua
-- admit(id, needs)              tells the breakers that a task with these needs has started
-- count_calls(id, calls)        counts the calls of an attempt of the task when it ends (attempt-end.lua)
-- note(need)                    if the need is one of a service, adds the entry of this service, for which a lane has to wait
-- note_closed(needs)            does so for the services of a task that a worker may start outside of its lane's turn. Otherwise, a breaker
--                               would stay open if all workers of the queue were such workers
-- resume(entry, most)           handles an entry of `lane-times` whose time has come: if it is that of a service whose tasks may start,
--                               lets at most `most` of the service's lanes take turns again
--- @include time
--- @include blocked-lanes

local created_gates

local function gates()
  if created_gates then
    return created_gates
  end
  local KIND = 'service:'
  -- An entry of `lane-times` is like the name of a lane without a concurrency key, but has no amount.
  local ENTRY = '\30' .. KIND
  local now, noted, set_gate = millis(), {}, nil
  --- @include breakers

  -- A lane that also waits for permits would hold up the lanes behind it while the breaker lets it start nothing. If it is the first lane
  -- that waits for some limiter, it is therefore woken. In its turn, it gives its tickets back, which wakes the next lane.
  local function wake_held_up(limiter)
    for _, need in ipairs(redis.call('ZRANGEBYLEX', base .. 'waited-needs', '[permits:', '+')) do
      local first = redis.call('ZRANGE', base .. 'need-waiters:' .. need, 0, 0)[1]
      if first and string.find(first, limiter .. '=', 1, true) then
        wake_first(need)
      end
    end
  end

  function set_gate(service, starts_at)
    local times, limiter = base .. 'lane-times', KIND .. service
    local has_lanes = redis.call('EXISTS', base .. 'turn-state') == 1
    if starts_at == now then
      if redis.call('HDEL', base .. 'capacities', limiter) == 1 and has_lanes then
        redis.call('ZADD', times, whole(now), ENTRY .. service)
        redis.call('ZADD', base .. 'marker', '0', '0')
      end
      return
    end
    if redis.call('HSET', base .. 'capacities', limiter, '0') == 1 then
      wake_held_up(limiter)
    end
    if starts_at == 'none' then
      redis.call('ZREM', times, ENTRY .. service)
    elseif has_lanes then
      redis.call('ZADD', times, whole(starts_at), ENTRY .. service)
      redis.call('ZADD', base .. 'marker', 'LT', whole(starts_at), '1')
    end
  end

  local function admit(id, needs)
    local admitted = {}
    for service in string.gmatch(needs, KIND .. '([^=]+)=') do
      admitted[service] = admit_to(service)
    end
    if next(admitted) then
      redis.call('HSET', base .. id, 'admitted', cjson.encode(admitted))
    end
  end

  local function count_calls(id, calls)
    local admitted = cjson.decode(redis.call('HGET', base .. id, 'admitted') or '{}')
    for _, each in ipairs(cjson.decode(calls)) do
      local service, failed, slow, random = unpack(each)
      if admitted[service] then
        local call = { generation = admitted[service], failed = failed, slow = slow }
        record_breaker_call(service, call, random)
      end
    end
  end

  local function note(need)
    local service = string.match(need, '^' .. KIND .. '(.*)=')
    if service and not redis.call('ZSCORE', base .. 'lane-times', ENTRY .. service) then
      refresh_breaker(service)
    end
  end

  local function note_closed(needs)
    for need in string.gmatch(needs, KIND .. '[^,]+') do
      if not noted[need] and redis.call('HEXISTS', base .. 'capacities', string.match(need, '^[^=]+')) == 1 then
        note(need)
      end
      noted[need] = true
    end
  end

  local function resume(entry, most)
    local service = string.match(entry, '^' .. ENTRY .. '([^=]*)$')
    if not service then
      return
    end
    refresh_breaker(service)
    if redis.call('HEXISTS', base .. 'capacities', KIND .. service) == 1 then
      return
    end
    local need = KIND .. service .. '=1'
    local lanes = redis.call('ZPOPMIN', base .. 'need-waiters:' .. need, most)
    for i = 1, #lanes, 2 do
      local pass = redis.call('ZSCORE', base .. 'blocked-lanes', lanes[i])
      if pass then
        resume_lane(lanes[i], pass)
      end
    end
    if redis.call('EXISTS', base .. 'need-waiters:' .. need) == 1 then
      redis.call('ZADD', base .. 'lane-times', whole(now), entry)
      redis.call('ZADD', base .. 'marker', '0', '0')
    else
      redis.call('ZREM', base .. 'lane-times', entry)
      redis.call('ZREM', base .. 'waited-needs', need)
    end
  end

  created_gates = {
    define = define_breaker,
    set = set_breaker,
    remove = remove_breaker,
    admit = admit,
    count_calls = count_calls,
    note = note,
    note_closed = note_closed,
    resume = resume,
  }
  return created_gates
end

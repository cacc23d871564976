// Makes tasks wait while a circuit breaker does not let them start.
//
// A breaker is a limiter without permits (../internals/turns/limiters/limiter-steps.ts). Each task that depends on the
// service `smtp` needs 1 of `service:smtp`. While the breaker lets no task start, the limiter has the capacity 0, so
// the lanes of these tasks leave the turns, and cost nothing. Otherwise, it has no capacity, and nothing is counted for
// it.
//
// The scripts that change a breaker set the capacity (`set_gate`). If that depends on time, an entry for the service,
// not one for each lane, is in `lane-times`, which the next fetch after that time notices. So does a worker that has
// nothing to do until then. When tasks may start again, each fetch lets at most 32 of the service's lanes take turns
// again, and the entry stays until none of them is left. If the breaker lets only a few tasks probe the service, the
// other lanes leave the turns again, so 100,000 lanes cost no more than 32.
//
// A lane that also waits for permits would hold up the lanes behind it while the breaker lets it start nothing. If such
// a lane is the first one that waits for some limiter when the capacity becomes 0, it is therefore woken. In its turn,
// it gives its tickets back (LIMITERS in limiter-steps.ts), which wakes the next lane.
//
// Entries are deleted together with the turns when no task waits, and none is added while there are no lanes: an idle
// worker would otherwise find a time that has passed, and fetch in a loop. The first lane that has to wait adds the
// entry again.
import { resume } from '../internals/turns/key-concurrency.ts'
import { WAITED_NEEDS, waitersOf, wakeFirst } from '../internals/turns/limiters/limiter-steps.ts'
import { OPEN_BREAKERS } from './breaker-steps.ts'

/**
 * Lua: the beginning of the names of limiters that are services. An entry of `lane-times` is like the name of a lane
 * without a concurrency key, but has no amount.
 */
const KIND = 'service:'
const ENTRY = String.raw`'\30${KIND}'`

/**
 * A Lua function, `open_gates()`, which returns the functions of `open_breakers` (./breaker-steps.ts) for the time of
 * Redis's clock, and that time in ms since 1970. It needs the local variables `call` and `base`. As long as it is not
 * called, it runs no command.
 */
export const OPEN_GATES = `
local function open_gates()
  local time = call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local function set_gate(service, starts_at)
    local capacities, times, limiter, entry = base .. 'capacities', base .. 'lane-times', '${KIND}' .. service, ${ENTRY} .. service
    local has_lanes = call('EXISTS', base .. 'turn-state') == 1
    if starts_at == now then
      if call('HDEL', capacities, limiter) == 0 or not has_lanes then return end
      call('ZADD', times, now, entry)
      call('ZADD', base .. 'marker', '0', '0')
    else
      if call('HSET', capacities, limiter, '0') == 1 and call('EXISTS', ${WAITED_NEEDS}) == 1 then
        for _, need in ipairs(call('ZRANGEBYLEX', ${WAITED_NEEDS}, '[permits:', '+')) do
          local first, ticket = unpack(call('ZRANGE', ${waitersOf('need')}, 0, 0, 'WITHSCORES'))
          if first and not string.find(first, limiter .. '=', 1, true) then first = nil end
          ${wakeFirst('ticket')}
        end
      end
      if starts_at == 'none' then
        call('ZREM', times, entry)
      elseif has_lanes then
        call('ZADD', times, starts_at, entry)
        call('ZADD', base .. 'marker', 'LT', starts_at, '1')
      end
    end
  end${OPEN_BREAKERS}
  return open_breakers(base, now), now
end`

// The lines below need this function.

/**
 * Lua lines for the entry `name` of `lane-times`, whose time has come. If it is that of a service whose tasks may
 * start, at most `most` of its lanes take turns again.
 */
export const resumeService = (most: number): string => `
      local service = string.match(name, ${String.raw`'^\30${KIND}([^=]*)$'`})
      if service then
        local breakers, now = open_gates()
        breakers.refresh(service)
        if call('HEXISTS', base .. 'capacities', '${KIND}' .. service) == 0 then
          local entry, need = name, '${KIND}' .. service .. '=1'
          local waiters = base .. 'need-waiters:' .. need
          local lanes = call('ZPOPMIN', waiters, '${most}')
          for i = 1, #lanes, 2 do
            local name = lanes[i]
            local pass = call('ZSCORE', base .. 'blocked-lanes', name)
            if pass then
            ${resume()}
            end
          end
          if call('EXISTS', waiters) == 1 then
            call('ZADD', base .. 'lane-times', now, entry)
            call('ZADD', base .. 'marker', '0', '0')
          else
            call('ZREM', base .. 'lane-times', entry)
            call('ZREM', base .. 'waited-needs', need)
          end
        end
      end`

/**
 * Lua lines that add the entry of a service for which a lane waits because of `refused`, the table of needs, unless it
 * exists.
 */
export const NOTE_SERVICE = `
        local service = string.match(refused[1], '^${KIND}(.*)=')
        if service and not call('ZSCORE', base .. 'lane-times', ${ENTRY} .. service) then open_gates().refresh(service) end`

/**
 * Lua lines that do the same for a task with the needs `needs` that a worker may start outside of its lane's turn.
 * Otherwise, a breaker would stay open if all workers of the queue are such workers. The lines need the table `noted`,
 * which is shared by the tasks of one script.
 */
export const NOTE_SERVICES = `
      for service in string.gmatch(needs, '${KIND}([^=]+)=') do
        local is_noted = noted[service] or call('HEXISTS', base .. 'capacities', '${KIND}' .. service) == 0
        if not is_noted and not call('ZSCORE', base .. 'lane-times', ${ENTRY} .. service) then open_gates().refresh(service) end
        noted[service] = true
      end`

/** Lua lines that note with the breakers that the task `id`, whose needs are `needs` or nil, has started. */
export const ADMIT = `
          if needs and string.find(needs, '${KIND}', 1, true) then
            local breakers, admitted = open_gates(), {}
            for service in string.gmatch(needs, '${KIND}([^=]+)=') do admitted[service] = breakers.admit(service) end
            call('HSET', base .. id, 'admitted', cjson.encode(admitted))
          end`

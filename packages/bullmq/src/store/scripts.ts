// Every Lua script, with its types. Written by npm run lua from the .lua files; not edited by hand.
import type { GroupPhase, GroupResult, TaskId } from '@bullpen/contract'
import type { CancelAnswer } from '@bullpen/contract/internal'
import type { DeadTaskAnswer, Registration, WriteResult } from '@bullpen/engine/internal'
import type { Duty } from '../leader/survey.ts'
import type { SubjectState } from '../orphans/subject.ts'
import type { OutboxSpanReply } from '../outbox/outbox-span.ts'
import type { StoredKey } from '../queries/concurrency-keys.ts'
import type { RunReply } from '../runs/run-change.ts'
import { withIncludes } from '../scripts/includes.ts'
import { luaScript } from '../scripts/script.ts'
import type { AddReply } from './add.ts'
import type { MoveReply } from './move-batch.ts'

const INCLUDES = {
  'active-count': `--- @include lane
--- @include held-places
--- @include ticket-of
local EXAMINED_BLOCKED_LANES = 1000
local function counted_capacities()
  local capacities, stored = {}, redis.call('HGETALL', base .. 'capacities')
  for i = 1, #stored, 2 do
    if string.sub(stored[i], 1, 8) ~= 'service:' then
      capacities[stored[i]] = tonumber(stored[i + 1])
    end
  end
  return capacities
end
local function count_held(has_limits)
  local counts, used, capacities = {}, {}, counted_capacities()
  local is_counted = has_limits or next(capacities)
  for _, id in ipairs(is_counted and redis.call('LRANGE', base .. 'active', 0, -1) or {}) do
    local lane = redis.call('HGET', base .. id, 'lane')
    local key, needs = split_lane(lane and lane_name(lane) or '')
    if has_limits and key ~= '' then
      counts[key] = (counts[key] or 0) + 1
    end
    for limiter, amount in limiters().each_need(needs or '') do
      if capacities[limiter] then
        used[limiter] = (used[limiter] or 0) + amount
      end
    end
  end
  return counts, used
end
local function correct_counts(set, counted, corrected)
  local stored, seen, wrong = redis.call('ZRANGE', set, 0, -1, 'WITHSCORES'), {}, 0
  for i = 1, #stored, 2 do
    local member = stored[i]
    seen[member] = true
    if counted[member] ~= tonumber(stored[i + 1]) then
      wrong = wrong + 1
      if counted[member] then
        redis.call('ZADD', set, counted[member], member)
      else
        redis.call('ZREM', set, member)
      end
      corrected(member)
    end
  end
  for member, count in pairs(counted) do
    if not seen[member] then
      wrong = wrong + 1
      redis.call('ZADD', set, count, member)
    end
  end
  return wrong
end
local function is_refused(name, counts)
  local key, needs = split_lane(name)
  local ticket = needs and ticket_of(base, name, key, needs)
  if ticket and ticket ~= 'key' or redis.call('ZSCORE', base .. 'lane-times', name) then
    return true
  end
  local first = ticket and redis.call('ZRANGE', base .. 'need-waiters:' .. key_need(key), 0, 0)[1]
  if first and first ~= name then
    local is_awake = redis.call('ZSCORE', base .. 'blocked-lanes', first)
      or redis.call('ZSCORE', base .. 'turns', first)
    if is_awake then
      return true
    end
  end
  local limit = (ticket or not needs) and limits_of_key(key)
  return limit and (counts[key] or 0) >= limit
end
local function wake_all()
  local is_woken = {}
  for _, need in ipairs(redis.call('ZRANGE', base .. 'waited-needs', 0, -1)) do
    local limiter = string.match(need, '^(.*)=%d+$')
    if not is_woken[limiter] and string.sub(limiter, 1, 4) ~= 'key:' then
      limiters().wake(limiter)
    end
    is_woken[limiter] = true
  end
end
local function count_active(has_changed)
  local counts, used = count_held(redis.call('EXISTS', base .. 'key-limits') == 1)
  local blocked, wrong = base .. 'blocked-lanes', 0
  local function examine(name, pass)
    if pass and not is_refused(name, counts) then
      wrong = wrong + 1
      resume_lane(name, pass)
    end
  end
  local wrong_keys = correct_counts(base .. 'active-by-key', counts, function(key)
    examine(key, redis.call('ZSCORE', blocked, key))
    wake_first(key_need(key))
  end)
  local wrong_limiters = correct_counts(base .. 'in-use', used, limiters().wake)
  local lanes = has_changed and redis.call('ZRANGE', blocked, 0, -1, 'WITHSCORES')
    or redis.call('ZRANDMEMBER', blocked, EXAMINED_BLOCKED_LANES, 'WITHSCORES')
  for i = 1, #lanes, 2 do
    examine(lanes[i], lanes[i + 1])
  end
  if has_changed then
    wake_all()
  end
  return wrong + wrong_keys + wrong_limiters
end
`,
  'attempt-end': `--- @include task-end
--- @include lock
--- @include unmark
local function read_end(id, token, at)
  local ending = {
    id = id,
    job = base .. id,
    token = token,
    verdict = ARGV[at],
    value = ARGV[at + 1],
    fencing_token = ARGV[at + 2],
    attempts = 0,
    at_end = false,
    lane = false,
    priority = 0,
    deferred = false,
    has_key = false,
    deduplication = false,
    parent_key = false,
    parent = false,
  }
  local first = at + 4
  local last = first + 2 * tonumber(ARGV[first - 1])
  for i = first, last - 1, 2 do
    ending[ARGV[i]] = ARGV[i + 1]
  end
  first = last + 1
  last = first + 2 * tonumber(ARGV[first - 1])
  if last > first then
    ending.fields = { unpack(ARGV, first, last - 1) }
  end
  return ending, last
end
local function refusal_of(ending)
  local job, token = ending.job, ending.token
  local name, lock, starts, attempts, at_end, lane, priority, deferred, deduplication, parent_key, parent = unpack(
    redis.call(
      'HMGET',
      job,
      'name',
      'lock',
      'ats',
      'atm',
      'atEnd',
      'lane',
      'priority',
      'defa',
      'deid',
      'parentKey',
      'parent'
    )
  )
  if not name and redis.call('EXISTS', job) == 0 then
    return (rare('resent').was_deleted(ending) or rare('resent').has_gone_on(ending)) and 0 or -1
  end
  ending.attempts, ending.at_end, ending.lane = tonumber(attempts or '0'), at_end, lane
  ending.priority, ending.deferred, ending.deduplication = tonumber(priority or '0') or 0, deferred, deduplication
  ending.parent_key, ending.parent = parent_key, parent
  if ending.verdict == 'completed' and redis.call('EXISTS', job .. ':dependencies', job .. ':unsuccessful') > 0 then
    return redis.call('EXISTS', job .. ':dependencies') == 1 and -4 or -9
  end
  if token == '0' then
    return nil
  end
  local owner = owner_of(lock)
  if not owner then
    owner = redis.call('GET', job .. ':lock')
    ending.has_key = owner and true
  end
  if owner == token and (ending.fencing_token == '' or ending.fencing_token == starts) then
    return nil
  end
  return (rare('resent').was_stored(ending) or rare('resent').has_gone_on(ending)) and 0 or owner and -6 or -2
end
local function end_attempt(ending)
  local id, verdict = ending.id, ending.verdict
  local refusal = refusal_of(ending)
  if refusal then
    return refusal, false
  end
  local is_end = verdict == 'completed' or verdict == 'dead' or verdict == 'cancelled' or verdict == 'expired'
  if is_end and (ending.parent or ending.deduplication) then
    rare('ends').decode_end(ending)
  end
  if redis.call('LREM', base .. 'active', '-1', id) == 0 then
    return -3, false
  end
  if ending.token ~= '0' then
    unmark(id)
  end
  if ending.has_key then
    redis.call('DEL', ending.job .. ':lock')
  end
  if ending.lane then
    features = rare('turns').give_back(ending.lane)
  end
  if ending.calls then
    rare('calls').gates().count_calls(id, ending.calls)
  end
  if is_end then
    end_task(ending)
    return 0, true
  end
  return rare('returns').put_back(ending), true
end
`,
  'attempt-records': `--- @include decode-json
local MAX_ATTEMPT_RECORDS = 10
local function read_stacks(job)
  local is_json, stacks = pcall(decode_json, redis.call('HGET', job, 'stacktrace') or '[]')
  if not is_json or type(stacks) ~= 'table' then
    stacks = {}
  end
  local newest = stacks[#stacks]
  return stacks, type(newest) == 'string' and tonumber(string.match(newest, '^[^\\n]*"endedAt":(%d+)')) or 0
end
local function append_stack(job, stacks, stack)
  while #stacks >= MAX_ATTEMPT_RECORDS do
    table.remove(stacks, 1)
  end
  stacks[#stacks + 1] = stack
  redis.call('HSET', job, 'stacktrace', cjson.encode(stacks))
end
`,
  'blocked-lanes': `local function block_lane(name, pass)
  redis.call('ZREM', base .. 'turns', name)
  redis.call('ZADD', base .. 'blocked-lanes', pass, name)
end
local function resume_lane(name, pass)
  redis.call('ZREM', base .. 'blocked-lanes', name)
  local first = redis.call('ZRANGE', base .. 'turns', 0, 0, 'WITHSCORES')
  local time = redis.call('HGET', base .. 'turn-state', 'time')
  redis.call('ZADD', base .. 'turns', math.max(pass, first[2] or 0, time or 0), name)
  if redis.call('ZSCORE', base .. 'lanes', name) then
    redis.call('ZADD', base .. 'marker', '0', '0')
  end
end
local function wake_lane(name, ticket)
  if name and redis.call('ZREM', base .. 'blocked-lanes', name) == 1 then
    redis.call('ZADD', base .. 'turns', ticket, name)
    redis.call('ZADD', base .. 'marker', '0', '0')
  end
end
local function wake_first(need)
  local first, ticket = unpack(redis.call('ZRANGE', base .. 'need-waiters:' .. need, 0, 0, 'WITHSCORES'))
  wake_lane(first, ticket)
end
local function key_need(key)
  return 'key:' .. key .. '=1'
end
`,
  'blocked-tasks': `--- @include lane-tasks
--- @include next-task
local COUNTED_LANES = 100
local function tasks_in(base, lanes)
  local count = 0
  for _, lane in ipairs(lanes) do
    count = count + lane_length(base, lane)
  end
  return count
end
local function is_limited(base, mark)
  local concurrency, max = unpack(redis.call('HMGET', base .. 'meta', 'concurrency', 'max'))
  if concurrency and redis.call('LLEN', base .. 'active') >= tonumber(concurrency) then
    return true
  end
  local used = redis.call('GET', base .. 'limiter')
  return used and tonumber(used) >= tonumber(max or mark) and redis.call('PTTL', base .. 'limiter') > 0
end
local function add_due_lanes(base, now, limits)
  local due = limits.due
  local function add(lane, most)
    if due[lane] or not redis.call('ZSCORE', base .. 'blocked-lanes', lane) then
      return
    end
    local tasks = math.min(lane_length(base, lane), most)
    due[lane] = true
    limits.due_tasks = limits.due_tasks + tasks
    if tasks > 0 then
      limits.first_due = limits.first_due or lane
    end
  end
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', base .. 'lane-times', '-inf', now, 'LIMIT', 0, COUNTED_LANES)) do
    local service = string.match(name, '^\\30(service:[^=]*)$')
    if not service then
      add(name, math.huge)
    else
      local is_closed = redis.call('HEXISTS', base .. 'capacities', service) == 0
      local last = is_closed and COUNTED_LANES - 1 or 0
      for _, lane in ipairs(redis.call('ZRANGE', base .. 'need-waiters:' .. service .. '=1', 0, last)) do
        add(lane, is_closed and math.huge or 1)
      end
    end
  end
end
local function limits_at(base, now, mark)
  local has_blocked_lanes = redis.call('EXISTS', base .. 'blocked-lanes') == 1
  local limits = { holds_all = is_limited(base, mark), has_blocked_lanes = has_blocked_lanes, due = {}, due_tasks = 0 }
  if has_blocked_lanes and not limits.holds_all then
    add_due_lanes(base, now, limits)
  end
  return limits
end
local function next_startable(base, limits)
  if limits.holds_all then
    return nil
  end
  return next_task(base) or limits.first_due and lane_head(base, limits.first_due)
end
local function count_blocked(base, limits)
  local in_lanes = tonumber(redis.call('HGET', base .. 'turn-state', 'waiting')) or 0
  local count = redis.call('ZCARD', base .. 'waiting-children')
  if limits.holds_all then
    return count + in_lanes + redis.call('LLEN', base .. 'wait') + redis.call('ZCARD', base .. 'prioritized')
  end
  if in_lanes == 0 or not limits.has_blocked_lanes then
    return count
  end
  local blocked
  if redis.call('ZCARD', base .. 'turns') <= COUNTED_LANES then
    blocked = in_lanes - tasks_in(base, redis.call('ZRANGE', base .. 'turns', 0, -1))
  else
    blocked = tasks_in(base, redis.call('ZRANGE', base .. 'blocked-lanes', 0, COUNTED_LANES - 1))
  end
  return count + math.max(0, blocked - limits.due_tasks)
end
`,
  breaker: `local BUCKETS, OPEN_JITTER, ROUNDING = 10, 0.1, 1e-9
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
local function has_passed(ends_at, now, settings)
  return ends_at <= now or ends_at - now > settings.maxOpenMs * (1 + OPEN_JITTER) + 1
end
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
`,
  breakers: `--- @include breaker
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
`,
  'bullmq-event': `--- @include time
local MAX_EVENTS = '10000'
local emptied = {}
local function add_event_of(home, name, id, ...)
  local stream, most = home .. 'events', redis.call('HGET', home .. 'meta', 'opts.maxLenEvents')
  if not most then
    most = MAX_EVENTS
    redis.call('HSET', home .. 'meta', 'opts.maxLenEvents', most)
  end
  if most == '0' then
    if not emptied[stream] then
      redis.call('XTRIM', stream, 'MAXLEN', '0')
      emptied[stream] = true
    end
    most = MAX_EVENTS
  end
  redis.call('XADD', stream, 'MAXLEN', '~', most, '*', 'event', name, 'jobId', id, ...)
end
local function add_move_event_of(home, name, id, ...)
  local last = redis.call('HGET', home .. 'meta', 'allEventsUntil')
  if not last or tonumber(last) > millis() then
    add_event_of(home, name, id, ...)
  end
end
`,
  'bullmq-metrics': `--- @include time
local MAX_MINUTES = 80640
local PUSHED_AT_ONCE = 7000
local function has_metrics(base)
  return redis.call('EXISTS', base .. 'metrics:failed', base .. 'metrics:completed') > 0
end
local function list_minutes(list, first, minutes, most)
  local points = { first }
  for i = 2, minutes do
    points[i] = 0
  end
  for from = 1, minutes, PUSHED_AT_ONCE do
    redis.call('LPUSH', list, unpack(points, from, math.min(from + PUSHED_AT_ONCE - 1, minutes)))
  end
  redis.call('LTRIM', list, 0, most - 1)
end
local function count_ended(base, set, at, most)
  local metrics = base .. 'metrics:' .. set
  local before = redis.call('HINCRBY', metrics, 'count', 1) - 1
  local last_end, listed = unpack(redis.call('HMGET', metrics, 'prevTS', 'prevCount'))
  if not last_end then
    redis.call('HSET', metrics, 'prevTS', at, 'prevCount', 0)
    return
  end
  local minutes = math.min(math.floor(at / 60000) - math.floor(last_end / 60000), most)
  if minutes > 0 then
    list_minutes(metrics .. ':data', before - (listed or 0), minutes, most)
    redis.call('HSET', metrics, 'prevCount', before, 'prevTS', at)
  end
end
`,
  'cancel-in-lanes': `--- @include cancel-in-place
--- @include leave-lane
local function cancel_in_lane(name, part, from, before, limit)
  local ended_before = #ended
  local scan = part == 'l' and cancel_in_list or cancel_in_set
  local key = part == 'l' and lane_list(base, name) or lane_priorities(base, name)
  local next_from, next_before, examined = scan(key, 'lanes', from, before, limit)
  local count = (#ended - ended_before) / 2
  if count > 0 then
    note_left_lane(name, count)
  end
  return next_from, next_before, examined
end
local function cancel_in_lanes(lanes, from, before, limit)
  local order, part, rest = string.match(from, '^([^ ]+) (%a) (.*)$')
  while limit > 0 do
    local range = { order or '-inf', '+inf', 'WITHSCORES', 'LIMIT', 0, 1 }
    local name, found = unpack(redis.call('ZRANGEBYSCORE', lanes, unpack(range)))
    if not name then
      return '', ''
    end
    if found ~= order then
      order, part, rest, before = found, 'l', '', ''
    end
    local next_from, next_before, examined = cancel_in_lane(name, part, rest, before, limit)
    limit = limit - examined
    if next_from ~= '' then
      return order .. ' ' .. part .. ' ' .. next_from, next_before
    end
    rest, before = '', ''
    if part == 'l' then
      part = 'p'
    else
      order = '(' .. order
    end
  end
  return order .. ' ' .. part .. ' ', ''
end
`,
  'cancel-in-place': `--- @include cancel-rules
--- @include leave-place
local CANCELLED_MARK = 'bullpen:cancelled'
local function next_index(list, from, before)
  local index = tonumber(from == '' and '0' or from)
  if before == '' or redis.call('LINDEX', list, index - 1) == before then
    return index
  end
  local at = redis.call('LPOS', list, before)
  return at and at + 1
end
local function count_in_active(list, from, before, limit)
  local start = next_index(list, from, before)
  if not start then
    note_all_matched()
    return '', '', 0
  end
  local ids = redis.call('LRANGE', list, start, start + limit - 1)
  for _, id in ipairs(ids) do
    note_match(id)
  end
  if #ids < limit then
    return '', '', #ids
  end
  return start + #ids, ids[#ids], #ids
end
local function matches_among(ids, before)
  local matches, kept = {}, before
  for position, id in ipairs(ids) do
    matches[position] = match_of(id) or false
    kept = matches[position] and kept or id
  end
  return matches, kept
end
local function cancel_in_list(list, place, from, before, limit)
  local start = next_index(list, from, before) or 0
  local ids = redis.call('LRANGE', list, start, start + limit - 1)
  local matches, kept = matches_among(ids, before)
  local found = {}
  for position, match in ipairs(matches) do
    if match then
      redis.call('LSET', list, start + position - 1, CANCELLED_MARK)
      found[#found + 1] = match
    end
  end
  if #found > 0 then
    redis.call('LREM', list, #found, CANCELLED_MARK)
  end
  for _, match in ipairs(found) do
    end_match(match, place)
  end
  if #ids < limit then
    return '', '', #ids
  end
  start = start + #ids - #found
  return start, start > 0 and kept or '', #ids
end
local function leave_set(set, place, id)
  if place == 'delayed' then
    return leave_delayed(base, id)
  end
  return redis.call('ZREM', set, id) == 1
end
local function cancel_in_set(set, place, from, before, limit)
  local rank = before ~= '' and redis.call('ZRANK', set, before)
  local page = rank and redis.call('ZRANGE', set, rank + 1, rank + limit, 'WITHSCORES')
    or redis.call('ZRANGEBYSCORE', set, from == '' and '-inf' or from, '+inf', 'WITHSCORES', 'LIMIT', 0, limit)
  local ids, score = {}, from
  for at = 1, #page, 2 do
    ids[#ids + 1] = page[at]
  end
  local matches, kept = matches_among(ids, before)
  for position, match in ipairs(matches) do
    if not match then
      score = page[2 * position]
    elseif leave_set(set, place, ids[position]) then
      end_match(match, place)
    end
  end
  if #ids < limit then
    return '', '', #ids
  end
  return score == '' and '-inf' or score, kept, #ids
end
`,
  'cancel-rules': `--- @include matching-rule
--- @include end-without-run
local cancel_rules, matched, ended = {}, {}, {}
local function open_rules(rules)
  cancel_rules = rules
  for i = 1, #rules do
    matched[i] = 0
  end
end
local function note_match(id)
  local i = matching_rule(base, cancel_rules, id)
  if i then
    matched[i] = matched[i] + 1
  end
end
local function note_all_matched()
  for i = 1, #matched do
    matched[i] = matched[i] + 1
  end
end
local function match_of(id)
  local i, name = matching_rule(base, cancel_rules, id)
  return i and { rule = i, name = name, task = read_waiting_task(id) }
end
local function end_match(match, place)
  local rule, id = cancel_rules[match.rule], match.task.id
  end_waiting_task(match.task, place, 'cancelled', rule)
  redis.call('HINCRBY', progress .. rule.id, 'ended', 1)
  matched[match.rule] = matched[match.rule] + 1
  ended[#ended + 1] = id
  ended[#ended + 1] = match.name
end
`,
  candidates: `--- @include queue-features
--- @include lane-turn
--- @include rare-turns
--- @include leave-lane
--- @include leave-list
--- @include lock
--- @include forget-turns
local function hold_until(lane)
  local pass = lane.starts_at and redis.call('ZSCORE', base .. 'turns', lane.name)
  if not pass then
    return
  end
  if lane.needs then
    limiters().leave_waiters(lane.name, lane.key, lane.needs)
  end
  block_lane(lane.name, pass)
  redis.call('ZADD', base .. 'lane-times', whole(lane.starts_at), lane.name)
end
local function is_lane_held(field, obstacles)
  local lane = read_lane(lane_name(field), obstacles)
  if lane.needs then
    gates().note_closed(lane.needs)
  end
  hold_until(lane)
  local is_at_limit = lane.starts_at or lane.limit and active_of_key(lane.key) >= lane.limit
  return is_at_limit or lane.needs and limiters().is_full(lane.needs) or false
end
local function leave_for_start(id, field, obstacles)
  local lane = read_lane(lane_name(field), obstacles)
  local name, needs = lane.name, lane.needs
  redis.call('ZADD', base .. 'turns', 'XX', 'INCR', 1 / lane_weight(field), name)
  if lane.rate then
    count_key_start(lane.rate)
    lane.starts_at = key_starts_at(lane.key, lane.rate, false)
  end
  if needs and redis.call('ZSCORE', base .. 'turns', name) then
    limiters().leave_waiters(name, lane.key, needs)
  end
  hold_until(lane)
  if needs and string.find(needs, 'service:', 1, true) then
    gates().admit(id, needs)
  end
end
local function take_candidate(ids, obstacles, places)
  local is_examined = obstacles.is_counted or obstacles.has_throttles
  local is_held, first, lowest = {}, nil, nil
  for id in string.gmatch(ids, '%S+') do
    local score = places.has_set and tonumber(redis.call('ZSCORE', base .. 'prioritized', id))
    if score and (not lowest or score < lowest) then
      first, lowest = id, score
    elseif not score and places.has_list then
      local enqueued_at, ended_at, lane, lock =
        unpack(redis.call('HMGET', base .. id, 'timestamp', 'finishedOn', 'lane', 'lock'))
      local may_start = enqueued_at and not ended_at and not owner_of(lock)
      if may_start and lane and is_examined then
        if is_held[lane] == nil then
          is_held[lane] = is_lane_held(lane, obstacles)
        end
        may_start = not is_held[lane]
      end
      local waits = may_start
        and not redis.call('ZSCORE', base .. 'delayed', id)
        and not redis.call('LPOS', base .. 'active', id)
      if waits and lane and places.has_lanes and leave_lane(lane, id) then
        leave_for_start(id, lane, obstacles)
        return id
      end
      if waits and leave_list(base .. 'wait', id) then
        return id
      end
    end
  end
  return nil, first
end
local function start_candidate(ids, now)
  local obstacles = read_obstacles(read_features())
  if obstacles.has_times then
    resume_due(now)
  end
  local has_lanes = redis.call('EXISTS', base .. 'lanes') == 1
  local places = { has_set = redis.call('EXISTS', base .. 'prioritized') == 1, has_lanes = has_lanes }
  places.has_list = has_lanes or redis.call('EXISTS', base .. 'wait') == 1
  if not places.has_set and not places.has_list then
    forget_turns(base)
    return nil
  end
  local id, first = take_candidate(ids, obstacles, places)
  if not id and first then
    redis.call('ZREM', base .. 'prioritized', first)
    id = first
  end
  if not id then
    return nil
  end
  redis.call('LPUSH', base .. 'active', id)
  if obstacles.is_counted then
    hold_places(id)
  end
  return id
end
`,
  'decode-json': `local function decode_json(text)
  return cjson.decode((string.gsub(text, '\\\\u[dD][89a-fA-F]%x%x', '\\\\ufffd')))
end
`,
  deduplicate: `--- @include deduplication-key
--- @include delayed-set
--- @include delete-counted
--- @include own-job
local function remove_delayed(home, id)
  if not leave_delayed(home, id) then
    return false
  end
  delete_counted(home, id)
  redis.call('XADD', home .. 'events', '*', 'event', 'removed', 'jobId', id, 'prev', 'delayed')
  return true
end
local function note_deduplicated(home, kept, deduplication, id)
  add_event_of(home, 'deduplicated', kept, 'deduplicationId', deduplication, 'deduplicatedJobId', id)
end
local function keep_next_job(key, next_key, id, job)
  local fields = { 'name', job.name, 'data', job.data, 'opts', job.options, 'jid', id }
  append_given(fields, 'pk', job.parentKey)
  append_given(fields, 'pd', job.parent)
  append_given(fields, 'pdk', job.siblings)
  append_given(fields, 'rjk', job.repeatKey)
  redis.call('DEL', next_key)
  redis.call('HSET', next_key, unpack(fields))
  redis.call('PERSIST', key)
end
local function reschedule(home, id, job)
  if redis.call('ZSCORE', home .. 'delayed', id) then
    local part = redis.call('ZSCORE', home .. 'retrying', id) and 'retrying' or 'scheduled'
    redis.call('HSET', home .. id, 'delay', job.delay)
    delay_job(home, id, job.at + math.max(job.delay, 0), part)
  end
end
local function deduplicate(home, id, job)
  local options, may_change = job.deduplication, not job.hasChildren
  local deduplication, replaces = options.id, options.replace and may_change
  local key, next_key = home .. 'de:' .. deduplication, home .. 'dn:' .. deduplication
  local holder = redis.call('GET', key)
  if not holder then
    return take_deduplication(key, id, options)
  end
  if replaces and remove_delayed(home, holder) then
    note_deduplicated(home, id, deduplication, holder)
    redis.call('DEL', next_key)
    if deduplication_ms(options) and not options.extend then
      redis.call('SET', key, id, 'KEEPTTL')
      return nil
    end
    return take_deduplication(key, id, options)
  end
  if redis.call('PTTL', key) == -1 and redis.call('EXISTS', home .. holder) == 0 then
    redis.call('DEL', next_key)
    return take_deduplication(key, id, options)
  end
  local is_kept = options.keepLastIfActive and redis.call('LPOS', home .. 'active', holder)
  if is_kept then
    keep_next_job(key, next_key, id, job)
  elseif replaces then
    return holder
  elseif options.extend and (options.ttl or 0) > 0 then
    take_deduplication(key, holder, options)
  end
  note_deduplicated(home, holder, deduplication, id)
  if options.reschedule and may_change and not replaces then
    reschedule(home, holder, job)
  end
  return holder
end
`,
  deduplication: `--- @include deduplication-key
--- @include own-job
local function read_next_job(deduplication)
  local names = { 'name', 'data', 'opts', 'jid', 'pk', 'pd', 'pdk', 'rjk' }
  local name, data, text, id, parent_key, parent, siblings, repeat_key =
    unpack(redis.call('HMGET', base .. 'dn:' .. deduplication, unpack(names)))
  if not text then
    return nil
  end
  local options = cjson.decode(text)
  return {
    id = id,
    name = name,
    data = data,
    options = text,
    delay = options.delay or 0,
    priority = options.priority or 0,
    lifo = options.lifo,
    deduplication = options.de,
    repeatKey = repeat_key,
    parentKey = parent_key,
    parent = parent,
    siblings = siblings,
  }
end
local function add_next_job(deduplication, job, at)
  local counted = redis.call('INCR', base .. 'id')
  local id = job.id or whole(counted)
  take_deduplication(base .. 'de:' .. deduplication, id, job.deduplication or {})
  job.at = at
  add_own_job(base, id, job)
  redis.call('DEL', base .. 'dn:' .. deduplication)
end
local function end_deduplicated(id, deduplication, next_job, at)
  local key = base .. 'de:' .. deduplication
  if redis.call('PTTL', key) == -1 and redis.call('GET', key) == id then
    redis.call('DEL', key)
  end
  if next_job and redis.call('EXISTS', base .. 'dn:' .. deduplication) == 1 then
    add_next_job(deduplication, next_job, at)
  end
end
`,
  'deduplication-key': `--- @include time
local function deduplication_ms(options)
  local ttl = options.ttl or 0
  return ttl > 0 and not options.keepLastIfActive and ttl or nil
end
local function take_deduplication(key, id, options)
  local lifetime = deduplication_ms(options)
  if lifetime then
    redis.call('SET', key, id, 'PX', whole(lifetime))
  else
    redis.call('SET', key, id)
  end
end
`,
  'delayed-set': `--- @include time
local DELAYED_STEP = 0x1000
local function enter_delayed(base, id, due, part)
  local least, most = due * DELAYED_STEP, (due + 1) * DELAYED_STEP - 1
  local last = redis.call('ZREVRANGEBYSCORE', base .. 'delayed', whole(most), whole(least), 'WITHSCORES', 'LIMIT', 0, 1)
  local score = whole(last[2] and math.min(last[2] + 1, most) or least)
  redis.call('ZADD', base .. 'delayed', score, id)
  if part then
    redis.call('ZADD', base .. part, score, id)
  end
  return score
end
local function leave_delayed(base, id)
  if redis.call('ZREM', base .. 'delayed', id) == 0 then
    return false
  end
  redis.call('ZREM', base .. 'scheduled', id)
  redis.call('ZREM', base .. 'retrying', id)
  return true
end
local function change_due(base, id, due, part)
  local score = whole(due * DELAYED_STEP)
  redis.call('ZADD', base .. 'delayed', score, id)
  redis.call('ZADD', base .. part, score, id)
  redis.call('XADD', base .. 'events', '*', 'event', 'delayed', 'jobId', id, 'delay', whole(due))
end
local function next_due(base)
  local first = redis.call('ZRANGE', base .. 'delayed', '0', '0', 'WITHSCORES')[2]
  local due = first and math.floor(first / DELAYED_STEP) or math.huge
  local lane_time = tonumber(redis.call('ZRANGE', base .. 'lane-times', '0', '0', 'WITHSCORES')[2]) or math.huge
  local at = math.min(due, lane_time)
  return at < math.huge and at or nil
end
`,
  'delete-counted': `--- @include delete-job
--- @include outbox
--- @include task-charge
local function delete_counted(home, id)
  local job = home .. id
  local enqueued_at, ended_at = unpack(redis.call('HMGET', job, 'timestamp', 'finishedOn'))
  if enqueued_at and not ended_at and charge(home, job, -1) then
    write_outbox(home, id, 'removed')
  end
  return delete_job(home, id)
end
`,
  'delete-job': `--- @include removed-tasks
local function delete_keys(job)
  local children = { job .. ':dependencies', job .. ':processed', job .. ':failed', job .. ':unsuccessful' }
  return redis.call('DEL', job, job .. ':logs', unpack(children)) > 0
end
local function delete_job(base, id)
  local job = base .. id
  local enqueued_at, caller, replaced = unpack(redis.call('HMGET', job, 'timestamp', 'caller', 'replaced'))
  if enqueued_at or redis.call('EXISTS', job) == 1 then
    redis.call('HINCRBY', base .. 'totals', 'removed', 1)
  end
  if enqueued_at then
    remember_removal(base, id .. ' ' .. (caller or '') .. (replaced and ' r' or ''), tonumber(enqueued_at) or 0)
  end
  return delete_keys(job)
end
`,
  'derive-limits': `--- @include active-count
local KEY_LIMIT, CAPACITY = 'keyLimit:', 'capacity:'
local function starts_with(text, start)
  return string.sub(text, 1, #start) == start
end
local function limits_in(settings)
  local limits, capacities, defined = {}, {}, {}
  for i = 1, #settings, 2 do
    local name, value = settings[i], settings[i + 1]
    if name == 'definedKeyLimits' or name == 'definedCapacities' then
      defined[name] = cjson.decode(value)
    elseif starts_with(name, KEY_LIMIT) then
      limits[string.sub(name, #KEY_LIMIT + 1)] = value
    elseif starts_with(name, CAPACITY) then
      capacities[string.sub(name, #CAPACITY + 1)] = value
    end
  end
  for name, value in pairs(defined.definedKeyLimits or {}) do
    limits[name] = limits[name] or value
  end
  for name, value in pairs(defined.definedCapacities or {}) do
    capacities[name] = capacities[name] or value
  end
  return limits, capacities
end
local function hasten_lanes()
  local times = base .. 'lane-times'
  if redis.call('ZUNIONSTORE', times, '1', times, 'WEIGHTS', '0') > 0 then
    redis.call('ZADD', base .. 'marker', '0', '0')
  end
end
local function derive_limits()
  local limits, capacities = limits_in(redis.call('HGETALL', base .. 'settings'))
  redis.call('DEL', base .. 'key-limits')
  for name, value in pairs(limits) do
    redis.call('HSET', base .. 'key-limits', name, value)
  end
  if next(limits) == nil then
    redis.call('UNLINK', base .. 'lane-times')
  end
  local has_lanes = redis.call('EXISTS', base .. 'turn-state') == 1
  for _, limiter in ipairs(redis.call('HKEYS', base .. 'capacities')) do
    local is_derived = starts_with(limiter, 'permits:') or starts_with(limiter, 'task:')
    if is_derived and not capacities[limiter] then
      redis.call('HDEL', base .. 'capacities', limiter)
    elseif has_lanes and starts_with(limiter, 'service:') then
      redis.call('ZADD', base .. 'lane-times', '0', '\\30' .. limiter)
    end
  end
  for limiter, capacity in pairs(capacities) do
    redis.call('HSET', base .. 'capacities', limiter, capacity)
  end
  count_active(true)
  hasten_lanes()
end
local function derive_limits_of_keys(keys)
  local settings, limits, has_rates = base .. 'settings', base .. 'key-limits', false
  if redis.call('EXISTS', limits) == 0 then
    return false
  end
  local defined = cjson.decode(redis.call('HGET', settings, 'definedKeyLimits') or '{}')
  for field in pairs(keys) do
    local value = redis.call('HGET', settings, KEY_LIMIT .. field) or defined[field]
    if value then
      redis.call('HSET', limits, field, value)
    else
      redis.call('HDEL', limits, field)
    end
    has_rates = has_rates or starts_with(field, 'rate')
  end
  if redis.call('EXISTS', limits) == 0 then
    return false
  end
  for _, key in pairs(keys) do
    local limit = limits_of_key(key)
    if not limit or active_of_key(key) < limit then
      resume_key(key)
    end
  end
  if has_rates then
    hasten_lanes()
  end
  return true
end
`,
  'end-without-run': `--- @include attempt-records
--- @include bullmq-metrics
--- @include deduplication
--- @include failed-set
--- @include flow-parent
--- @include idle-queue
--- @include outbox
--- @include queue-meta
--- @include remove-ended
--- @include task-charge
--- @include task-events
local OUTCOMES = { cancelled = 'cancelled', expired = 'timed out' }
local counts_metrics, has_taken = nil, false
local function read_waiting_task(id)
  local job = base .. id
  local fields = redis.call('HMGET', job, 'atm', 'events', 'name', 'tags', 'group', 'parent', 'deid')
  local attempts, events, name, tags, group, parent, deduplication = unpack(fields)
  local stacks, last_end = read_stacks(job)
  return {
    id = id,
    job = job,
    attempt = tonumber(attempts or '0') + 1,
    stacks = stacks,
    last_end = last_end,
    events = events,
    event_start = events and event_start('ended', name, tags, group),
    parent = parent and cjson.decode(parent),
    deduplication = deduplication,
    next_job = deduplication and read_next_job(deduplication),
  }
end
local function store_end(task, status, ending, at)
  local record = '{"attempt":' .. task.attempt .. ',"startedAt":' .. at .. ',"endedAt":' .. at .. ','
  append_stack(task.job, task.stacks, record .. string.sub(ending.record, 2) .. '\\n' .. ending.reason)
  redis.call('HSET', task.job, 'failedReason', ending.reason, 'finishedOn', at)
  redis.call('HDEL', task.job, 'defa')
  enter_failed(base, task.id, status, at)
  redis.call('ZREM', base .. 'expiries', task.id)
  redis.call('HDEL', base .. 'cancelling', task.id)
end
local function add_end_event(task, status, record)
  local ended = decode_json(record)
  local error = cjson.encode({ code = ended.reason, message = ended.message or '' })
  local by = ended.by and ',"by":' .. cjson.encode(ended.by) or ''
  local rest = ',"outcome":"' .. OUTCOMES[status] .. '","error":' .. error .. by .. ',"status":"' .. status .. '"}'
  add_task_event(base, task.id, task.events, task.event_start .. rest)
end
local function end_waiting_task(task, place, status, ending)
  local id, at = task.id, whole(math.max(tonumber(ending.at), task.last_end))
  if task.deduplication then
    end_deduplicated(id, task.deduplication, task.next_job, at)
  end
  if task.parent then
    report_to_parent(task.parent, task.job, ending.reason, at)
  end
  local is_unkept = charge(base, task.job, -1) and write_outbox(base, id, status)
  store_end(task, status, ending, at)
  add_bullmq_event('failed', id, 'failedReason', ending.reason, 'prev', place == 'delayed' and 'delayed' or 'waiting')
  if counts_metrics == nil then
    counts_metrics = has_metrics(base)
  end
  if counts_metrics then
    count_ended(base, 'failed', at, MAX_MINUTES)
  end
  if task.events then
    add_end_event(task, status, ending.record)
  end
  has_taken = has_taken or place ~= 'delayed'
  if is_unkept then
    remove_ended_task(base, status, id)
  end
end
local function note_drained_by_ends()
  if has_taken then
    note_drained()
  end
end
`,
  'enter-place': `--- @include lanes
--- @include priority-score
local function enter_place(id, lane, priority, to_head)
  if lane then
    return enter_lane(lane, id, priority, to_head)
  end
  if priority > 0 then
    local order = to_head and 0 or redis.call('INCR', base .. 'pc')
    redis.call('ZADD', base .. 'prioritized', priority_score(priority, order), id)
  else
    redis.call(to_head and 'RPUSH' or 'LPUSH', base .. 'wait', id)
  end
  return true
end
`,
  'error-text': `local function error_text(reason)
  return type(reason) == 'table' and reason.err or tostring(reason)
end
`,
  'existing-job': `--- @include own-job
--- @include flow-parent
local OTHER_PARENT = -7
local completed, refused = {}, {}
local function resume_parent_of(job)
  if redis.call('EXISTS', job.parentKey .. ':dependencies') == 0 then
    local parent = cjson.decode(job.parent)
    resume_parent(parent.queueKey .. ':', parent.id, millis())
  end
end
local function join_parent(home, id, job, is_flow)
  local key, parent = home .. id, job.parentKey
  if redis.call('ZSCORE', home .. 'completed', id) then
    redis.call('HSET', parent .. ':processed', key, redis.call('HGET', key, 'returnvalue') or 'null')
    if is_flow then
      completed[#completed + 1] = job
    else
      resume_parent_of(job)
    end
  elseif job.siblings then
    redis.call('SADD', job.siblings, key)
  end
  redis.call('HSET', key, 'parentKey', parent, 'parent', job.parent)
end
local function note_existing(home, id, job, is_flow)
  local parent, other = job.parentKey, redis.call('HGET', home .. id, 'parentKey')
  if parent and other and other ~= parent and redis.call('EXISTS', other) == 1 then
    refused[parent] = true
    return OTHER_PARENT
  end
  if parent then
    join_parent(home, id, job, is_flow)
  end
  add_event_of(home, 'duplicated', id)
  return id
end
local function resume_parents()
  for _, job in ipairs(completed) do
    if not refused[job.parentKey] then
      resume_parent_of(job)
    end
  end
end
`,
  'failed-set': `--- @include fingerprints
local FAILED_PARTS = { 'dead', 'cancelled', 'expired' }
local function enter_failed(base, id, part, score, fingerprint)
  redis.call('ZADD', base .. 'failed', score, id)
  redis.call('ZADD', base .. part, score, id)
  if fingerprint then
    enter_fingerprint(base, id, score, fingerprint)
  end
end
local function leave_failed(base, id)
  local fingerprint = redis.call('HGET', base .. id, 'fingerprint')
  if fingerprint then
    leave_fingerprint(base, id, fingerprint)
    redis.call('HDEL', base .. id, 'fingerprint')
  end
  for _, part in ipairs(FAILED_PARTS) do
    redis.call('ZREM', base .. part, id)
  end
  return redis.call('ZREM', base .. 'failed', id) == 1
end
`,
  fence: `local function is_deposed(leader, fencing)
  local highest = tonumber(redis.call('GET', leader) or '0')
  if highest > tonumber(fencing) then
    return true
  end
  if highest < tonumber(fencing) then
    redis.call('SET', leader, fencing)
  end
  return false
end
`,
  fingerprints: `local MAX_FINGERPRINTS = 1000
local OTHER = '{"state":"","code":"other","message":"errors after the first 1000 kinds"}'
local function enter_fingerprint(home, id, score, given)
  local fingerprint, rest, info = string.match(given, '^(%S+)([^\\n]*)\\n(.*)$')
  local infos = home .. 'fingerprints'
  if redis.call('HEXISTS', infos, fingerprint) == 0 then
    if redis.call('HLEN', infos) >= MAX_FINGERPRINTS then
      fingerprint = 'other'
      redis.call('HSETNX', infos, fingerprint, OTHER)
    else
      redis.call('HSET', infos, fingerprint, info)
      redis.call('RPUSH', home .. 'new-fingerprints', fingerprint)
      redis.call('LTRIM', home .. 'new-fingerprints', -MAX_FINGERPRINTS, -1)
    end
  end
  redis.call('HSET', home .. id, 'fingerprint', fingerprint .. rest)
  redis.call('ZADD', home .. 'fingerprint:' .. fingerprint, score, id)
end
local function leave_fingerprint(home, id, stored)
  if not stored then
    return
  end
  local fingerprint = string.match(stored, '^%S+')
  local set = home .. 'fingerprint:' .. fingerprint
  if redis.call('ZREM', set, id) == 1 and redis.call('EXISTS', set) == 0 then
    redis.call('HDEL', home .. 'fingerprints', fingerprint)
  end
end
`,
  'flow-parent': `--- @include place-job
local function place_parent(home, id, at)
  local priority, delay, attempts = unpack(redis.call('HMGET', home .. id, 'priority', 'delay', 'atm'))
  delay = tonumber(delay) or 0
  local part = (tonumber(attempts) or 0) > 0 and 'retrying' or 'scheduled'
  place_job(home, id, {
    due = delay > 0 and at + delay or nil,
    part = string.find(home, '^%b{}:[^:]+:$') and part or nil,
    priority = tonumber(priority) or 0,
    to_head = true,
    from = 'waiting-children',
  })
end
local function resume_parent(home, id, at)
  if redis.call('EXISTS', home .. id) == 1 and redis.call('ZREM', home .. 'waiting-children', id) == 1 then
    place_parent(home, id, at)
  end
end
local function fail_parent(home, id, child, at)
  local job = home .. id
  if redis.call('EXISTS', job) == 0 then
    return
  end
  local waits = redis.call('ZREM', home .. 'waiting-children', id) == 1
  if not waits and leave_delayed(home, id) then
    redis.call('HSET', job, 'delay', '0')
    waits = true
  end
  if waits or not redis.call('ZSCORE', home .. 'failed', id) then
    redis.call('HSET', job, 'defa', 'child ' .. child .. ' failed')
  end
  if waits then
    place_parent(home, id, at)
  end
end
local function report_to_parent(parent, child, reason, at)
  local home, id = parent.queueKey .. ':', parent.id
  local job = home .. id
  local is_told = parent.fpof or parent.cpof or parent.idof or parent.rdof
  if not is_told or redis.call('SREM', job .. ':dependencies', child) == 0 then
    return
  end
  if parent.fpof then
    redis.call('ZADD', job .. ':unsuccessful', at, child)
    return fail_parent(home, id, child, at)
  end
  if parent.cpof or parent.idof then
    redis.call('HSET', job .. ':failed', child, reason)
  end
  if parent.cpof or redis.call('EXISTS', job .. ':dependencies') == 0 then
    resume_parent(home, id, at)
  end
end
local function report_completed(parent_key, child, value, at)
  if redis.call('SREM', parent_key .. ':dependencies', child) == 0 then
    return
  end
  redis.call('HSET', parent_key .. ':processed', child, value)
  if redis.call('EXISTS', parent_key .. ':dependencies') == 0 then
    local home, id = split_job_key(parent_key)
    resume_parent(home, id, at)
  end
end
`,
  'forget-turns': `local function forget_turns(base)
  if redis.call('EXISTS', base .. 'waited-needs') == 1 then
    for _, need in ipairs(redis.call('ZRANGE', base .. 'waited-needs', 0, -1)) do
      redis.call('UNLINK', base .. 'need-waiters:' .. need)
    end
    redis.call('UNLINK', base .. 'waited-needs')
  end
  local turns, state = base .. 'turns', base .. 'turn-state'
  redis.call('UNLINK', turns, state, base .. 'blocked-lanes', base .. 'lane-times', base .. 'key-passes')
end
`,
  'forget-worker': `--- @include time
local COMMANDS_AT_ONCE = 100
local function forget_worker(base, worker, now)
  local inbox = base .. 'inbox:' .. worker
  local pending = redis.call('ZRANGE', inbox, 0, COMMANDS_AT_ONCE - 1)
  for _, id in ipairs(pending) do
    local command = base .. 'command:' .. id
    redis.call('ZREM', inbox, id)
    if redis.call('HGET', command, 'response:' .. worker) == 'pending' then
      redis.call('HSET', command, 'response:' .. worker, '{"outcome":"gone","at":' .. whole(now) .. '}')
      redis.call('PUBLISH', base .. 'responses', id)
    end
  end
  if #pending == COMMANDS_AT_ONCE then
    return false
  end
  redis.call('DEL', inbox, base .. 'worker:' .. worker)
  redis.call('ZREM', base .. 'heartbeats', worker)
  return true
end
`,
  forwarded: `--- @include time
local PERIOD_S, EARLIER_PERIODS = 21600, 4
local MIN_DIGITS, MAX_DIGITS = '3', '5'
local FULL = 512
local SPARSE = 16
local function digits_in(noted, period)
  return string.match(noted, ' ' .. period .. ':(%d+)')
end
local function records_in(bucket, period, digits)
  return base .. 'forwarded:' .. period .. ':' .. string.sub(bucket, 1, digits)
end
local function read_periods(task)
  local number, bucket = string.match(task.forwarded, '^(%S+) (%S+)$')
  local noted = redis.call('HGET', base .. 'totals', 'forwardedDigits') or ''
  return number, bucket, noted, math.floor(millis() / 1000 / PERIOD_S)
end
local function recall_forwarded(task)
  local number, bucket, noted, now = read_periods(task)
  for period = now, now - EARLIER_PERIODS, -1 do
    for digits in string.gmatch(digits_in(noted, period) or MIN_DIGITS, '%d') do
      if redis.call('SISMEMBER', records_in(bucket, period, digits), number) == 1 then
        return ADDED
      end
    end
  end
  return nil
end
local function note_digits(noted, now, used)
  local others = ''
  for period = now - EARLIER_PERIODS, now - 1 do
    local digits = digits_in(noted, period)
    if digits then
      others = others .. ' ' .. period .. ':' .. digits
    end
  end
  redis.call('HSET', base .. 'totals', 'forwardedDigits', others .. ' ' .. now .. ':' .. used)
end
local function remember_forwarded(task)
  local number, bucket, noted, now = read_periods(task)
  local used, before = digits_in(noted, now), digits_in(noted, now - 1)
  if before and not used then
    used = string.sub(before, -1)
    if used ~= MIN_DIGITS and redis.call('SCARD', records_in(bucket, now - 1, used)) < SPARSE then
      used = used - 1
    end
    if before ~= MIN_DIGITS then
      note_digits(noted, now, used)
    end
  end
  used = used or MIN_DIGITS
  local digits = string.sub(used, -1)
  local records = records_in(bucket, now, digits)
  redis.call('SADD', records, number)
  local count = redis.call('SCARD', records)
  if count == 1 then
    redis.call('EXPIREAT', records, (now + EARLIER_PERIODS + 1) * PERIOD_S)
  end
  if count >= FULL and digits < MAX_DIGITS then
    note_digits(noted, now, used .. digits + 1)
  end
end
`,
  gates: `--- @include time
--- @include blocked-lanes
local created_gates
local function gates()
  if created_gates then
    return created_gates
  end
  local KIND = 'service:'
  local ENTRY = '\\30' .. KIND
  local now, noted, set_gate = millis(), {}, nil
  --- @include breakers
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
`,
  'give-back': `--- @include lane
--- @include queue-features
--- @include limited-turns
local function give_back(lane)
  local key, needs = split_lane(lane_name(lane))
  local features = read_features()
  local has_limits = features % 4 >= 2
  if needs or has_limits and key ~= '' then
    limited().give_back_places(key, needs, has_limits)
  end
  return not needs and features or nil
end
`,
  'given-time': `--- @include time
local function given_time(given)
  return given ~= '' and given or whole(millis())
end
`,
  group: `--- @include time
local CODES = { c = 1, d = 2, x = 3, e = 4, r = 5 }
local RELEASED_BY = { completed = '[se]', failed = '[fe]', cancelled = 'e' }
local function write_entry(text)
  redis.call('XADD', outbox, '*', 'e', text)
  redis.call('HINCRBY', meta, 'outboxBytes', #text)
end
local function write_owed(text)
  write_entry(text)
  redis.call('PEXPIRE', outbox, redis.call('PTTL', meta))
  redis.call('HINCRBY', meta, 'owed', 1)
end
local function seal_group(now)
  if redis.call('HGET', meta, 'state') ~= 'open' then
    return
  end
  redis.call('HSET', meta, 'state', 'sealed', 'sealedAt', whole(now))
end
local function cancel_group(now, reason, by)
  if redis.call('HGET', meta, 'state') == 'ended' then
    return
  end
  if redis.call('HSETNX', meta, 'cancelledAt', whole(now)) == 0 then
    return
  end
  seal_group(now)
  redis.call('HSET', meta, 'cancelReason', reason, 'cancelledBy', by)
  for queue in string.gmatch(redis.call('HGET', meta, 'queues') or '', '%S+') do
    write_owed('k ' .. id .. ' ' .. queue .. ' ' .. by)
  end
end
local function end_member(member, letter)
  local at = '#' .. member
  if redis.call('BITFIELD', members, 'GET', 'u3', at)[1] ~= 0 then
    return false
  end
  redis.call('BITFIELD', members, 'SET', 'u3', at, CODES[letter])
  redis.call('HINCRBY', meta, letter, 1)
  redis.call('HINCRBY', meta, 'ended', 1)
  return true
end
local function group_result(count, reason)
  local completed, dead, expired = unpack(redis.call('HMGET', meta, 'c', 'd', 'e'))
  if count > 0 and tonumber(completed or 0) == count then
    return 'completed'
  end
  if reason == 'cancelled' then
    return 'cancelled'
  end
  if tonumber(dead or 0) + tonumber(expired or 0) > 0 or reason == 'group_timeout' then
    return 'failed'
  end
  return count == 0 and 'completed' or 'cancelled'
end
local function write_follow_ups(result)
  local lines, created_at = unpack(redis.call('HMGET', meta, 'lines', 'createdAt'))
  local number = 0
  for letter, template in string.gmatch(lines or '', '(%a)([^\\n]+)') do
    number = number + 1
    if string.find(letter, RELEASED_BY[result]) then
      write_owed('t ' .. id .. ' ' .. created_at .. ' 1 ' .. letter .. number .. ' ' .. template)
    end
  end
end
local function end_if_complete(now)
  local state, count, ended, reason, keep =
    unpack(redis.call('HMGET', meta, 'state', 'count', 'ended', 'cancelReason', 'keepMs'))
  if state ~= 'sealed' or tonumber(ended) < tonumber(count) then
    return nil
  end
  local result = group_result(tonumber(count), reason)
  redis.call('HSET', meta, 'state', 'ended', 'endedAt', whole(now), 'result', result)
  write_follow_ups(result)
  for _, key in ipairs({ meta, members, queues, requests, outbox }) do
    redis.call('PEXPIRE', key, keep)
  end
  redis.call('PUBLISH', channel, id)
  return result
end
`,
  'has-tag': `--- @include decode-json
local function has_tag(stored, tag)
  for _, each in ipairs(stored and decode_json(stored) or {}) do
    if each == tag then
      return true
    end
  end
  return false
end
`,
  'held-places': `--- @include lane
--- @include blocked-lanes
--- @include key-limits
--- @include limiters
local function resume_key(key)
  local pass = redis.call('ZSCORE', base .. 'blocked-lanes', key)
  if pass and not redis.call('ZSCORE', base .. 'lane-times', key) then
    resume_lane(key, pass)
  end
  wake_first(key_need(key))
end
local function hold_places(id)
  local lane = redis.call('HGET', base .. id, 'lane')
  if not lane then
    return
  end
  local key, needs = split_lane(lane_name(lane))
  if key ~= '' and redis.call('EXISTS', base .. 'key-limits') == 1 then
    count_key(key, 1)
  end
  if needs then
    limiters().take(needs)
  end
end
local function give_back_places(key, needs, has_limits)
  local left = key ~= '' and has_limits and redis.call('ZADD', base .. 'active-by-key', 'XX', 'INCR', '-1', key)
  if left then
    if tonumber(left) <= 0 then
      redis.call('ZREM', base .. 'active-by-key', key)
    end
    if redis.call('EXISTS', base .. 'blocked-lanes', base .. 'waited-needs') > 0 then
      resume_key(key)
    end
  end
  if needs then
    limiters().give_back(needs)
  end
end
`,
  'held-retries': `--- @include delayed-set
--- @include note-moved
local GAP, MOVED_UP = 5, 20
local function held_retry(member)
  local backoff_ends_at, due, id = string.match(member, '^(%d+) (%d+) (.*)$')
  local score = redis.call('ZSCORE', base .. 'retrying', id)
  if score and math.floor(score / DELAYED_STEP) == tonumber(due) then
    return tonumber(backoff_ends_at), tonumber(due), id
  end
  return nil
end
local function hold_retry(line, id, backoff_ends_at, starts_at, slot_at)
  redis.call('ZADD', line, slot_at, string.format('%.0f %.0f %s', backoff_ends_at, starts_at, id))
end
local function advance_start(id, due, starts_at)
  if starts_at == due then
    return false
  end
  change_due(base, id, starts_at, 'retrying')
  note_moved(id)
  return true
end
local function release_retry(line, now)
  local first = redis.call('ZPOPMIN', line)[1]
  if not first then
    return false
  end
  local backoff_ends_at, due, id = held_retry(first)
  if not id then
    return true, false
  end
  return true, true, advance_start(id, due, math.max(now, backoff_ends_at))
end
local function move_up(line, from, interval)
  local slot_at = redis.call('ZRANGE', line, 0, 0, 'WITHSCORES')[2]
  if not slot_at or slot_at - from < GAP * interval then
    return 0
  end
  local moved = 0
  for _, member in ipairs(redis.call('ZRANGE', line, 0, MOVED_UP - 1)) do
    local backoff_ends_at, due, id = held_retry(member)
    redis.call('ZREM', line, member)
    if id then
      local starts_at = math.max(backoff_ends_at, math.min(math.ceil(from), due))
      hold_retry(line, id, backoff_ends_at, starts_at, from)
      moved = moved + (advance_start(id, due, starts_at) and 1 or 0)
      from = from + interval
    end
  end
  return moved
end
`,
  idempotency: `local PERIODS = 2
local PERIOD_NUMBERS = '0123'
local LIFE_AT, LIFE_END, HASH_END, KEY_END = 2, 9, 13, 35
local REQUEST_LENGTH, START_AT, START_END = 11, 14, 20
local UNKNOWN_START = '0000000'
local ACTION_CODES = { created = 'c', existing = 'e', replaced = 'r', extended = 'x' }
local STATUS_CODES = {
  scheduled = 's',
  waiting = 'w',
  active = 'a',
  retrying = 'r',
  completed = 'c',
  dead = 'd',
  cancelled = 'n',
  expired = 'e',
}
local DELETED = '-'
local function recall_call(task)
  local field = task.idempotency
  local hash = base .. 'idempotency:' .. string.sub(field, LIFE_AT, HASH_END)
  local key, record = string.sub(field, HASH_END + 1, KEY_END), string.sub(field, KEY_END + 1)
  local life = tonumber(string.sub(field, LIFE_AT, LIFE_END))
  local length = math.ceil(life / PERIODS)
  local now = math.floor(redis.call('TIME')[1] / length)
  for period = now, now - PERIODS, -1 do
    local number = period % #PERIOD_NUMBERS + 1
    local records = hash .. string.sub(PERIOD_NUMBERS, number, number)
    local found = redis.call('HGET', records, key)
    if found then
      local is_same = string.sub(found, 1, REQUEST_LENGTH) == string.sub(record, 1, REQUEST_LENGTH)
      return is_same and string.sub(found, REQUEST_LENGTH + 1) or 'reused'
    end
    if period == now then
      task.records, task.record_key, task.record = records, key, record
      task.records_expire_at = (now + 1) * length + life
    end
  end
  return string.sub(field, 1, 1) == '0' and { 'no_room' } or nil
end
local function store_record(task, record)
  redis.call('HSET', task.records, task.record_key, record)
  if redis.call('HLEN', task.records) == 1 then
    redis.call('EXPIREAT', task.records, task.records_expire_at)
  end
end
local function remember_call(task)
  local record = task.record
  if task.replaced then
    record = string.sub(record, 1, REQUEST_LENGTH) .. ACTION_CODES.replaced .. string.sub(record, REQUEST_LENGTH + 2)
  end
  store_record(task, record)
end
local function remember_other(task, action, other, status)
  local start = action == 'existing' and UNKNOWN_START or string.sub(task.record, START_AT, START_END)
  local code = ACTION_CODES[action] .. (STATUS_CODES[status] or DELETED)
  store_record(task, string.sub(task.record, 1, REQUEST_LENGTH) .. code .. start .. string.match(other, '[^-]+$'))
end
`,
  'idle-queue': `--- @include time
--- @include delayed-set
local function wake_when_due()
  local at = next_due(base)
  if at then
    redis.call('ZADD', base .. 'marker', whole(at), '1')
  end
end
local function note_drained()
  local wait, active, prioritized, lanes = base .. 'wait', base .. 'active', base .. 'prioritized', base .. 'lanes'
  if redis.call('EXISTS', wait, active, prioritized, lanes) == 0 then
    redis.call('XADD', base .. 'events', '*', 'event', 'drained')
  end
end
`,
  'is-after': `local function is_after(id, other)
  for at = 1, math.min(#id, #other) do
    local byte, of_other = string.byte(id, at), string.byte(other, at)
    if byte ~= of_other then
      return byte > of_other
    end
  end
  return #id > #other
end
`,
  'job-removal': `--- @include give-back
--- @include bullmq-event
--- @include delayed-set
--- @include delete-counted
--- @include leave-lane
--- @include leave-list
--- @include lock
--- @include remove-ended
local function is_locked(job, with_children)
  if is_running(job) then
    return true
  end
  for _, child in ipairs(with_children and redis.call('SMEMBERS', job .. ':dependencies') or {}) do
    if is_locked(child, true) then
      return true
    end
  end
  return false
end
local function leave_lists(home, id)
  local lane = home == base and redis.call('HGET', base .. id, 'lane')
  if lane and leave_lane(lane, id) or leave_list(home .. 'wait', id) then
    return 'wait'
  end
  if leave_list(home .. 'paused', id) then
    return 'paused'
  end
  if not leave_list(home .. 'active', id) then
    return 'unknown'
  end
  if lane then
    give_back(lane)
  end
  return 'active'
end
local function leave_set(home, set, id)
  if set == 'failed' then
    return leave_failed(home, id)
  end
  if set == 'delayed' then
    return leave_delayed(home, id)
  end
  return redis.call('ZREM', home .. set, id) == 1
end
local function leave_place(home, id)
  for _, set in ipairs({ 'completed', 'waiting-children', 'delayed', 'failed', 'prioritized' }) do
    if leave_set(home, set, id) then
      return set
    end
  end
  return leave_lists(home, id)
end
local function forget_deduplication(home, id)
  local deduplication = redis.call('HGET', home .. id, 'deid')
  if deduplication and redis.call('GET', home .. 'de:' .. deduplication) == id then
    redis.call('DEL', home .. 'de:' .. deduplication, home .. 'dn:' .. deduplication)
  end
end
local function delete_removed(home, id)
  if home ~= base and not string.find(home, '^%b{}:[^:]+:$') then
    return delete_keys(home .. id)
  end
  return delete_counted(home, id)
end
local function child_keys(job, mode)
  local keys = {}
  local function add(found)
    for _, key in ipairs(found) do
      keys[#keys + 1] = key
    end
  end
  if not mode.is_unprocessed then
    add(redis.call('HKEYS', job .. ':processed'))
    add(redis.call('HKEYS', job .. ':failed'))
    add(redis.call('ZRANGE', job .. ':unsuccessful', 0, -1))
  end
  add(redis.call('SMEMBERS', job .. ':dependencies'))
  return keys
end
local remove_children
local function remove_job(home, id, parent, mode)
  local job = home .. id
  if mode.is_unprocessed and (is_locked(job, false) or redis.call('ZSCORE', home .. 'failed', id)) then
    return
  end
  leave_parent(job, parent or redis.call('HGET', job, 'parentKey'))
  if mode.with_children then
    remove_children(job, mode)
  end
  local place = leave_place(home, id)
  forget_deduplication(home, id)
  if delete_removed(home, id) then
    add_event_of(home, 'removed', id, 'prev', place)
  end
end
function remove_children(job, mode)
  for _, key in ipairs(child_keys(job, mode)) do
    local home, id = split_job_key(key)
    remove_job(home, id, job, mode)
  end
end
local function delete_in_bulk(id)
  local job = base .. id
  local home, parent = detach_child(job, redis.call('HGET', job, 'parentKey'))
  if home == base then
    delete_in_bulk(parent)
  elseif home then
    place_job(home, parent, { priority = 0, to_head = true, from = 'waiting-children' })
  end
  forget_deduplication(base, id)
  delete_removed(base, id)
end
local function is_next_of_scheduler(id)
  local scheduler = redis.call('HGET', base .. id, 'rjk')
  local next_at = scheduler and redis.call('ZSCORE', base .. 'repeat', scheduler)
  return next_at and id == 'repeat:' .. scheduler .. ':' .. next_at
end
`,
  'key-limits': `--- @include time
local function limits_of_key(key)
  local own, default, own_rate, default_rate =
    unpack(redis.call('HMGET', base .. 'key-limits', 'concurrency:' .. key, 'concurrency', 'rate:' .. key, 'rate'))
  return tonumber(own or default), own_rate or default_rate, own, own_rate
end
local function active_of_key(key)
  return tonumber(redis.call('ZSCORE', base .. 'active-by-key', key)) or 0
end
local function count_key(key, by)
  local count = tonumber(redis.call('ZINCRBY', base .. 'active-by-key', by, key))
  if count == 0 then
    redis.call('ZREM', base .. 'active-by-key', key)
  end
  return count
end
local function open_rate(key, stored)
  local max, per, burst = string.match(stored, '^(%d+)/(%d+)/(%d+)$')
  local now, interval = micros() / 1000, per / max
  local early = interval * (burst - 1)
  local due = tonumber(redis.call('GET', base .. 'key-rate:' .. key)) or now
  if due > now + early + interval + 1 then
    due = now + early
  end
  return { key = key, now = now, interval = interval, early = early, due = due }
end
local function key_starts_at(key, rate, has_throttles)
  local starts_at = rate and rate.due - rate.early > rate.now and math.ceil(rate.due - rate.early) or nil
  local ends_at = has_throttles and tonumber(redis.call('ZSCORE', base .. 'key-throttles', key))
  return ends_at and ends_at > math.max(micros() / 1000, starts_at or 0) and ends_at or starts_at
end
local function count_key_start(rate)
  rate.due = math.max(rate.due, rate.now) + rate.interval
  local life = math.max(1, math.ceil(rate.due - rate.now))
  redis.call('SET', base .. 'key-rate:' .. rate.key, string.format('%.3f', rate.due), 'PX', life)
end
`,
  'key-owner': `local function key_owner(base, entry, now)
  local id, span = string.match(entry, '^(%S+) (%S+)')
  if tonumber(span) then
    return now < tonumber(span) and id or nil
  end
  local name, ended, starts = unpack(redis.call('HMGET', base .. id, 'name', 'finishedOn', 'ats'))
  if not name or ended or span == 's' and tonumber(starts or '0') > 0 then
    return nil
  end
  return id
end
`,
  lane: `local function lane_name(field)
  return string.match(field, ' (.*)$')
end
local function lane_weight(field)
  return tonumber(string.match(field, '^%S+'))
end
local function split_lane(name)
  if not string.find(name, '\\30', 1, true) then
    return name, nil
  end
  return string.match(name, '^(.*)\\30([^\\30]*)$')
end
local function lane_list(base, name)
  return base .. 'lane:' .. name
end
local function lane_priorities(base, name)
  return base .. 'lane-priorities:' .. name
end
`,
  'lane-tasks': `--- @include lane
local function lane_length(base, name)
  return redis.call('LLEN', lane_list(base, name)) + redis.call('ZCARD', lane_priorities(base, name))
end
local function lane_head(base, name)
  return redis.call('LINDEX', lane_list(base, name), -1) or redis.call('ZRANGE', lane_priorities(base, name), 0, 0)[1]
end
`,
  'lane-turn': `--- @include held-places
--- @include gates
local function read_lane(name, obstacles)
  local key, needs = split_lane(name)
  local lane = { name = name, key = key, needs = needs }
  if obstacles.has_limits and key ~= '' then
    local limit, rate = limits_of_key(key)
    lane.limit, lane.rate = limit, rate and open_rate(key, rate) or nil
  end
  lane.starts_at = key_starts_at(key, lane.rate, obstacles.has_throttles)
  return lane
end
local function open_turn(name, pass, obstacles)
  local turn = read_lane(name, obstacles)
  turn.pass = pass
  if obstacles.has_limits and turn.key ~= '' and not turn.starts_at then
    turn.active = count_key(turn.key, 1)
  end
  turn.is_limited = turn.needs and (obstacles.is_counted or redis.call('EXISTS', base .. 'waited-needs') == 1)
  return turn
end
local function wait_for_key(turn, pass, time)
  local name, starts_at = turn.name, turn.starts_at
  if turn.is_limited and not starts_at then
    return limiters().wait_for(name, { key_need(turn.key) }, pass, time)
  end
  block_lane(name, pass)
  redis.call('HSET', base .. 'turn-state', 'time', time or pass)
  if starts_at then
    redis.call('ZADD', base .. 'lane-times', whole(starts_at), name)
  end
end
local function holds_up(turn)
  local name, key, needs, pass = turn.name, turn.key, turn.needs, turn.pass
  local is_at_limit = turn.starts_at or turn.limit and turn.active > turn.limit
  if turn.is_limited and not redis.call('ZSCORE', base .. 'lanes', name) then
    return false
  end
  if is_at_limit then
    if turn.is_limited then
      limiters().leave_waiters(name, key, needs, not turn.starts_at and 'key' or nil)
    end
    wait_for_key(turn, pass, nil)
    return true
  end
  local refused, time
  if turn.is_limited then
    refused, time = limiters().refusals(name, key, needs, pass)
  end
  if refused then
    limiters().wait_for(name, refused, pass, time)
    if string.find(refused[1], '^service:') then
      gates().note(refused[1])
    end
  end
  return refused ~= nil
end
local function reached_pass(turn)
  local name, pass = turn.name, turn.pass
  if not turn.is_limited or redis.call('EXISTS', base .. 'waited-needs') == 0 then
    return pass
  end
  local other = redis.call('ZRANGE', base .. 'turns', 1, 1, 'WITHSCORES')
  local time = math.max(other[2] or 0, redis.call('HGET', base .. 'turn-state', 'time') or 0)
  return limiters().leave_waiters(name, turn.key, turn.needs) and math.max(pass, time) or pass
end
local function end_turn(turn, id, lane, obstacles)
  local name, key, needs, passes = turn.name, turn.key, turn.needs, base .. 'key-passes'
  local pass = reached_pass(turn)
  local key_pass = obstacles.has_key_passes and tonumber(redis.call('ZSCORE', passes, key)) or nil
  local next_pass = math.max(pass, key_pass or pass) + 1 / lane_weight(lane)
  if key_pass or needs then
    redis.call('ZADD', passes, next_pass, key)
  end
  if turn.rate then
    count_key_start(turn.rate)
    turn.starts_at = key_starts_at(key, turn.rate, false)
  end
  if turn.is_limited then
    limiters().take(needs)
  end
  if needs and string.find(needs, 'service:', 1, true) then
    gates().admit(id, needs)
  end
  if turn.starts_at or turn.limit and turn.active >= turn.limit then
    wait_for_key(turn, next_pass, pass)
    return false
  end
  redis.call('ZADD', base .. 'turns', next_pass, name)
  local has_tasks = turn.is_limited and redis.call('ZSCORE', base .. 'lanes', name)
  local refused = has_tasks and limiters().refusals(name, key, needs, next_pass)
  if refused then
    limiters().wait_for(name, refused, next_pass, pass)
  end
  return not refused
end
local function end_idle_turn(turn, is_empty)
  if is_empty and turn.is_limited then
    limiters().leave_waiters(turn.name, turn.key, turn.needs)
  end
  if is_empty and turn.needs then
    redis.call('ZREMRANGEBYSCORE', base .. 'key-passes', '-inf', turn.pass)
  end
  if turn.active then
    count_key(turn.key, -1)
  end
end
`,
  lanes: `--- @include lane
--- @include priority-score
local JOINS_BEHIND = 0.125
local function join_turns(name)
  local first = redis.call('ZRANGE', base .. 'turns', 0, 0, 'WITHSCORES')
  local time, others = unpack(redis.call('HMGET', base .. 'turn-state', 'time', 'pass'))
  local pass = (first[2] or time) and math.max(first[2] or 0, time or 0) + JOINS_BEHIND or others or 0
  redis.call('ZADD', base .. 'turns', 'NX', pass, name)
end
local function enter_lane(lane, id, priority, to_head)
  local name, state, was_empty = lane_name(lane), base .. 'turn-state', false
  local list, priorities = lane_list(base, name), lane_priorities(base, name)
  if priority > 0 then
    was_empty = redis.call('EXISTS', list, priorities) == 0
    local order = to_head and 0 or redis.call('HINCRBY', state, 'order', 1)
    redis.call('ZADD', priorities, priority_score(priority, order), id)
  else
    was_empty = redis.call(to_head and 'RPUSH' or 'LPUSH', list, id) == 1 and redis.call('EXISTS', priorities) == 0
  end
  redis.call('HINCRBY', state, 'waiting', 1)
  if not was_empty then
    return false
  end
  redis.call('ZADD', base .. 'lanes', redis.call('HINCRBY', state, 'order', 1), name)
  if redis.call('ZSCORE', base .. 'blocked-lanes', name) then
    return redis.call('ZSCORE', base .. 'lane-times', name) and true or false
  end
  join_turns(name)
  return true
end
`,
  'leave-lane': `--- @include lane
--- @include leave-list
local function note_left_lane(name, count)
  redis.call('HINCRBY', base .. 'turn-state', 'waiting', -count)
  if redis.call('EXISTS', lane_list(base, name), lane_priorities(base, name)) > 0 then
    return
  end
  redis.call('ZREM', base .. 'lanes', name)
  local pass = string.find(name, '\\30', 1, true) and redis.call('ZSCORE', base .. 'blocked-lanes', name)
  if pass then
    redis.call('ZREM', base .. 'blocked-lanes', name)
    redis.call('ZREM', base .. 'lane-times', name)
    redis.call('ZADD', base .. 'turns', pass, name)
    redis.call('ZADD', base .. 'marker', '0', '0')
  end
end
local function leave_lane(lane, id)
  local name = lane_name(lane)
  if redis.call('ZREM', lane_priorities(base, name), id) == 0 and not leave_list(lane_list(base, name), id) then
    return false
  end
  note_left_lane(name, 1)
  return true
end
`,
  'leave-list': `local NEWEST = 250
local function leave_list(list, id)
  local newest = redis.call('LPOS', list, id, 'MAXLEN', NEWEST)
  return redis.call('LREM', list, newest and 1 or -1, id) == 1
end
`,
  'leave-place': `--- @include delayed-set
--- @include leave-lane
--- @include leave-list
--- @include delete-counted
local function leave_ready(id)
  if redis.call('ZREM', base .. 'prioritized', id) == 1 then
    return 'prioritized'
  end
  local lane = redis.call('HGET', base .. id, 'lane')
  if lane and leave_lane(lane, id) then
    return 'lanes'
  end
  return leave_list(base .. 'wait', id) and 'wait' or nil
end
local function take_out(id)
  return leave_delayed(base, id) and 'delayed' or leave_ready(id)
end
local function delete_waiting_task(id)
  local place = take_out(id)
  delete_counted(base, id)
  return place
end
`,
  'limited-turns': `--- @include lane
--- @include leave-lane
local created_limited
local function limited()
  if created_limited then
    return created_limited
  end
  --- @include held-places
  --- @include lane-turn
  --- @include rare-turns
  created_limited = {
    hold_places = hold_places,
    give_back_places = give_back_places,
    open_turn = open_turn,
    holds_up = holds_up,
    end_turn = end_turn,
    end_idle_turn = end_idle_turn,
    resume_due = resume_due,
    begin_again = begin_again,
    return_stray = return_stray,
  }
  return created_limited
end
`,
  limiters: `--- @include blocked-lanes
local created_limiters
local function limiters()
  if created_limiters then
    return created_limiters
  end
  local function each_need(needs)
    return string.gmatch(needs, '([^,]+)=(%d+)')
  end
  local function capacity_of(limiter)
    return tonumber(redis.call('HGET', base .. 'capacities', limiter))
  end
  local function used_of(limiter)
    return tonumber(redis.call('ZSCORE', base .. 'in-use', limiter)) or 0
  end
  --- @include tickets
  local function refusals(name, key, needs, pass)
    local refused, time = nil, pass
    for limiter, amount in each_need(needs) do
      local capacity, need = capacity_of(limiter), limiter .. '=' .. amount
      if capacity and tonumber(amount) > capacity then
        leave_waiters(name, key, needs, limiter)
        return { need }
      end
      local first, ticket
      if capacity then
        first, ticket = first_waiter(limiter)
      end
      local is_behind = first and first ~= name and (ticket < pass or ticket == pass and is_after(name, first))
      if is_behind or capacity and used_of(limiter) + amount > capacity then
        refused = refused or {}
        refused[#refused + 1] = need
        time = first and math.min(time, ticket) or time
      end
    end
    if refused then
      leave_key(name, key)
    end
    return refused, time
  end
  local function is_full(needs)
    for limiter, amount in each_need(needs) do
      local capacity = capacity_of(limiter)
      if capacity and used_of(limiter) + amount > capacity then
        return true
      end
    end
    return false
  end
  local function take(needs)
    for limiter, amount in each_need(needs) do
      if string.sub(limiter, 1, 8) ~= 'service:' and redis.call('HEXISTS', base .. 'capacities', limiter) == 1 then
        redis.call('ZINCRBY', base .. 'in-use', amount, limiter)
      end
    end
  end
  local function give_back(needs)
    for limiter, amount in each_need(needs) do
      local left = redis.call('ZADD', base .. 'in-use', 'XX', 'INCR', '-' .. amount, limiter)
      if left then
        if tonumber(left) <= 0 then
          redis.call('ZREM', base .. 'in-use', limiter)
        end
        wake(limiter)
      end
    end
  end
  created_limiters = {
    refusals = refusals,
    wait_for = wait_for,
    leave_waiters = leave_waiters,
    is_full = is_full,
    take = take,
    give_back = give_back,
    wake = wake,
    each_need = each_need,
  }
  return created_limiters
end
`,
  lock: `--- @include time
local TIME_LENGTH = 13
local function lock_of(token, ms)
  return whole(millis() + ms) .. ' ' .. token
end
local function left_of(lock)
  local left = lock and lock ~= '' and tonumber(string.sub(lock, 1, TIME_LENGTH)) - millis()
  return left and left > 0 and left or nil
end
local function owner_of(lock)
  return left_of(lock) and string.sub(lock, TIME_LENGTH + 2) or nil
end
local function owns_lock(job, token)
  return owner_of(redis.call('HGET', job, 'lock')) == token
end
local function own_lock_left(job)
  return left_of(redis.call('HGET', job, 'lock'))
end
local function is_running(job)
  return own_lock_left(job) ~= nil or redis.call('EXISTS', job .. ':lock') == 1
end
`,
  losses: `local TOO_MANY_LOSSES = 'job stalled more than allowable limit'
local function count_loss(job, loss, max)
  local starts = loss.starts
  if starts and loss.lived == starts then
    return
  end
  if redis.call('HINCRBY', job, 'stc', '1') > max and not loss.is_repeated then
    redis.call('HSET', job, 'defa', TOO_MANY_LOSSES)
  end
  if not starts then
    return
  end
  redis.call('HSET', job, 'lostIn', starts)
  if not loss.deaths or loss.alone == starts then
    redis.call('HINCRBY', job, 'deaths', '1')
    redis.call('HSET', job, 'diedIn', starts)
  end
end
local function uncount_loss(job)
  if redis.call('HINCRBY', job, 'stc', '-1') <= 0 then
    redis.call('HDEL', job, 'stc')
  end
  if redis.call('HGET', job, 'defa') == TOO_MANY_LOSSES then
    redis.call('HDEL', job, 'defa')
  end
end
`,
  'lost-attempts': `--- @include place-again
--- @include give-back
--- @include attempt-records
--- @include losses
--- @include note-moved
--- @include task-events
local LOST_RECORD = '{"fencingToken":%s,"attempt":%d,"counted":false,"state":"RECOVER_ERR","reason":"process_lost",'
  .. '"message":"the worker was lost","worker":%s,"startedAt":%s,"endedAt":%s}'
  .. '\\nRECOVER_ERR (process_lost): the worker was lost'
local LOST_EVENT = ',"attempt":%d,"fencingToken":%s,"outcome":"panicked",'
  .. '"error":{"code":"process_lost","message":"the worker was lost"}}'
local function read_lost(id)
  local job = base .. id
  local starts, attempts, begun, worker, lane, scheduler, deaths, alone, lived =
    unpack(redis.call('HMGET', job, 'ats', 'atm', 'processedOn', 'pb', 'lane', 'rjk', 'deaths', 'alone', 'livedIn'))
  local events, name, tags, group = unpack(redis.call('HMGET', job, 'events', 'name', 'tags', 'group'))
  local repeats = base .. 'repeat'
  return {
    id = id,
    job = job,
    exists = redis.call('EXISTS', job) == 1,
    starts = starts,
    attempt = (tonumber(attempts) or 0) + 1,
    begun = begun,
    worker = cjson.encode(worker or 'unknown'),
    lane = lane,
    is_repeated = scheduler
      and (redis.call('EXISTS', repeats .. ':' .. scheduler) == 1 or redis.call('ZSCORE', repeats, scheduler)),
    deaths = deaths,
    alone = alone,
    lived = lived,
    stacks = (read_stacks(job)),
    events = events,
    event_start = events and event_start('requeued', name, tags, group),
  }
end
local function return_lost(task, at, max)
  local id, starts, attempt = task.id, task.starts or '0', task.attempt
  redis.call('HSET', task.job, 'lock', '')
  count_loss(task.job, task, max)
  local record = string.format(LOST_RECORD, starts, attempt, task.worker, task.begun or at, at)
  append_stack(task.job, task.stacks, record)
  if task.lane then
    give_back(task.lane)
  end
  place_waiting(id, task.lane, 0, true)
  add_move_event('waiting', id, 'prev', 'active')
  add_bullmq_event('stalled', id)
  note_moved(id)
  if task.events then
    add_task_event(base, id, task.events, task.event_start .. string.format(LOST_EVENT, attempt, starts))
  end
end
`,
  'matching-dead': `--- @include has-tag
local function matches_dead(base, filter, id)
  local job = base .. id
  if next(filter) == nil then
    return redis.call('EXISTS', job) == 1
  end
  local name, stored = unpack(redis.call('HMGET', job, 'name', 'fingerprint'))
  if not name or filter.task and filter.task ~= name then
    return false
  end
  if filter.state or filter.code then
    local state, code = string.match(stored or '', '^%S+ (%S+) (.*)$')
    if filter.state and filter.state ~= state or filter.code and filter.code ~= code then
      return false
    end
  end
  if filter.tag and not has_tag(redis.call('HGET', job, 'tags'), filter.tag) then
    return false
  end
  if not filter.text then
    return true
  end
  local reason = redis.call('HGET', job, 'failedReason') or ''
  local message = string.match(reason, '^[A-Z_]+ %b(): (.*)$') or reason
  return string.find(string.lower(message), filter.text, 1, true) ~= nil
end
`,
  'matching-rule': `--- @include has-tag
local function matching_rule(base, rules, id)
  local fields = redis.call('HMGET', base .. id, 'name', 'timestamp', 'tags', 'retries', 'group')
  local name, timestamp, tags, retries, member = unpack(fields)
  if not name then
    return nil
  end
  local retried = -1
  for _, each in ipairs(retries and decode_json(retries) or {}) do
    if not each.copy then
      retried = each.at
    end
  end
  local enqueued = tonumber(timestamp or '0') or 0
  local group = member and string.match(member, '^%S+')
  for i, rule in ipairs(rules) do
    if
      enqueued <= rule.before
      and retried < (rule.at or math.huge)
      and (rule.task == nil or rule.task == name)
      and (rule.group == nil or rule.group == group)
      and (rule.tag == nil or has_tag(tags, rule.tag))
    then
      return i, name
    end
  end
end
`,
  'new-task': `local FIELDS = 10
local TASK_OVERHEAD_BYTES = 512
local function read_task(at)
  local task = {
    id = ARGV[at],
    name = ARGV[at + 1],
    data = ARGV[at + 2],
    options = ARGV[at + 3],
    enqueued_at = ARGV[at + 4],
    caller = ARGV[at + 5],
    limits = ARGV[at + 6],
    max_events = ARGV[at + 7],
    event = ARGV[at + 8],
  }
  local first = at + FIELDS
  local last = first + 2 * tonumber(ARGV[first - 1])
  for i = first, last - 1, 2 do
    task[ARGV[i]] = ARGV[i + 1]
  end
  return task, last
end
local function bytes_of(task)
  return #task.data + #(task.followUps or '') + TASK_OVERHEAD_BYTES
end
local function append(list, name, value)
  list[#list + 1] = name
  list[#list + 1] = value
end
local function store_hash(task)
  local fields = { 'name', task.name, 'data', task.data, 'opts', task.options, 'timestamp', task.enqueued_at }
  append(fields, 'delay', task.delay or '0')
  append(fields, 'priority', task.priority or '0')
  if task.caller ~= '' then
    append(fields, 'caller', task.caller)
  end
  if task.max_events ~= '' then
    append(fields, 'events', task.max_events)
  end
  for _, name in ipairs({ 'tags', 'lane', 'group', 'followUps' }) do
    if task[name] then
      append(fields, name, task[name])
    end
  end
  if task.replaced then
    append(fields, 'replaced', '1')
  end
  local is_followed, name = task.followUps or task.group, task.counted_for
  if is_followed or name then
    append(fields, 'atEnd', (is_followed and '+' or '-') .. (name or ''))
  end
  redis.call('HSET', base .. task.id, unpack(fields))
end
`,
  'new-tasks': `--- @include time
--- @include error-text
--- @include new-task
local ADDED, REPLACED = 1, 2
local count, bytes = 0, 0
local is_all, is_repeat, stored_bytes = false, false, nil
local rare, created
--- @include place-task
function rare()
  if created then
    return created
  end
  --- @include forwarded
  --- @include idempotency
  --- @include removed-tasks
  --- @include queue-limits
  --- @include unique-keys
  --- @include enter-place
  created = {
    recall_forwarded = recall_forwarded,
    remember_forwarded = remember_forwarded,
    recall_call = recall_call,
    remember_call = remember_call,
    was_removed = was_removed,
    refuse_by_count = refuse_by_count,
    refuse_by_age = refuse_by_age,
    refuse_by_api_key = refuse_by_api_key,
    charge_api_key = charge_api_key,
    resolve_conflict = resolve_conflict,
    delete_replaced = delete_replaced,
    take_key = take_key,
    enter_place = enter_place,
  }
  return created
end
local function recall(task)
  local id, caller, unique = task.id, task.caller, task.unique
  local may_exist = is_repeat or is_all or task.mayExist or unique
  if (may_exist or caller ~= '') and redis.call('EXISTS', base .. id) == 1 then
    local is_own = caller ~= '' and redis.call('HGET', base .. id, 'caller') == caller
    local has_replaced = unique and redis.call('HEXISTS', base .. id, 'replaced') == 1
    return (is_own and ADDED or 0) + (has_replaced and REPLACED or 0)
  end
  if may_exist or task.group then
    local was_removed, had_replaced = rare().was_removed(base, task)
    if was_removed then
      return (caller ~= '' and ADDED or 0) + (had_replaced and REPLACED or 0)
    end
  end
  return nil
end
local function refuse_group(task)
  local group = string.match(task.group, '^%S+')
  return redis.call('EXISTS', base .. 'cancelled-group:' .. group) == 1 and { 'group cancelled' } or nil
end
local function refuse_by_limits(task)
  local max_bytes = tonumber(task.limits)
  if not max_bytes and task.limits ~= '' then
    local max_tasks, most, max_age = string.match(task.limits, '^(%d*),(%d*),(%d*)$')
    max_bytes = tonumber(most)
    local refused = rare().refuse_by_count(task, tonumber(max_tasks)) or rare().refuse_by_age(task, tonumber(max_age))
    if refused then
      return refused
    end
  end
  local refused = task.apiKey and rare().refuse_by_api_key(task)
  if refused or not max_bytes then
    return refused or nil
  end
  stored_bytes = stored_bytes or tonumber(redis.call('HGET', base .. 'totals', 'bytes') or '0')
  local found, needed = stored_bytes - (task.replaced_bytes or 0), bytes_of(task)
  if is_all then
    needed = needed + bytes
  else
    found = found + bytes
  end
  return found + needed > max_bytes and { 'full', 'maxBytes', found, max_bytes, needed } or nil
end
local function decide(task)
  return task.forwarded and rare().recall_forwarded(task)
    or task.idempotency and rare().recall_call(task)
    or recall(task)
    or task.group and refuse_group(task)
    or task.unique and rare().resolve_conflict(task)
    or refuse_by_limits(task)
end
local function note_added(task)
  count, bytes = count + 1, bytes + bytes_of(task)
end
local function write(task)
  local id = task.id
  if task.replaced then
    rare().delete_replaced(task)
  end
  if task.apiKey then
    rare().charge_api_key(task)
  end
  store_hash(task)
  place_task(task)
  if task.expiresAt then
    redis.call('ZADD', base .. 'expiries', task.expiresAt, id)
  end
  if task.max_events ~= '' then
    redis.call('XADD', base .. 'task-events', 'MAXLEN', '~', task.max_events, '*', 'id', id, 'event', task.event)
  end
  if task.unique then
    rare().take_key(task)
  end
  if task.idempotency then
    rare().remember_call(task)
  end
  if task.forwarded then
    rare().remember_forwarded(task)
  end
  return task.replaced and ADDED + REPLACED or ADDED
end
local function try(step, task)
  local is_done, reply = pcall(step, task)
  if is_done then
    return reply
  end
  return { 'error', error_text(reply) }
end
local function is_refusal(reply)
  return reply == 'reused' or type(reply) == 'table'
end
local function add_tasks(first, last, all)
  is_all, is_repeat = all, #ARGV > last
  local replies, tasks, is_refused, at = {}, {}, false, first
  while at <= last do
    local n, task = #replies + 1, nil
    task, at = read_task(at)
    local reply = try(decide, task)
    if reply then
      replies[n], is_refused = reply, is_refused or is_refusal(reply)
    else
      note_added(task)
      tasks[n], replies[n] = task, is_all and '' or try(write, task)
    end
  end
  if is_all then
    if is_refused then
      return replies
    end
    for n = 1, #replies do
      replies[n] = tasks[n] and try(write, tasks[n]) or replies[n]
    end
  end
  if count > 0 then
    redis.call('HINCRBY', base .. 'totals', 'accepted', count)
    redis.call('HINCRBY', base .. 'totals', 'bytes', whole(bytes))
    write_waiting()
  end
  return replies
end
`,
  'next-task': `--- @include lane-tasks
local EXAMINED_LANES = 32
local function next_task(base)
  local other = redis.call('LINDEX', base .. 'wait', -1) or redis.call('ZRANGE', base .. 'prioritized', 0, 0)[1]
  if redis.call('EXISTS', base .. 'lanes') == 0 then
    return other
  end
  local turns = redis.call('ZRANGE', base .. 'turns', 0, EXAMINED_LANES - 1, 'WITHSCORES')
  local own = tonumber(redis.call('HGET', base .. 'turn-state', 'pass') or turns[2])
  for i = 1, #turns, 2 do
    local pass = tonumber(turns[i + 1])
    if other and math.max(own, pass - 1) <= pass then
      return other
    end
    local id = lane_head(base, turns[i])
    if id then
      return id
    end
  end
  return other
end
`,
  'note-moved': `local has_cancel_rules
local function note_moved(id)
  if has_cancel_rules == nil then
    has_cancel_rules = redis.call('EXISTS', base .. 'cancel-rules') == 1
  end
  if has_cancel_rules then
    redis.call('SADD', base .. 'cancel-returned', id)
  end
end
`,
  'oldest-tasks': `--- @include lane-tasks
--- @include ready-at
local OLDEST_LANES = 32
local function oldest_tasks(base, limits)
  local oldest, since, blocked, blocked_since
  local seen = {}
  local function consider(id, is_blocked)
    local ready = id and ready_at(base, id)
    if not ready then
      return
    end
    if not since or ready < since then
      oldest, since = id, ready
    end
    if is_blocked and (not blocked_since or ready < blocked_since) then
      blocked, blocked_since = id, ready
    end
  end
  local function consider_lanes(set, is_blocked)
    for _, lane in ipairs(redis.call('ZRANGE', set, 0, OLDEST_LANES - 1)) do
      if not seen[lane] then
        consider(lane_head(base, lane), limits.holds_all or not limits.due[lane] and is_blocked(lane))
      end
      seen[lane] = true
    end
  end
  consider(redis.call('LINDEX', base .. 'wait', -1), limits.holds_all)
  consider(redis.call('ZRANGE', base .. 'prioritized', 0, 0)[1], limits.holds_all)
  if limits.has_blocked_lanes then
    consider_lanes(base .. 'blocked-lanes', function()
      return true
    end)
  end
  local has_more = limits.has_blocked_lanes and redis.call('ZCARD', base .. 'blocked-lanes') > OLDEST_LANES
  consider_lanes(base .. 'lanes', function(lane)
    return has_more and redis.call('ZSCORE', base .. 'blocked-lanes', lane)
  end)
  return oldest, since, blocked, blocked_since
end
`,
  outbox: `--- @include time
local MAX_OUTBOX_ENTRIES, MAX_OUTBOX_BYTES = 10000, 33554432
local CLOSED_BY_OUTBOX = 'outbox'
local END_LETTERS = { completed = 'c', dead = 'd', cancelled = 'x', expired = 'e', removed = 'r' }
local NEXT, HANDLER_SLOT, OWN_COMPENSATION_SLOT = 'n', 'h', 'c'
local function is_released(letter, status)
  if letter == 's' then
    return status == 'completed'
  end
  return letter == 'e' and status ~= 'removed' or letter == 'f' and (status == 'dead' or status == 'expired')
end
local function report_to_group(home, group, status, result, write)
  local run = string.match(group, '^run%-%S+') or string.match(group, '^reduce%-%S+')
  local passes_on = run and status == 'completed' and result
  write('g ' .. group .. ' ' .. END_LETTERS[status] .. (passes_on and '\\n' .. result or ''))
  return passes_on or run and status == 'cancelled' and redis.call('EXISTS', home .. 'cancelled-group:' .. run) == 1
end
local function add_chain(slot, templates, add)
  local last = #templates
  if last > 0 then
    local others = last > 1 and '\\n' .. NEXT .. table.concat(templates, '\\n' .. NEXT, 1, last - 1) or ''
    add(slot, templates[last] .. others)
  end
end
local function release_follow_ups(job, lines, own, status, add)
  local kept, next_ones, number = {}, {}, 0
  for letter, identity, template in string.gmatch(lines, '(%a)([^{\\n]*)({[^\\n]+)') do
    if letter == NEXT then
      next_ones[#next_ones + 1] = template
    else
      kept[#kept + 1] = letter .. identity .. template
      if is_released(letter, status) then
        add(letter .. #kept, template)
      end
    end
  end
  for template in string.gmatch(own, '%a([^\\n]+)') do
    number = number + 1
    add(HANDLER_SLOT .. number, template)
  end
  add_chain(NEXT, next_ones, add)
  if lines ~= '' and (status ~= 'dead' or #kept == 0) then
    redis.call('HDEL', job, 'followUps')
  elseif #next_ones > 0 then
    redis.call('HSET', job, 'followUps', table.concat(kept, '\\n'))
  end
end
local function release_compensations(job, lines, status, add)
  if status ~= 'completed' then
    local templates = {}
    for template in string.gmatch(lines, '%S+ ([^\\n]+)') do
      templates[#templates + 1] = template
    end
    add_chain(OWN_COMPENSATION_SLOT, templates, add)
    redis.call('HSET', job, 'compensated', whole(millis()))
  end
  redis.call('HDEL', job, 'compensations')
end
local function close_if_full(home, added_bytes)
  local total = redis.call('HINCRBY', home .. 'totals', 'outboxBytes', added_bytes)
  if total < MAX_OUTBOX_BYTES and redis.call('XLEN', home .. 'outbox') < MAX_OUTBOX_ENTRIES then
    return
  end
  if redis.call('HSETNX', home .. 'meta', 'paused', CLOSED_BY_OUTBOX) == 1 then
    redis.call('DEL', home .. 'marker')
  end
end
local function write_outbox(home, id, status, result, own)
  local job, bytes, head, is_unkept = home .. id, 0, nil, false
  local lines, compensations, enqueued_at, group, compensated =
    unpack(redis.call('HMGET', job, 'followUps', 'compensations', 'timestamp', 'group', 'compensated'))
  local function write(entry)
    redis.call('XADD', home .. 'outbox', '*', 'e', entry)
    bytes = bytes + #entry
  end
  local function add(slot, template)
    write(head .. slot .. ' ' .. template)
  end
  if group then
    is_unkept = report_to_group(home, group, status, result, write)
  end
  if lines or compensations or own then
    head = 't ' .. id .. ' ' .. enqueued_at .. ' ' .. redis.call('HINCRBY', job, 'ends', 1) .. ' '
  end
  if lines or own then
    release_follow_ups(job, lines or '', own or '', status, add)
  end
  if compensations then
    release_compensations(job, compensations, status, add)
  end
  if compensated and status == 'completed' then
    redis.call('HDEL', job, 'compensated')
  end
  if bytes > 0 then
    close_if_full(home, bytes)
  end
  return is_unkept
end
`,
  'outbox-claims': `local function ids_and_texts(stream)
  local entries = {}
  for _, entry in ipairs(stream) do
    if entry[2] then
      entries[#entries + 1] = { entry[1], entry[2][2] }
    end
  end
  return entries
end
local function claim_fresh(limit)
  local function read(call)
    return call('XREADGROUP', 'GROUP', 'forwarders', 'forwarder', 'COUNT', limit, 'STREAMS', outbox, '>')
  end
  local found = read(redis.pcall)
  if found and found.err then
    redis.call('XGROUP', 'CREATE', outbox, 'forwarders', '0')
    found = read(redis.call)
  end
  return ids_and_texts(found and found[1][2] or {})
end
local function claim_left(idle, cursor, limit)
  local left = redis.call('XAUTOCLAIM', outbox, 'forwarders', 'forwarder', idle, cursor, 'COUNT', limit)
  return left[1], ids_and_texts(left[2])
end
`,
  'outbox-span': `--- @include time
local function written_at(entries)
  return entries[1] and tonumber(string.match(entries[1][1], '^%d+'))
end
local function outbox_span(outbox)
  local oldest = written_at(redis.call('XRANGE', outbox, '-', '+', 'COUNT', 1))
  local newest = written_at(redis.call('XREVRANGE', outbox, '+', '-', 'COUNT', 1))
  return { math.max(millis(), newest or 0), oldest }
end
`,
  'own-adds': `--- @include given-time
--- @include own-job
local OWN_FIELDS = 7
local MISSING_PARENT = -5
local created
local function rare()
  if not created then
    --- @include existing-job
    --- @include deduplicate
    created = { note_existing = note_existing, resume_parents = resume_parents, deduplicate = deduplicate }
  end
  return created
end
local function read_own_job(at)
  local job = {
    home = ARGV[at],
    id = ARGV[at + 1],
    name = ARGV[at + 2],
    data = ARGV[at + 3],
    options = ARGV[at + 4],
    at = given_time(ARGV[at + 5]),
  }
  local first = at + OWN_FIELDS
  local last = first + 2 * tonumber(ARGV[first - 1])
  for i = first, last - 1, 2 do
    job[ARGV[i]] = ARGV[i + 1]
  end
  job.delay, job.priority = tonumber(job.delay or 0), tonumber(job.priority or 0)
  job.deduplication = job.deduplication and cjson.decode(job.deduplication)
  return job, last
end
local function add_job(job, is_flow)
  local home, id = job.home, job.id
  if job.parentKey and redis.call('EXISTS', job.parentKey) == 0 then
    return MISSING_PARENT
  end
  local counted = redis.call('INCR', home .. 'id')
  if id == '' then
    id = whole(counted)
  elseif redis.call('EXISTS', home .. id) == 1 then
    return rare().note_existing(home, id, job, is_flow)
  end
  local kept = job.deduplication and rare().deduplicate(home, id, job)
  if kept then
    return kept
  end
  add_own_job(home, id, job)
  return id
end
local function end_flow()
  if created then
    created.resume_parents()
  end
end
`,
  'own-job': `--- @include bullmq-event
--- @include place-job
--- @include task-charge
local function append_given(fields, name, value)
  if value then
    fields[#fields + 1] = name
    fields[#fields + 1] = value
  end
end
local function store_own_job(key, job)
  local fields = { 'name', job.name, 'data', job.data, 'opts', job.options, 'timestamp', job.at }
  append_given(fields, 'delay', job.delay)
  append_given(fields, 'priority', job.priority)
  append_given(fields, 'parentKey', job.parentKey)
  append_given(fields, 'parent', job.parent)
  append_given(fields, 'rjk', job.repeatKey)
  append_given(fields, 'deid', job.deduplication and job.deduplication.id)
  redis.call('HSET', key, unpack(fields))
end
local function add_own_job(home, id, job)
  local totals = home .. 'totals'
  store_own_job(home .. id, job)
  redis.call('HINCRBY', totals, 'accepted', 1)
  redis.call('HINCRBY', totals, 'bytes', #job.data + TASK_OVERHEAD_BYTES)
  add_move_event_of(home, 'added', id, 'name', job.name)
  if job.hasChildren then
    redis.call('ZADD', home .. 'waiting-children', job.at, id)
    add_event_of(home, 'waiting-children', id)
  else
    place_job(home, id, {
      due = job.delay > 0 and job.at + job.delay or nil,
      part = 'scheduled',
      priority = job.priority,
      to_head = job.lifo,
    })
  end
  if job.siblings then
    redis.call('SADD', job.siblings, home .. id)
  end
end
`,
  'passed-in-list': `local function passed_in_list(list, last, passed)
  if last == '' then
    return 0
  end
  if redis.call('LINDEX', list, -passed) == last then
    return tonumber(passed)
  end
  local index = redis.call('LPOS', list, last, 'RANK', -1)
  return index and redis.call('LLEN', list) - index or 0
end
`,
  pausing: `--- @include idle-queue
local MOVED_AT_ONCE = 7000
local function pause_queue()
  redis.call('HSET', base .. 'meta', 'paused', '1')
  redis.call('DEL', base .. 'marker')
  redis.call('XADD', base .. 'events', '*', 'event', 'paused')
end
local function take_back_jobs()
  local from, to = base .. 'paused', base .. 'wait'
  if redis.call('EXISTS', from) == 0 or redis.call('RENAMENX', from, to) == 1 then
    return false
  end
  local ids = redis.call('LRANGE', from, 0, MOVED_AT_ONCE - 1)
  redis.call('RPUSH', to, unpack(ids))
  redis.call('LTRIM', from, #ids, -1)
  return redis.call('EXISTS', from) == 1
end
local function wake_workers()
  if redis.call('EXISTS', base .. 'wait', base .. 'prioritized', base .. 'lanes') > 0 then
    redis.call('ZADD', base .. 'marker', '0', '0')
  else
    wake_when_due()
  end
end
local function resume_queue()
  redis.call('HDEL', base .. 'meta', 'paused')
  redis.call('XADD', base .. 'events', '*', 'event', 'resumed')
end
`,
  'place-again': `--- @include enter-place
local function rare()
  return { enter_place = enter_place }
end
--- @include place-task
`,
  'place-job': `--- @include time
--- @include bullmq-event
--- @include delayed-set
--- @include priority-score
local function delay_job(home, id, due, part)
  enter_delayed(home, id, due, part)
  add_move_event_of(home, 'delayed', id, 'delay', whole(due))
  redis.call('ZADD', home .. 'marker', whole(next_due(home)), '1')
end
local function may_start_job(home)
  local paused, concurrency = unpack(redis.call('HMGET', home .. 'meta', 'paused', 'concurrency'))
  return not paused and not (concurrency and redis.call('LLEN', home .. 'active') >= tonumber(concurrency))
end
local function split_job_key(key)
  local home, id = string.match(key, '^(.*:)(repeat:[^:]+:%d+)$')
  if home then
    return home, id
  end
  return string.match(key, '^(.*:)(.*)$')
end
local function place_job(home, id, job)
  if job.due then
    return delay_job(home, id, job.due, job.part)
  end
  if job.priority ~= 0 then
    redis.call('ZADD', home .. 'prioritized', priority_score(job.priority, redis.call('INCR', home .. 'pc')), id)
  else
    redis.call(job.to_head and 'RPUSH' or 'LPUSH', home .. 'wait', id)
  end
  if may_start_job(home) then
    redis.call('ZADD', home .. 'marker', '0', '0')
  end
  local from = job.from and { 'prev', job.from } or {}
  add_move_event_of(home, 'waiting', id, unpack(from))
end
`,
  'place-task': `--- @include time
--- @include queue-meta
--- @include delayed-set
local waiting, may_wake, has_delayed = {}, false, false
local function delay_task(id, due, part)
  enter_delayed(base, id, due, part)
  has_delayed = true
end
local function place_waiting(id, lane, priority, to_head)
  local is_first = true
  if lane or priority > 0 or to_head then
    is_first = rare().enter_place(id, lane, priority, to_head)
  else
    waiting[#waiting + 1] = id
  end
  may_wake = may_wake or is_first
end
local function place_task(task)
  local id = task.id
  add_move_event('added', id, 'name', task.name)
  if task.delay then
    local due = task.enqueued_at + task.delay
    delay_task(id, due, 'scheduled')
    return add_move_event('delayed', id, 'delay', whole(due))
  end
  place_waiting(id, task.lane, tonumber(task.priority or 0), false)
  add_move_event('waiting', id)
end
local function write_waiting()
  if #waiting > 0 then
    redis.call('LPUSH', base .. 'wait', unpack(waiting))
    waiting = {}
  end
  if may_wake and is_open() then
    redis.call('ZADD', base .. 'marker', '0', '0')
  end
  local due = has_delayed and next_due(base)
  if due then
    redis.call('ZADD', base .. 'marker', whole(due), '1')
  end
end
`,
  'priority-score': `--- @include time
local PRIORITY_STEP = 0x100000000
local function priority_score(priority, order)
  return whole(priority * PRIORITY_STEP + order % PRIORITY_STEP)
end
`,
  'queue-chores': `--- @include time
local function has_until(set, limit)
  return #redis.call('ZRANGEBYSCORE', set, '-inf', limit, 'LIMIT', 0, 1) > 0
end
local function reopen_queue(meta, totals, outbox, limiter, throttle_mark, outbox_mark)
  local paused, concurrency, max = unpack(redis.call('HMGET', meta, 'paused', 'concurrency', 'max'))
  if paused == outbox_mark and redis.call('EXISTS', outbox) == 0 then
    redis.call('HDEL', meta, 'paused')
    redis.call('HDEL', totals, 'outboxBytes')
    paused = false
  end
  if max == throttle_mark and redis.call('GET', limiter) ~= throttle_mark then
    redis.call('HDEL', meta, 'max', 'duration')
  end
  return paused, concurrency
end
local function drop_events(stream, time)
  if redis.call('XTRIM', stream, 'MINID', '~', time) == 0 then
    redis.call('XTRIM', stream, 'MINID', time)
  end
end
`,
  'queue-features': `local function read_features()
  local state, limits, capacities = base .. 'turn-state', base .. 'key-limits', base .. 'capacities'
  return redis.call('EXISTS', state, limits, limits, capacities, capacities, capacities, capacities)
end
local function read_obstacles(features)
  local wait, prioritized = base .. 'wait', base .. 'prioritized'
  local throttles, times, passes = base .. 'key-throttles', base .. 'lane-times', base .. 'key-passes'
  local present = redis.call(
    'EXISTS',
    throttles,
    times,
    passes,
    wait,
    wait,
    wait,
    wait,
    prioritized,
    prioritized,
    prioritized,
    prioritized
  )
  local obstacles = { has_limits = features % 4 >= 2, is_counted = features >= 2, has_others = present >= 4 }
  if present % 4 > 0 then
    obstacles.has_times = redis.call('EXISTS', throttles, times) > 0
    obstacles.has_throttles = obstacles.has_times and redis.call('EXISTS', throttles) == 1
    obstacles.has_key_passes = redis.call('EXISTS', passes) == 1
  end
  obstacles.limits_lanes = obstacles.is_counted or obstacles.has_throttles or obstacles.has_key_passes
  return obstacles
end
`,
  'queue-limits': `--- @include next-task
--- @include token-bucket
local function refuse_by_count(task, max)
  if not max then
    return nil
  end
  local found = redis.call('LLEN', base .. 'wait')
    + redis.call('ZCARD', base .. 'prioritized')
    + redis.call('ZCARD', base .. 'delayed')
    + (redis.call('HGET', base .. 'turn-state', 'waiting') or 0)
    - (task.replaced and 1 or 0)
  local unwritten = is_all and count or #waiting
  return found + unwritten >= max and { 'full', 'maxTasks', found, max } or nil
end
local function refuse_by_age(task, max)
  local first = max and next_task(base)
  if not first or first == task.replaced then
    return nil
  end
  local enqueued_at, options, starts = unpack(redis.call('HMGET', base .. first, 'timestamp', 'opts', 'ats'))
  if not enqueued_at or tonumber(starts or 0) > 0 then
    return nil
  end
  local delay = string.match(options or '', '"delay":(%d+)') or 0
  local found = millis() - enqueued_at - delay
  return found >= max and { 'full', 'maxAge', found, max } or nil
end
local function api_key_of(task)
  local name, max_tasks, max, per = string.match(task.apiKey, '^(%S+) (%S*) (%d*) (%d*)$')
  return name, max_tasks, tonumber(max), tonumber(per)
end
local function refuse_by_api_key(task)
  local name, max_tasks, max, per = api_key_of(task)
  local unwritten = is_all and count or 0
  if tonumber(max_tasks) then
    local found = tonumber(redis.call('HGET', base .. 'api-key-tasks', name) or '0')
    if task.replaced and string.sub(redis.call('HGET', base .. task.replaced, 'atEnd') or '', 2) == name then
      found = found - 1
    end
    if found + unwritten >= tonumber(max_tasks) then
      return { 'api key full', found, tonumber(max_tasks) }
    end
  end
  if max then
    local tokens = tokens_in(redis.call('HGET', base .. 'api-key-rates', name), micros() / 1000, max, per)
    if whole_tokens(tokens) <= unwritten then
      return { 'rate', math.ceil((unwritten + 1 - tokens) * per / max) }
    end
  end
  return nil
end
local function charge_api_key(task)
  local name, max_tasks, max, per = api_key_of(task)
  if max then
    local now = micros() / 1000
    local tokens = tokens_in(redis.call('HGET', base .. 'api-key-rates', name), now, max, per)
    redis.call('HSET', base .. 'api-key-rates', name, stored_bucket(tokens - 1, now))
  end
  if max_tasks ~= '' then
    task.counted_for = name
    redis.call('HINCRBY', base .. 'api-key-tasks', name, 1)
  end
end
`,
  'queue-meta': `--- @include time
local MAX_STORED_EVENTS = '10000'
local stored_meta, is_emptied
local function queue_meta(is_changed)
  if not stored_meta or is_changed then
    stored_meta = redis.call(
      'HMGET',
      base .. 'meta',
      'paused',
      'concurrency',
      'max',
      'duration',
      'opts.maxLenEvents',
      'allEventsUntil'
    )
  end
  return stored_meta
end
local function is_open()
  local found = queue_meta()
  local concurrency = found[2]
  return not found[1] and not (concurrency and redis.call('LLEN', base .. 'active') >= tonumber(concurrency))
end
local function add_bullmq_event(name, id, ...)
  local found = queue_meta()
  if not found[5] then
    found[5] = MAX_STORED_EVENTS
    redis.call('HSET', base .. 'meta', 'opts.maxLenEvents', found[5])
  end
  local stream, most = base .. 'events', found[5]
  if most == '0' then
    if not is_emptied then
      redis.call('XTRIM', stream, 'MAXLEN', '0')
      is_emptied = true
    end
    most = MAX_STORED_EVENTS
  end
  redis.call('XADD', stream, 'MAXLEN', '~', most, '*', 'event', name, 'jobId', id, ...)
end
local function add_move_event(name, id, ...)
  local last = queue_meta()[6]
  if not last or tonumber(last) > millis() then
    add_bullmq_event(name, id, ...)
  end
end
`,
  'rank-in-set': `--- @include is-after
local function rank_in(set, score, id)
  local first = redis.call('ZCOUNT', set, '-inf', '(' .. score)
  local beyond = first + redis.call('ZCOUNT', set, score, score)
  while first < beyond do
    local middle = math.floor((first + beyond) / 2)
    if is_after(redis.call('ZRANGE', set, middle, middle)[1], id) then
      beyond = middle
    else
      first = middle + 1
    end
  end
  return first
end
`,
  'rare-ends': `--- @include time
--- @include deduplication
--- @include flow-parent
--- @include remove-ended
local REMOVED_PER_END = 16
local function decode_end(ending)
  ending.parent = ending.parent and cjson.decode(ending.parent)
  ending.next_job = ending.deduplication and read_next_job(ending.deduplication)
end
local function tell_others(ending)
  local job, value = ending.job, ending.value
  if ending.deduplication then
    end_deduplicated(ending.id, ending.deduplication, ending.next_job, now)
  end
  if ending.parent_key and ending.verdict == 'completed' then
    report_completed(ending.parent_key, job, value, now)
  elseif ending.parent then
    report_to_parent(ending.parent, job, value, now)
  end
end
local function remember_if_removed(ending)
  if ending.fencing_token ~= '' and redis.call('EXISTS', ending.job) == 0 then
    remember_removal(base, ending.id .. ' e' .. ending.fencing_token)
  end
end
local function remove_unkept(ending)
  remove_ended_task(base, ending.verdict, ending.id)
  remember_if_removed(ending)
end
local function store_end(ending, set, result, attempts)
  local id, job, status, keep_count = ending.id, ending.job, ending.verdict, ending.keepCount
  if keep_count == '0' then
    return remove_unkept(ending)
  end
  local fields = ending.fields or {}
  local n = #fields
  fields[n + 1], fields[n + 2], fields[n + 3], fields[n + 4] = 'atm', attempts, result, ending.value
  fields[n + 5], fields[n + 6], fields[n + 7], fields[n + 8] = 'finishedOn', time, 'lock', ''
  redis.call('HSET', job, unpack(fields))
  if set == 'completed' then
    redis.call('ZADD', base .. 'completed', time, id)
  else
    enter_failed(base, id, status, time, status == 'dead' and ending.fingerprint or nil)
    if ending.deferred then
      redis.call('HDEL', job, 'defa')
    end
  end
  if ending.keepAge or keep_count then
    local since = ending.keepAge and whole(math.floor(now - ending.keepAge * 1000) + 1) or ''
    remove_ended(base, set, since, keep_count or '', tonumber(ending.keepLimit))
    remember_if_removed(ending)
  end
end
local function note_exhausted(id, attempts)
  local event = { 'event', 'retries-exhausted', 'jobId', id, 'attemptsMade', whole(attempts) }
  redis.call('XADD', base .. 'events', '*', unpack(event))
end
local function remove_old(ending)
  remove_ended(base, ending.verdict, ending.keptSince or '', ending.keptCount or '', REMOVED_PER_END)
  remember_if_removed(ending)
end
`,
  'rare-functions': `local rare
local MOVES_TASKS = { returns = true, ends = true, budget = true, calls = true }
local is_promoted, is_plain, has_marker = false, false, false
local function promote_due()
  if is_promoted then
    return
  end
  local last = string.format('%.0f', (now + 1) * 0x1000 - 1)
  local due = redis.call('ZRANGEBYSCORE', base .. 'delayed', '0', last, 'LIMIT', '0', '1000')
  if #due > 0 then
    rare('returns').promote(due)
  end
  is_promoted = #due < 1000
end
local created = {}
function rare(group)
  if MOVES_TASKS[group] then
    is_promoted, is_plain = false, false
  end
  has_marker = has_marker and group ~= 'outbox'
  local functions = created[group]
  if functions then
    return functions
  end
  if group == 'turns' then
    --- @include turns
    functions = { give_back = give_back, start_next = start_next, limited = limited }
  elseif group == 'candidates' then
    --- @include candidates
    functions = { start_candidate = start_candidate }
  elseif group == 'calls' then
    --- @include gates
    functions = { gates = gates }
  elseif group == 'ends' then
    --- @include rare-ends
    functions = {
      decode_end = decode_end,
      tell_others = tell_others,
      store_end = store_end,
      note_exhausted = note_exhausted,
      remove_old = remove_old,
      remove_unkept = remove_unkept,
    }
  elseif group == 'returns' then
    --- @include task-return
    functions = { put_back = put_back, promote = promote }
  elseif group == 'outbox' then
    --- @include outbox
    functions = { write_outbox = write_outbox }
  elseif group == 'budget' then
    --- @include retry-budget
    functions = { admit_retry = admit_retry, end_retry = end_retry }
  elseif group == 'events' then
    --- @include task-events
    functions = { add_task_events = add_task_events }
  elseif group == 'metrics' then
    --- @include bullmq-metrics
    functions = { count_ended = count_ended }
  elseif group == 'rate' then
    --- @include start-rate
    functions = { limited_ms = limited_ms, count_start = count_start }
  elseif group == 'idle' then
    --- @include idle-queue
    functions = { next_due = next_due, wake_when_due = wake_when_due, note_drained = note_drained }
  else
    --- @include resent-end
    functions =
      { was_stored = was_stored, was_deleted = was_deleted, has_gone_on = has_gone_on, started_before = started_before }
  end
  created[group] = functions
  return functions
end
`,
  'rare-turns': `--- @include blocked-lanes
--- @include gates
local RESUMED_AT_ONCE = 32
local function resume_due(now)
  local times = base .. 'lane-times'
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', times, '-inf', now, 'LIMIT', 0, RESUMED_AT_ONCE)) do
    redis.call('ZREM', times, name)
    local pass = redis.call('ZSCORE', base .. 'blocked-lanes', name)
    if pass then
      resume_lane(name, pass)
    end
    if string.find(name, '^\\30service:') then
      gates().resume(name, RESUMED_AT_ONCE)
    end
  end
end
local function begin_again()
  local turns, blocked = base .. 'turns', base .. 'blocked-lanes'
  for _, need in ipairs(redis.call('ZRANGE', base .. 'waited-needs', 0, -1)) do
    redis.call('ZDIFFSTORE', blocked, '2', blocked, base .. 'need-waiters:' .. need)
    redis.call('UNLINK', base .. 'need-waiters:' .. need)
  end
  redis.call('UNLINK', base .. 'waited-needs', base .. 'key-passes')
  redis.call('ZUNIONSTORE', blocked, '1', blocked, 'WEIGHTS', '0')
  redis.call('ZDIFFSTORE', turns, '2', base .. 'lanes', blocked)
  redis.call('ZUNIONSTORE', turns, '1', turns, 'WEIGHTS', '0')
  redis.call('HDEL', base .. 'turn-state', 'pass', 'time')
end
local function return_stray(id, lane, is_others_turn)
  --- @include lanes
  --- @include note-moved
  redis.call('LPOP', base .. 'active')
  if is_others_turn then
    redis.call('HINCRBYFLOAT', base .. 'turn-state', 'pass', '-1')
  end
  enter_lane(lane, id, 0, true)
  note_moved(id)
end
`,
  'ready-at': `local function ready_at(base, id)
  local fields = redis.call('HMGET', base .. id, 'timestamp', 'opts', 'processedOn', 'retries')
  local enqueued_at, options, started_at, retries = unpack(fields)
  if not enqueued_at then
    return nil
  end
  local ready = tonumber(started_at or enqueued_at)
  if not started_at and string.find(options or '', '"delay"', 1, true) then
    local has_read, read = pcall(cjson.decode, options)
    ready = ready + (has_read and tonumber(read.delay) or 0)
  end
  if retries then
    for _, retry in ipairs(cjson.decode(retries)) do
      if not retry.copy then
        ready = math.max(ready, retry.at)
      end
    end
  end
  return ready
end
`,
  'remove-ended': `--- @include place-job
--- @include failed-set
--- @include delete-job
local function detach_child(job, parent)
  local dependencies = parent and parent .. ':dependencies'
  if not parent or redis.call('SREM', dependencies, job) == 0 or redis.call('EXISTS', dependencies) == 1 then
    return nil
  end
  local home, id = split_job_key(parent)
  if redis.call('ZREM', home .. 'waiting-children', id) == 0 then
    return nil
  end
  return home, id
end
local function leave_parent(job, parent)
  local home, id = detach_child(job, parent)
  if home then
    place_job(home, id, { priority = 0, to_head = true, from = 'waiting-children' })
  end
end
local function remove_ended_task(base, status, id)
  if status == 'completed' then
    redis.call('ZREM', base .. 'completed', id)
  else
    leave_parent(base .. id, redis.call('HGET', base .. id, 'parentKey'))
    leave_failed(base, id)
  end
  delete_job(base, id)
end
local function remove_ended(base, status, since, count, limit)
  local set = base .. status
  local old = since ~= '' and redis.call('ZRANGEBYSCORE', set, '-inf', '(' .. since, 'LIMIT', 0, limit) or {}
  if count ~= '' and #old < limit then
    local excess = math.min(redis.call('ZCARD', set) - count, limit)
    if excess > #old then
      old = redis.call('ZRANGE', set, 0, excess - 1)
    end
  end
  for _, id in ipairs(old) do
    remove_ended_task(base, status, id)
  end
  return #old
end
`,
  'removed-tasks': `--- @include time
local REPEATS_WITHIN_MS = 20000
local TRIM_AT_ONCE = 1000
local trimmed, has_removed = {}, nil
local function remember_removal(home, member, at)
  local now = millis()
  local oldest, set = now - REPEATS_WITHIN_MS, home .. 'recently-removed'
  if at and at < oldest then
    return
  end
  redis.call('ZADD', set, whole(math.min(at or now, now)), member)
  if trimmed[home] then
    return
  end
  trimmed[home] = true
  local old = redis.call('ZRANGE', set, '-inf', '(' .. whole(oldest), 'BYSCORE', 'LIMIT', 0, TRIM_AT_ONCE)
  if #old > 0 then
    redis.call('ZREM', set, unpack(old))
  end
  redis.call('PEXPIRE', set, REPEATS_WITHIN_MS)
end
local function was_removed(home, task)
  if has_removed == nil then
    has_removed = redis.call('EXISTS', home .. 'recently-removed') == 1
  end
  if not has_removed then
    return false, false
  end
  local member = task.id .. ' ' .. task.caller
  if task.unique and redis.call('ZSCORE', home .. 'recently-removed', member .. ' r') then
    return true, true
  end
  return redis.call('ZSCORE', home .. 'recently-removed', member), false
end
`,
  'resent-end': `--- @include decode-json
--- @include lock
local function record_in(fields)
  for i = 1, #fields, 2 do
    if fields[i] == 'stacktrace' then
      local stacks = decode_json(fields[i + 1])
      local newest = type(stacks) == 'table' and stacks[#stacks]
      return type(newest) == 'string' and string.sub(newest, 1, 1) == '{' and newest or nil
    end
  end
end
local function was_stored(ending)
  local id, job, verdict, fencing_token = ending.id, ending.job, ending.verdict, ending.fencing_token
  local record = record_in(ending.fields or {})
  if record then
    for _, stack in ipairs(decode_json(redis.call('HGET', job, 'stacktrace') or '[]')) do
      if stack == record then
        return true
      end
    end
    return false
  end
  local may_have_ended = fencing_token ~= '' and (verdict == 'completed' or verdict == 'dead')
  return may_have_ended
    and redis.call('ZSCORE', base .. verdict, id)
    and redis.call('HGET', job, 'ats') == fencing_token
end
local function was_deleted(ending)
  return ending.fencing_token ~= ''
    and redis.call('ZSCORE', base .. 'recently-removed', ending.id .. ' e' .. ending.fencing_token)
end
local MOST_LOOKED_AT = 1000
local by_token
local function started_before(token, id)
  if not by_token then
    by_token = {}
    for _, each in ipairs(redis.call('LRANGE', base .. 'active', '0', MOST_LOOKED_AT - 1)) do
      by_token[owner_of(redis.call('HGET', base .. each, 'lock')) or ''] = each
    end
  end
  local found = by_token[token]
  return found and found ~= id and { redis.call('HGETALL', base .. found), found, 0, 0 } or nil
end
local function has_gone_on(ending)
  return is_repeat and started_before(ending.token, ending.id) ~= nil
end
`,
  'retry-budget': `--- @include time
--- @include held-retries
local BUDGET_WINDOW_S, MAX_RELEASED = 10, 100
local BUDGET_WINDOW_MS = BUDGET_WINDOW_S * 1000
local MAX_EXAMINED = 1000
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
`,
  'retry-dead': `--- @include time
--- @include return-ended
--- @include task-events
local MAX_RETRY_RECORDS = 10
local function add_retry(retries, entry)
  while #retries >= MAX_RETRY_RECORDS do
    table.remove(retries, 1)
  end
  retries[#retries + 1] = entry
end
local function with_time(data, stored, at)
  local head, rest = string.match(data, '^({"v":%d+,)(.*)$')
  if not head then
    return data
  end
  local earlier = tonumber(string.match(stored, '^{"v":%d+,"retriedAt":(%d+),') or '')
  if earlier and earlier >= at then
    at = earlier + 1
  end
  return head .. '"retriedAt":' .. whole(at) .. ',' .. string.gsub(rest, '^"retriedAt":%d+,', '')
end
local function retry_dead(id, retries, entry, data)
  local job = base .. id
  local stored, lane, priority, deaths, parent, events, name, tags, group = unpack(
    redis.call('HMGET', job, 'data', 'lane', 'priority', 'deaths', 'parentKey', 'events', 'name', 'tags', 'group')
  )
  local next_data = with_time(data ~= '' and data or stored, stored, entry.at)
  if not leave_ended(id, 'failed') then
    return false
  end
  add_retry(retries, entry)
  redis.call('HSET', job, 'retries', cjson.encode(retries), 'data', next_data)
  local task = { id = id, lane = lane, priority = priority, deaths = deaths, parent = parent }
  return_ended(task, 'failed', { 'failedReason', 'atm', 'stc' }, false)
  write_waiting()
  if events then
    local start = event_start('retry_requested', name, tags, group)
    add_task_event(base, id, events, start .. ',"by":' .. cjson.encode(entry.by or '') .. '}')
  end
  return true
end
`,
  'return-ended': `--- @include failed-set
--- @include place-again
--- @include task-charge
--- @include note-moved
local function return_to_parent(job, parent, set)
  if redis.call('EXISTS', parent) == 0 then
    return
  end
  local was_told = set == 'completed' and redis.call('HDEL', parent .. ':processed', job) == 1
    or set == 'failed' and redis.call('ZREM', parent .. ':unsuccessful', job) == 1
    or set == 'failed' and redis.call('HDEL', parent .. ':failed', job) == 1
  if was_told then
    redis.call('SADD', parent .. ':dependencies', job)
  end
end
local function leave_ended(id, set)
  if set == 'failed' then
    return leave_failed(base, id)
  end
  return redis.call('ZREM', base .. set, id) == 1
end
local function return_ended(task, set, forgotten, to_head)
  local id, job, priority = task.id, base .. task.id, tonumber(task.priority) or 0
  redis.call('HDEL', job, 'finishedOn', 'processedOn', 'lock', unpack(forgotten))
  if task.deaths then
    redis.call('HSET', job, 'deaths', '1', 'stc', '1')
  end
  redis.call('HDEL', base .. 'cancelling', id)
  charge(base, job, 1)
  redis.call('HINCRBY', base .. 'totals', 'retried', 1)
  place_waiting(id, task.lane, priority, to_head and priority == 0)
  add_move_event('waiting', id, 'prev', set)
  if task.parent then
    return_to_parent(job, task.parent, set)
  end
  note_moved(id)
end
`,
  run: `--- @include outbox-claims
--- @include run-advance
local MAX_CLAIMED = 1000
local OUTBOX_KEPT_MS = 60000
local function save(has_ended)
  local fields = {}
  for name in pairs(changed) do
    fields[#fields + 1] = name
    fields[#fields + 1] = run[name]
  end
  if #fields > 0 then
    redis.call('HSET', meta, unpack(fields))
  end
  if not has_ended then
    for key in pairs(touched) do
      redis.call('PEXPIREAT', key, run.expiresAt)
    end
    return
  end
  redis.call('UNLINK', tasks, inputs, early, results)
  for _, key in ipairs({ meta, definition, errors }) do
    redis.call('PEXPIRE', key, run.keepMs)
  end
  redis.call('PEXPIRE', outbox, math.max(number('keepMs'), OUTBOX_KEPT_MS))
  redis.call('PUBLISH', channels .. 'ended', id)
end
local function reply(now, more)
  local has_ended = false
  if run.state ~= 'ended' then
    advance(now)
    has_ended = finish(now)
  end
  save(has_ended)
  local items = {}
  for name, count in pairs(counted) do
    items[#items + 1] = name
    items[#items + 1] = count
  end
  local ended = has_ended and { run.result, run.endedAt - run.createdAt } or false
  local entries = redis.call('EXISTS', outbox) == 1 and claim_fresh(MAX_CLAIMED) or {}
  return { ended, entries, more or false, items, run.incarnation }
end
`,
  'run-advance': `--- @include run-items
local function is_emptied(section)
  if number('entered' .. section) > number('left' .. section) then
    return false
  end
  if section == 1 then
    return run.isExhausted == '1' or run.source == 'failed'
  end
  return length(number('first' .. section)) == 0 and is_emptied(section - 1)
end
local function take_batch(stage, before)
  local waits, size = length(stage), number('batch' .. stage)
  if waits == 0 or waits < size and not is_emptied(before) then
    return
  end
  local values = redis.call('LPOP', waiting_key(stage), size)
  for i, item in ipairs(values) do
    values[i] = string.match(item, '^%d+ (.*)$')
  end
  lengths[stage] = waits - #values
  return BATCH_MARK .. table.concat(values, '\\n')
end
local function next_item(stage)
  local section = number('section' .. stage)
  if section == 1 or number('first' .. section) < stage then
    if length(stage) == 0 then
      return
    end
    lengths[stage] = lengths[stage] - 1
    return string.match(redis.call('LPOP', waiting_key(stage)), '^(%d+) (.*)$')
  end
  if held_by(section) >= number('window' .. section) then
    return
  end
  local value = take_batch(stage, section - 1)
  if value then
    return enter(section), value
  end
end
local function advance(now)
  while not run.reason and has_waiting(stages + 1) do
    local result = take_batch(stages + 1, number('section' .. stages))
    if not result then
      break
    end
    add_result(result, now)
  end
  if run.reason then
    return
  end
  for stage = stages, 1, -1 do
    local concurrency, room = number('concurrency' .. stage), number('room' .. stage)
    local running, outputs = number('running' .. stage), length(stage + 1)
    local started = 0
    while running + started < math.min(concurrency, room - outputs) do
      local position, value = next_item(stage)
      if not position then
        break
      end
      started = started + 1
      start(stage, position, value)
    end
    if started > 0 then
      add('running' .. stage, started)
    end
  end
  if 2 * free() < number('window1') then
    return
  end
  if run.source == 'parked' then
    set('source', 'active')
    add('segment', 1)
    set('fencingToken', 0)
    start(0, run.segment, '')
  elseif run.isWaiting == '1' then
    set('isWaiting', '')
    redis.call('PUBLISH', channels .. 'credits', id)
  end
end
local function finish(now)
  if run.state == 'ended' or redis.call('SCARD', tasks) > 0 then
    return false
  end
  local is_whole = run.reason == 'taken' or not run.reason and run.source == 'done'
  if is_whole and run.reduce == 'pending' then
    set('state', 'reducing')
    set('reduce', 'running')
    start(stages + 1, 0, '')
    return false
  end
  local is_completed = is_whole and (run.reduce == 'none' or run.reduce == 'completed')
  set('state', 'ended')
  set('endedAt', now)
  set('result', is_completed and 'completed' or run.reason == 'cancelled' and 'cancelled' or 'failed')
  return true
end
`,
  'run-fields': `--- @include time
local MAX_PASSED_BYTES, REFERENCE_MARK = 65536, '@'
local BATCH_MARK = '*'
local run, changed, touched = {}, {}, {}
do
  local flat = redis.call('HGETALL', meta)
  for i = 1, #flat, 2 do
    run[flat[i]] = flat[i + 1]
  end
end
local function run_token()
  return id .. '.' .. run.incarnation
end
local function number(name)
  return tonumber(run[name] or 0)
end
local function set(name, value)
  run[name] = type(value) == 'number' and whole(value) or value
  changed[name] = true
end
local function add(name, by)
  set(name, number(name) + by)
end
local counted = {}
local function count_item(stage, outcome)
  local name = stage .. ' ' .. outcome
  counted[name] = (counted[name] or 0) + 1
end
local stages = number('stages')
local function waiting_key(stage)
  return base .. 'waiting:' .. stage
end
local function has_waiting(stage)
  return stage <= stages or run['batch' .. stage] ~= nil
end
local lengths = {}
local function length(stage)
  if not lengths[stage] then
    lengths[stage] = has_waiting(stage) and redis.call('LLEN', waiting_key(stage)) or 0
  end
  return lengths[stage]
end
local function write(command, key, ...)
  touched[key] = true
  return redis.call(command, key, ...)
end
local function write_entry(text)
  write('XADD', outbox, '*', 'e', text)
end
local function start(stage, position, value)
  local name = stage .. '.' .. position
  write('SADD', tasks, name)
  if #value > MAX_PASSED_BYTES then
    write('HSET', inputs, name, value)
    value = REFERENCE_MARK .. #value
  end
  write_entry('i ' .. run_token() .. ' ' .. stage .. ' ' .. position .. '\\n' .. value)
end
local function wait_for(stage, position, value)
  length(stage)
  write('RPUSH', waiting_key(stage), position .. ' ' .. value)
  lengths[stage] = lengths[stage] + 1
end
local function held_by(section)
  return number('entered' .. section) - number('left' .. section) + length(number('last' .. section) + 1)
end
local function free()
  return number('window1') - held_by(1)
end
local function enter(section)
  local position = number('entered' .. section)
  set('entered' .. section, position + 1)
  return whole(position)
end
local function push_item(value)
  wait_for(1, enter(1), value)
end
`,
  'run-items': `--- @include run-fields
local function stop(reason, by, now)
  if run.state == 'ended' then
    return
  end
  if run.reason and not (run.reason == 'taken' and (reason == 'cancelled' or reason == 'run_timeout')) then
    return
  end
  set('state', 'stopping')
  set('reason', reason)
  set('stoppedBy', by)
  set('stoppedAt', now)
  for stage = 1, stages + 1 do
    redis.call('UNLINK', waiting_key(stage))
    lengths[stage] = 0
  end
  redis.call('UNLINK', early)
  set('isWaiting', '')
  if run.source == 'parked' then
    set('source', 'done')
  end
  local reduces = redis.call('SISMEMBER', tasks, (stages + 1) .. '.0')
  if redis.call('SCARD', tasks) > reduces then
    for queue in string.gmatch(run.queues, '%S+') do
      write_entry('k ' .. run_token() .. ' ' .. queue .. ' ' .. by)
    end
  end
  if reduces == 1 then
    write_entry('k reduce' .. string.sub(run_token(), 4) .. ' ' .. run.reduceQueue .. ' ' .. by)
  end
end
local function add_result(value, now)
  if run.reduceQueue then
    local bytes = number('resultBytes') + #value
    if bytes > number('maxBytes') then
      return stop('results_too_large', 'run ' .. id, now)
    end
    set('resultBytes', bytes)
    write('RPUSH', results, value)
  end
  add('results', 1)
  if run.take and number('results') == number('take') then
    stop('taken', 'run ' .. id, now)
  end
end
local function leave_now(section, position, value, now)
  add('left' .. section, 1)
  if value == '' then
    return
  end
  local following = number('last' .. section) + 1
  if has_waiting(following) then
    wait_for(following, position, value)
  else
    add_result(value, now)
  end
end
local function leave(section, position, value, now)
  if run.ordered ~= '1' then
    return leave_now(section, position, value, now)
  end
  local left = 'left' .. section
  if tonumber(position) ~= number(left) then
    write('HSET', early, section .. '.' .. position, value)
    return
  end
  leave_now(section, position, value, now)
  while not run.reason do
    local field = section .. '.' .. run[left]
    local following = redis.call('HGET', early, field)
    if not following then
      return
    end
    redis.call('HDEL', early, field)
    leave_now(section, run[left], following, now)
  end
end
local function fail_item(section, stage, position, letter, now)
  add('errorCount', 1)
  if not run.firstError then
    set('firstError', stage .. ' ' .. position .. ' ' .. letter)
  end
  if run.onError == 'cancel' then
    return stop('first_error', 'run ' .. id, now)
  end
  if number('errorCount') <= number('maxErrors') then
    write('RPUSH', errors, stage .. ' ' .. position .. ' ' .. letter)
  end
  leave(section, position, '', now)
end
local function end_item(stage, position, letter, value, now)
  add('running' .. stage, -1)
  if run.reason then
    return
  end
  local section = number('section' .. stage)
  if letter ~= 'c' then
    add('failed' .. stage, 1)
    count_item(stage, 'failed')
    return fail_item(section, stage, position, letter, now)
  end
  add('completed' .. stage, 1)
  count_item(stage, value == '' and 'dropped' or 'completed')
  if value == '' then
    add('dropped' .. stage, 1)
  end
  if value == '' or stage == number('last' .. section) then
    leave(section, position, value, now)
  else
    wait_for(stage + 1, position, value)
  end
end
local function end_run_task(stage, position, letter, value, now)
  local name = stage .. '.' .. position
  if redis.call('SREM', tasks, name) == 0 then
    return
  end
  redis.call('HDEL', inputs, name)
  local is_completed = letter == 'c'
  if stage == 0 then
    set('isWaiting', '')
    if run.reason or run.isExhausted == '1' then
      set('source', 'done')
    else
      set('source', is_completed and 'parked' or 'failed')
    end
  elseif stage > stages then
    set('reduce', is_completed and 'completed' or letter == 'x' and 'cancelled' or 'failed')
    if is_completed then
      set('output', value)
    end
  else
    end_item(stage, position, letter, value, now)
  end
end
`,
  'schedule-write': `--- @include time
local function refusal()
  local stored = redis.call('HGET', schedules, name)
  local found = stored and string.match(stored, '^(%S*) ') or ''
  if found == token or (record == '' and not stored) then
    return 'written'
  end
  if found ~= expected then
    return 'conflict'
  end
  if notBefore ~= '' and millis() < tonumber(notBefore) then
    return 'early'
  end
end
local function write_schedule()
  if record == '' then
    redis.call('HDEL', schedules, name)
    redis.call('ZREM', scheduleTimes, name)
    return
  end
  redis.call('HSET', schedules, name, token .. ' ' .. record)
  if wakeAt == '' then
    redis.call('ZREM', scheduleTimes, name)
  else
    redis.call('ZADD', scheduleTimes, wakeAt, name)
  end
end
`,
  scheduler: `--- @include own-job
local function planned_id(scheduler, time)
  return 'repeat:' .. scheduler .. ':' .. whole(time)
end
local function next_time(last, every, now, offset, starts_at)
  local aligned = math.floor(now / every) * every + offset
  if aligned <= now then
    aligned = aligned + every
  end
  local time
  if last then
    time = last + every < now and aligned or last + every
  elseif starts_at then
    time = math.max(starts_at, now)
  else
    time = offset > 0 and aligned or now
  end
  return math.floor(time), math.floor(offset ~= 0 and offset or time % every)
end
local function add_planned(scheduler, time, now, job)
  local id, options, delay = planned_id(scheduler, time), job.options, math.max(time - now, 0)
  options.jobId, options.delay = id, delay
  redis.call('INCR', base .. 'id')
  add_own_job(base, id, {
    name = job.name,
    data = job.data,
    options = cjson.encode(options),
    at = whole(now),
    delay = delay,
    priority = options.priority or 0,
    lifo = options.lifo,
    deduplication = options.de,
    repeatKey = scheduler,
  })
  return delay
end
`,
  'start-rate': `local function limited_ms(max)
  local limiter = base .. 'limiter'
  if max > tonumber(redis.call('GET', limiter) or '0') then
    return 0
  end
  local left = redis.call('PTTL', limiter)
  if left == 0 then
    redis.call('DEL', limiter)
  end
  return math.max(left, 0)
end
local function count_start(job, per_ms)
  local limiter = base .. 'limiter'
  if redis.call('HEXISTS', job, 'defa') == 0 and redis.call('INCR', limiter) == 1 then
    redis.call('PEXPIRE', limiter, math.floor(math.abs(per_ms)))
  end
end
`,
  'stored-reply': `local REPLY_KEPT_MS = 600000
local function stored_reply(key, request)
  local stored = redis.call('GET', key)
  if not stored then
    return nil
  end
  local of, reply = unpack(cmsgpack.unpack(stored))
  if of == request then
    return reply
  end
end
local function store_reply(key, request, reply, keepMs)
  redis.call('SET', key, cmsgpack.pack({ request, reply }), 'PX', keepMs)
end
`,
  'subject-state': `--- @include time
local now, position = millis(), 1
local function take()
  position = position + 1
  return ARGV[position - 1]
end
local function ask(...)
  local reply = redis.pcall(...)
  if type(reply) == 'table' and reply.err then
    return nil
  end
  return reply
end
local holds = {
  exists = function(key)
    return ask('EXISTS', key) == 1
  end,
  scored = function(key, member)
    return ask('ZSCORE', key, member)
  end,
  field = function(key, name)
    return ask('HEXISTS', key, name) == 1
  end,
  listed = function(key, element)
    return ask('LPOS', key, element)
  end,
  laned = function(base, id)
    local lane = ask('HGET', base .. id, 'lane')
    local name = lane and string.match(lane, ' (.*)$')
    return name and (ask('ZSCORE', base .. 'lane-priorities:' .. name, id) or ask('LPOS', base .. 'lane:' .. name, id))
  end,
  expires = function(key)
    return ask('PTTL', key) >= 0
  end,
  points = function(key, prefix)
    local id = ask('GET', key)
    return id and ask('EXISTS', prefix .. id) == 1
  end,
  later = function(_, time)
    return now < tonumber(time)
  end,
}
local function is_there(key, kind, entry, value)
  if kind == 'hash' then
    return ask('HGET', key, entry) == value
  elseif kind == 'zset' then
    return ask('ZSCORE', key, entry) == value
  elseif kind == 'set' then
    return ask('SISMEMBER', key, entry) == 1
  end
  return ask('LPOS', key, entry)
end
local function state_of_next(remove)
  local key, kind, expires, is_entry, entry, value = take(), take(), take() == '1', take() == '1', take(), take()
  local conditions, is_owned = tonumber(take()), false
  for _ = 1, conditions do
    local condition, of, argument = take(), take(), take()
    is_owned = is_owned or holds[condition](of, argument)
  end
  local with = {}
  for i = 1, tonumber(take()) do
    with[i] = take()
  end
  local found = redis.call('TYPE', key).ok
  if found == 'none' then
    return 'owned'
  elseif kind == '' then
    return 'unknown'
  elseif found ~= kind then
    return 'wrong_type'
  elseif conditions > 0 and not is_owned then
    if is_entry and not is_there(key, kind, entry, value) then
      return 'owned'
    end
    remove(key, kind, is_entry and entry, with)
    return 'no_owner'
  end
  return expires and redis.call('PTTL', key) < 0 and 'no_expiry' or 'owned'
end
local function states_of(remove)
  local states = {}
  while position <= #ARGV do
    states[#states + 1] = state_of_next(remove)
  end
  return states
end
`,
  'task-charge': `local TASK_OVERHEAD_BYTES = 512
local function stored_bytes_of(job, at_end)
  if at_end == nil then
    at_end = redis.call('HGET', job, 'atEnd')
  end
  local bytes = redis.call('HSTRLEN', job, 'data') + TASK_OVERHEAD_BYTES
  if at_end and string.sub(at_end, 1, 1) == '+' then
    bytes = bytes + redis.call('HSTRLEN', job, 'followUps') + redis.call('HSTRLEN', job, 'compensations')
  end
  return bytes, at_end
end
local function count_for_key(home, at_end, sign)
  if not at_end then
    return false
  end
  local name = string.sub(at_end, 2)
  if name ~= '' and redis.call('HINCRBY', home .. 'api-key-tasks', name, sign) <= 0 then
    redis.call('HDEL', home .. 'api-key-tasks', name)
  end
  return string.sub(at_end, 1, 1) == '+'
end
local function charge(home, job, sign, at_end)
  local bytes
  bytes, at_end = stored_bytes_of(job, at_end)
  redis.call('HINCRBY', home .. 'totals', 'bytes', sign * bytes)
  return count_for_key(home, at_end, sign)
end
`,
  'task-end': `--- @include task-charge
--- @include queue-meta
local refunded = 0
local function end_task(ending)
  local id, job, status, value = ending.id, ending.job, ending.verdict, ending.value
  local is_completed, is_unkept, attempts = status == 'completed', false, ending.attempts + 1
  local set, result = 'failed', 'failedReason'
  if is_completed then
    set, result = 'completed', 'returnvalue'
  end
  has_ended = true
  if ending.deduplication or ending.parent_key then
    rare('ends').tell_others(ending)
  end
  local follow_ups = is_completed and ending.followUps
  local bytes, at_end = stored_bytes_of(job, ending.at_end)
  refunded = refunded + bytes
  if count_for_key(base, at_end, -1) or follow_ups then
    is_unkept = rare('outbox').write_outbox(base, id, status, value, follow_ups)
    queue_meta(true)
  end
  if is_completed and not ending.fields and not ending.keepCount and not ending.keepAge then
    redis.call('HSET', job, 'atm', attempts, 'returnvalue', value, 'finishedOn', time, 'lock', '')
    redis.call('ZADD', base .. 'completed', time, id)
  else
    rare('ends').store_end(ending, set, result, attempts)
  end
  add_bullmq_event(set, id, result, is_unkept and is_completed and 'null' or value, 'prev', 'active')
  if not is_completed and attempts >= tonumber(ending.maxAttempts) then
    rare('ends').note_exhausted(id, attempts)
  end
  if ending.metrics then
    rare('metrics').count_ended(base, set, now, tonumber(ending.metrics))
  end
  if ending.rule and status == 'cancelled' then
    redis.call('HINCRBY', base .. 'cancel-progress:' .. ending.rule, 'ended', '1')
  end
  if ending.keptSince or ending.keptCount then
    rare('ends').remove_old(ending)
  end
  if ending.budget then
    rare('budget').end_retry(ending.budget, now, is_completed)
  end
  if ending.events then
    rare('events').add_task_events(base, id, ending.events)
  end
  if is_unkept then
    rare('ends').remove_unkept(ending)
  end
end
local function refund_ended()
  if refunded > 0 then
    redis.pcall('HINCRBY', base .. 'totals', 'bytes', -refunded)
  end
end
`,
  'task-events': `local MAX_LOG_EVENTS = 100
local function add_task_event(base, id, count, event)
  redis.call('XADD', base .. 'task-events', 'MAXLEN', '~', count, '*', 'id', id, 'event', event)
end
local function event_start(type, name, tags, group)
  local start = '{"type":"' .. type .. '","task":' .. cjson.encode(name or '') .. (tags and ',"tags":' .. tags or '')
  return start .. (group and string.gsub(group, '^(%S+) (%d+)', ',"group":{"id":"%1","member":%2}') or '')
end
local function may_add(job, event)
  return string.sub(event, 1, 13) ~= '{"type":"log"'
    or redis.call('EXISTS', job) == 0
    or redis.call('HINCRBY', job, 'logLines', 1) <= MAX_LOG_EVENTS
end
local function add_task_events(base, id, lines, due)
  local count
  for line in string.gmatch(lines, '[^\\n]+') do
    if not count then
      count = line
    elseif may_add(base .. id, line) then
      local event = due and string.sub(line, -1) ~= '}' and line .. string.format('%.0f}', due) or line
      add_task_event(base, id, count, event)
    end
  end
end
`,
  'task-return': `--- @include time
--- @include delayed-set
--- @include note-moved
--- @include enter-place
local KEEP_POSTPONED_MS = 60000
local COUNTED = { retrying = true, retried = true }
local function promote_task(id)
  local job = base .. id
  local name, lane, priority, waits = unpack(redis.call('HMGET', job, 'name', 'lane', 'priority', 'waits'))
  if not name and redis.call('EXISTS', job) == 0 then
    return
  end
  if waits then
    redis.call('HDEL', job, 'waits')
  end
  enter_place(id, lane, tonumber(priority or '0') or 0, waits and true or false)
  add_move_event('waiting', id, 'prev', 'delayed')
  redis.call('HSET', job, 'delay', '0')
end
local function promote(ids)
  for _, set in ipairs({ 'delayed', 'scheduled', 'retrying' }) do
    redis.call('ZREM', base .. set, unpack(ids))
  end
  for _, id in ipairs(ids) do
    promote_task(id)
  end
  if is_open() then
    redis.call('ZADD', base .. 'marker', '0', '0')
  end
end
local function store_fields(ending, ...)
  local fields = ending.fields or {}
  for _, each in ipairs({ ... }) do
    fields[#fields + 1] = each
  end
  if COUNTED[ending.verdict] then
    fields[#fields + 1] = 'atm'
    fields[#fields + 1] = whole(ending.attempts + 1)
  end
  redis.call('HSET', ending.job, 'lock', '', unpack(fields))
end
local function uncount_start(job)
  return redis.call('HINCRBY', job, 'ats', -1)
end
local function note_postponed(id, job, score)
  local postponed = base .. 'postponed'
  uncount_start(job)
  redis.call('HSET', job, 'waits', '1')
  redis.call('ZREMRANGEBYSCORE', postponed, '-inf', whole(now * DELAYED_STEP))
  redis.call('ZADD', postponed, score, id)
  redis.call('PEXPIRE', postponed, KEEP_POSTPONED_MS)
end
local function was_retrying(ending)
  if ending.attempts == 0 then
    return false
  end
  --- @include attempt-records
  local stacks = read_stacks(ending.job)
  local is_record, last = pcall(decode_json, string.match(tostring(stacks[#stacks] or ''), '^[^\\n]*'))
  if not is_record or type(last) ~= 'table' then
    return true
  end
  return last.reason ~= 'snoozed' and not (last.state == 'DONE_ERROR' and not last.counted)
end
local function delay(ending)
  local id, job, verdict, delay_ms = ending.id, ending.job, ending.verdict, tonumber(ending.value)
  if ending.budget then
    delay_ms = rare('budget').admit_retry(ending.budget, now, id, now + delay_ms) - now
  end
  local due = now + math.max(delay_ms, 0)
  local is_retry = verdict == 'retrying' or verdict == 'postponed' and was_retrying(ending)
  store_fields(ending, 'delay', whole(delay_ms))
  local score = enter_delayed(base, id, due, is_retry and 'retrying' or 'scheduled')
  add_move_event('delayed', id, 'delay', whole(due))
  if verdict == 'postponed' then
    note_postponed(id, job, score)
  end
  has_delayed = true
  return due
end
local function expire_again(id, job)
  local expires_at = redis.call('HGET', job, 'expiresAt')
  if expires_at then
    redis.call('ZADD', base .. 'expiries', expires_at, id)
  end
end
local function wait_again(ending)
  local id, job, verdict, lane, priority = ending.id, ending.job, ending.verdict, ending.lane, ending.priority
  local is_retry = verdict == 'retried'
  if is_retry then
    promote_due()
  end
  store_fields(ending)
  enter_place(id, lane, priority, not is_retry or ending.value == 'head' and priority == 0)
  if is_open() or not is_retry and (lane or priority > 0) then
    redis.call('ZADD', base .. 'marker', '0', '0')
  end
  add_move_event('waiting', id, 'prev', 'active')
  if verdict == 'released' and uncount_start(job) == 0 then
    expire_again(id, job)
  end
end
local function put_back(ending)
  local id, job, verdict, survival = ending.id, ending.job, ending.verdict, ending.survival
  local is_delayed = verdict == 'retrying' or verdict == 'scheduled' or verdict == 'postponed'
  local due
  if is_delayed then
    due = delay(ending)
  else
    wait_again(ending)
  end
  note_moved(id)
  if survival == 'lived' then
    redis.call('HDEL', job, 'deaths', 'alone', 'diedIn')
  elseif survival == 'died' then
    redis.call('HINCRBY', job, 'deaths', 1)
  end
  if ending.events then
    rare('events').add_task_events(base, id, ending.events, due)
  end
  return (is_delayed or verdict == 'retried') and 0 or math.max(redis.call('PTTL', base .. 'limiter'), 0)
end
`,
  'task-start': `--- @include queue-meta
--- @include rare-functions
--- @include lock
local MAX_DROPPED = 1000
local dropped = 0
local found_nothing
local function has_turns()
  return redis.call('EXISTS', base .. 'turn-state', base .. 'key-limits', base .. 'capacities') > 0
end
local function take_next()
  if candidates ~= '' then
    local id = rare('candidates').start_candidate(candidates, time)
    return id, not id
  end
  local active, found = base .. 'active', features
  local id, is_last, may_be_uncounted
  features = nil
  if found and found % 2 == 1 or not is_plain and has_turns() then
    id, is_last, may_be_uncounted = rare('turns').start_next(found, time)
  else
    is_plain = true
    id = redis.call('RPOPLPUSH', base .. 'wait', active)
    is_last = not id
  end
  if id then
    return id, is_last
  end
  id = redis.call('ZPOPMIN', base .. 'prioritized')[1]
  if not id then
    redis.call('DEL', base .. 'pc')
    return nil, is_last
  end
  redis.call('LPUSH', active, id)
  if may_be_uncounted then
    rare('turns').limited().hold_places(id)
  end
  return id, false
end
local function count_of(fields, name)
  for i = 1, #fields, 2 do
    if fields[i] == name then
      return tonumber(fields[i + 1])
    end
  end
  return 0
end
local function start_task(token)
  if found_nothing then
    return found_nothing
  end
  local meta = queue_meta()
  local max = tonumber(meta[3] or ownMax)
  promote_due()
  local left = max and rare('rate').limited_ms(max) or 0
  if left > 0 or not is_open() then
    found_nothing = { 0, 0, left, 0 }
    return found_nothing
  end
  local id, is_last = take_next()
  if not id then
    local starts_at = rare('idle').next_due(base)
    is_idle = not starts_at
    local reply = { 0, 0, 0, starts_at or 0 }
    found_nothing = is_last and (starts_at or math.huge) > now and reply or nil
    return reply
  end
  local job = base .. id
  local fields = redis.call('HGETALL', job)
  if #fields == 0 then
    redis.call('LREM', base .. 'active', '1', id)
    dropped = dropped + 1
    if dropped < MAX_DROPPED then
      return start_task(token)
    end
    redis.call('ZADD', base .. 'marker', '0', '0')
    return { 0, 0, 0, 0 }
  end
  local count = #fields
  if max then
    rare('rate').count_start(job, tonumber(ownPerMs) or tonumber(meta[4] or '') or 1)
  end
  add_move_event('active', id, 'prev', 'waiting')
  local starts = count_of(fields, 'ats') + 1
  fields[count + 1], fields[count + 2] = 'processedOn', time
  fields[count + 3], fields[count + 4] = 'ats', tostring(starts)
  if worker ~= '' then
    fields[count + 5], fields[count + 6] = 'pb', worker
  end
  local lock = token == '0' and '' or lock_of(token, lockMs)
  redis.call('HSET', job, 'lock', lock, unpack(fields, count + 1))
  if is_last then
    redis.call('ZREM', base .. 'marker', '0')
  elseif not has_marker then
    redis.call('ZADD', base .. 'marker', '0', '0')
  end
  has_marker = not is_last
  return { fields, id, 0, 0 }
end
`,
  'ticket-of': `local function ticket_of(base, name, key, needs)
  local waiters = base .. 'need-waiters:'
  if redis.call('ZSCORE', waiters .. 'key:' .. key .. '=1', name) then
    return 'key'
  end
  for limiter, amount in string.gmatch(needs, '([^,]+)=(%d+)') do
    if redis.call('ZSCORE', waiters .. limiter .. '=' .. amount, name) then
      return limiter
    end
  end
end
`,
  tickets: `--- @include blocked-lanes
--- @include is-after
local function first_waiter(limiter)
  local capacity, first, ticket = capacity_of(limiter), nil, nil
  local needs = redis.call('ZRANGEBYLEX', base .. 'waited-needs', '[' .. limiter .. '=', '(' .. limiter .. '>')
  for _, need in ipairs(needs) do
    if not capacity or tonumber(string.match(need, '%d+$')) <= capacity then
      local lane, score = unpack(redis.call('ZRANGE', base .. 'need-waiters:' .. need, 0, 0, 'WITHSCORES'))
      local at = tonumber(score)
      if lane and (not first or at < ticket or at == ticket and is_after(first, lane)) then
        first, ticket = lane, at
      end
    end
  end
  return first, ticket
end
local function wake(limiter)
  wake_lane(first_waiter(limiter))
end
local function leave(name, need)
  local waiters = base .. 'need-waiters:' .. need
  if redis.call('ZREM', waiters, name) == 0 then
    return false
  end
  if redis.call('EXISTS', waiters) == 0 then
    redis.call('ZREM', base .. 'waited-needs', need)
  end
  return true
end
local function leave_key(name, key)
  local has_left = leave(name, key_need(key))
  if has_left then
    wake_first(key_need(key))
  end
  return has_left
end
local function leave_waiters(name, key, needs, kept)
  if redis.call('EXISTS', base .. 'waited-needs') == 0 then
    return false
  end
  local has_left = false
  for limiter, amount in each_need(needs) do
    if limiter ~= kept and leave(name, limiter .. '=' .. amount) then
      has_left = true
      wake(limiter)
    end
  end
  return kept ~= 'key' and leave_key(name, key) or has_left
end
local function wait_for(name, refused, pass, time)
  for _, need in ipairs(refused) do
    redis.call('ZADD', base .. 'need-waiters:' .. need, 'NX', pass, name)
    redis.call('ZADD', base .. 'waited-needs', '0', need)
  end
  block_lane(name, pass)
  local state = base .. 'turn-state'
  if time and time > (tonumber(redis.call('HGET', state, 'time')) or -1) then
    redis.call('HSET', state, 'time', time)
  end
end
`,
  time: `local function whole(number)
  return string.format('%.0f', number)
end
local function micros()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
local read_millis
local function millis()
  read_millis = read_millis or math.floor(micros() / 1000)
  return read_millis
end
`,
  'token-bucket': `local function tokens_in(stored, now, max, per)
  local tokens, at = string.match(stored or '', '^(%S+) (%S+)$')
  if not tokens then
    return max
  end
  return math.min(max, tokens + math.max(0, now - at) * max / per)
end
local function whole_tokens(tokens)
  return math.floor(tokens + 1e-6)
end
local function stored_bucket(tokens, now)
  return string.format('%.9f %.3f', tokens, now)
end
`,
  turns: `--- @include give-back
--- @include leave-lane
--- @include forget-turns
local MAX_LANES = 32
local LAST_PASS = 0x100000000
local function take_head(name)
  local active = base .. 'active'
  local id = redis.call('RPOPLPUSH', lane_list(base, name), active)
  if not id then
    id = redis.call('ZPOPMIN', lane_priorities(base, name))[1]
    if not id then
      redis.call('ZREM', base .. 'turns', name)
      return nil
    end
    redis.call('LPUSH', active, id)
  end
  note_left_lane(name, 1)
  return id
end
local function take_turn(obstacles)
  local turns, state = base .. 'turns', base .. 'turn-state'
  for _ = 1, MAX_LANES do
    local name, pass = unpack(redis.call('ZRANGE', turns, 0, 0, 'WITHSCORES'))
    if name and tonumber(pass) >= LAST_PASS then
      limited().begin_again()
      name, pass = unpack(redis.call('ZRANGE', turns, 0, 0, 'WITHSCORES'))
    end
    if not name then
      return nil, false
    end
    pass = tonumber(pass)
    if obstacles.has_others then
      local own = math.max(tonumber(redis.call('HGET', state, 'pass')) or pass, pass - 1)
      if own <= pass then
        redis.call('HSET', state, 'pass', own + 1)
        return nil, true
      end
    end
    local _, needs = split_lane(name)
    local turn = (needs or obstacles.limits_lanes) and limited().open_turn(name, pass, obstacles) or nil
    local is_empty = false
    if not turn or not limited().holds_up(turn) then
      local id = take_head(name)
      local lane = id and redis.call('HGET', base .. id, 'lane')
      if lane and turn then
        return id, false, limited().end_turn(turn, id, lane, obstacles)
      elseif lane then
        redis.call('ZADD', turns, pass + 1 / lane_weight(lane), name)
        return id, false, true
      elseif id then
        redis.call('LPOP', base .. 'active')
      end
      is_empty = not id
    end
    if turn then
      limited().end_idle_turn(turn, is_empty)
    end
    if is_empty and not obstacles.has_others and redis.call('EXISTS', base .. 'lanes') == 0 then
      return nil, false
    end
  end
  return nil, false
end
local function start_next(features, now)
  if not features or features % 2 == 0 then
    features = read_features()
  end
  local wait, prioritized, turns, lanes = base .. 'wait', base .. 'prioritized', base .. 'turns', base .. 'lanes'
  local obstacles
  for _ = 1, MAX_LANES do
    obstacles = read_obstacles(features)
    if obstacles.has_times then
      limited().resume_due(now)
    end
    local id, is_turn_of_others, takes_turns_on = take_turn(obstacles)
    if id then
      local is_last = obstacles.is_counted and not takes_turns_on
      local delayed, times = base .. 'delayed', base .. 'lane-times'
      return id, is_last and redis.call('EXISTS', turns, wait, prioritized, delayed, times) == 0
    end
    local remaining = not is_turn_of_others and redis.call('EXISTS', turns, lanes, lanes)
    if remaining == 0 or remaining == 1 and not obstacles.has_others then
      forget_turns(base)
    elseif remaining == 3 then
      redis.call('ZADD', base .. 'marker', '0', '0')
    end
    id = redis.call('RPOPLPUSH', wait, base .. 'active')
    local lane = id and obstacles.is_counted and redis.call('HGET', base .. id, 'lane')
    if not lane then
      return id, not id and remaining and remaining ~= 3, not id and obstacles.is_counted
    end
    limited().return_stray(id, lane, is_turn_of_others)
  end
  redis.call('ZADD', base .. 'marker', '0', '0')
  return nil, false, obstacles.is_counted
end
`,
  'unique-keys': `--- @include time
--- @include decode-json
--- @include key-owner
--- @include matching-rule
--- @include leave-place
--- @include lock
local NAMED_SETS = { 'scheduled', 'retrying', 'completed', 'dead', 'cancelled', 'expired' }
local function status_of(id)
  if redis.call('EXISTS', base .. id) == 0 then
    return ''
  end
  for _, set in ipairs(NAMED_SETS) do
    if redis.call('ZSCORE', base .. set, id) then
      return set
    end
  end
  return is_running(base .. id) and 'active' or 'waiting'
end
local function has_started(id)
  return tonumber(redis.call('HGET', base .. id, 'ats') or '0') > 0
end
local function certain_end(id, now)
  if is_running(base .. id) then
    return nil
  end
  local expires_at = tonumber(redis.call('ZSCORE', base .. 'expiries', id) or now + 1)
  if expires_at <= now and not has_started(id) then
    return 'expired'
  end
  local rules = {}
  for i, text in ipairs(redis.call('HVALS', base .. 'cancel-rules')) do
    rules[i] = decode_json(text)
  end
  return #rules > 0 and matching_rule(base, rules, id) and 'cancelled' or nil
end
local function postpone(id, wanted)
  local score = redis.call('ZSCORE', base .. 'delayed', id)
  local enqueued_at, options = unpack(redis.call('HMGET', base .. id, 'timestamp', 'opts'))
  local moved, delay = wanted.starts_at - math.floor(score / DELAYED_STEP), wanted.starts_at - enqueued_at
  if moved <= 0 or wanted.max_delay > 0 and delay >= wanted.max_delay then
    return false
  end
  change_due(base, id, wanted.starts_at, 'scheduled')
  local changed = cjson.decode(options)
  changed.delay = delay
  redis.call('HSET', base .. id, 'delay', whole(delay), 'opts', cjson.encode(changed))
  redis.call('ZADD', base .. 'expiries', 'XX', 'INCR', whole(moved), id)
  return true
end
local function wanted_key(task, now)
  local span, on_conflict, starts_at, max_delay, key = string.match(task.unique, '^(%S+) (%a) (%d+) (%d+) (.*)$')
  return {
    key = key,
    span = tonumber(span) and whole(now + span) or span,
    on_conflict = on_conflict,
    starts_at = tonumber(starts_at),
    max_delay = tonumber(max_delay),
  }
end
local function resolve_conflict(task)
  local now = millis()
  local wanted = wanted_key(task, now)
  task.wanted = wanted
  local entry = redis.call('HGET', base .. 'unique-keys', wanted.key)
  local other = entry and key_owner(base, entry, now)
  if not other then
    return nil
  end
  local other_span = tonumber(string.match(entry, '^%S+ (%S+)'))
  local ending = certain_end(other, now)
  if ending and not other_span then
    return nil
  end
  if wanted.on_conflict == 'e' then
    return { 'taken', other, '' }
  end
  local status, action = status_of(other), 'existing'
  local waits = status == 'waiting' or status == 'scheduled'
  if waits and not ending and not has_started(other) then
    if wanted.on_conflict == 'r' then
      task.replaced, task.replaced_bytes = other, stored_bytes_of(base .. other)
      return nil
    end
    if wanted.on_conflict == 'x' and status == 'scheduled' and postpone(other, wanted) then
      action = 'extended'
      if other_span and tonumber(wanted.span) then
        redis.call('HSET', base .. 'unique-keys', wanted.key, (string.gsub(entry, ' %S+', ' ' .. wanted.span, 1)))
      end
    end
  end
  if ending == 'cancelled' and (waits or status == 'retrying') then
    status = ending
  end
  if task.record then
    remember_other(task, action, other, status)
  end
  return { action, other, status }
end
local function take_key(task)
  redis.call('HSET', base .. 'unique-keys', task.wanted.key, task.id .. ' ' .. task.wanted.span)
end
local function delete_replaced(task)
  local id = task.replaced
  write_waiting()
  local place = delete_waiting_task(id)
  redis.call('ZREM', base .. 'expiries', id)
  redis.call('XADD', base .. 'events', '*', 'event', 'removed', 'jobId', id, 'prev', place or 'unknown')
  stored_bytes = nil
end
`,
  unmark: `local has_marks
local function unmark(id)
  local own, others = base .. 'unrenewed', base .. 'stalled'
  if has_marks == nil then
    has_marks = redis.call('EXISTS', own, others) > 0
  end
  if has_marks then
    redis.call('SREM', own, id)
    redis.call('SREM', others, id)
  end
end
`,
} as const

/** Returns an include with those that it asks for. */
export const luaInclude = (name: keyof typeof INCLUDES): string => withIncludes(INCLUDES[name], INCLUDES)

/**
 * Notes which of the tasks that a process has acknowledged are lost: they do not exist, and nothing shows that they were deleted. Three
 * things show that: the task was deleted soon after its enqueue, an event of the queue is about it, or the queue was obliterated, which
 * deletes the events and keeps the totals. If tasks are missing, the script reads all events of the queue.
 */
export const noteLostScript = luaScript<
  'totals' | 'recentlyRemoved' | 'events' | 'lostTasks',
  'base' | 'process' | 'keptMs',
  [accepted: number, lost: string[]]
>({
  name: 'note-lost',
  keys: ['totals', 'recentlyRemoved', 'events', 'lostTasks'],
  args: ['base', 'process', 'keptMs'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local totals, recentlyRemoved, events, lostTasks = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local base, process, keptMs = ARGV[1], ARGV[2], ARGV[3]
--- @include time
local accepted = tonumber(redis.call('HGET', totals, 'accepted') or '0')
if accepted > 0 and redis.call('EXISTS', events) == 0 then
  return { accepted, {} }
end
local missing = {}
for i = 4, #ARGV do
  local id, caller = string.match(ARGV[i], '^(%S+) ?(.*)$')
  local removed = id .. ' ' .. caller
  if
    redis.call('EXISTS', base .. id) == 0
    and not redis.call('ZSCORE', recentlyRemoved, removed)
    and not redis.call('ZSCORE', recentlyRemoved, removed .. ' r')
  then
    missing[id] = true
  end
end
if next(missing) == nil then
  return { accepted, {} }
end
for _, event in ipairs(redis.call('XRANGE', events, '-', '+')) do
  for i = 1, #event[2], 2 do
    if event[2][i] == 'jobId' then
      missing[event[2][i + 1]] = nil
    end
  end
end
local lost = {}
for id in pairs(missing) do
  if redis.call('HSETNX', lostTasks, id, process) == 1 then
    redis.call('HSET', lostTasks, 'newest', id .. ' ' .. whole(millis()))
  end
  if redis.call('HGET', lostTasks, id) == process then
    lost[#lost + 1] = id
  end
end
if #lost > 0 then
  redis.call('PEXPIRE', lostTasks, keptMs)
end
return { accepted, lost }
`,
})

/**
 * Counts the records of a queue's idempotency keys: adds records to the counts, and deletes the counts of expired records. The hash
 * expires together with the last record, so that it does not outlive the queue's producers.
 */
export const countIdempotencyRecordsScript = luaScript<'counts', never, number>({
  name: 'count-idempotency-records',
  keys: ['counts'],
  args: [],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local counts = KEYS[1]
local now = tonumber(redis.call('TIME')[1])
for i = 1, #ARGV, 2 do
  redis.call('HINCRBY', counts, ARGV[i], ARGV[i + 1])
end
local fields, records, last = redis.call('HGETALL', counts), 0, 0
for i = 1, #fields, 2 do
  local expires_at = tonumber(fields[i])
  if expires_at <= now then
    redis.call('HDEL', counts, fields[i])
  else
    records = records + fields[i + 1]
    last = math.max(last, expires_at)
  end
end
if last > 0 then
  redis.call('EXPIREAT', counts, last)
end
return records
`,
})

/**
 * Reads how much memory Redis uses, records that this producer is alive, and counts the producers that share what is left. In a cluster,
 * the reply describes the node that holds the key.
 */
export const readMemoryScript = luaScript<
  'producers',
  'producer' | 'silence',
  [info: string, producers: number, isNew: 0 | 1]
>({
  name: 'read-memory',
  keys: ['producers'],
  args: ['producer', 'silence'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local producers = KEYS[1]
local producer, silence = ARGV[1], ARGV[2]
--- @include time
local now = millis()
redis.call('ZREMRANGEBYSCORE', producers, '-inf', whole(now - silence))
local is_new = redis.call('ZADD', producers, whole(now), producer)
redis.call('PEXPIRE', producers, silence)
local info = redis.pcall('INFO', 'memory')
return { type(info) == 'string' and info or '', redis.call('ZCARD', producers), is_new }
`,
})

/**
 * Stores the circuit breakers that the catalogue of a worker contains.
 */
export const defineBreakersScript = luaScript<'stored', 'base' | 'replaces', void>({
  name: 'define-breakers',
  keys: ['stored'],
  args: ['base', 'replaces'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local stored = KEYS[1]
local base, replaces = ARGV[1], ARGV[2]
--- @include gates
local defined = {}
for i = 3, #ARGV, 2 do
  defined[ARGV[i]] = true
  if replaces == '1' or redis.call('HEXISTS', stored, ARGV[i]) == 0 then
    gates().define(ARGV[i], ARGV[i + 1])
  end
end
if replaces == '1' then
  for _, service in ipairs(redis.call('HKEYS', stored)) do
    if not defined[service] then
      gates().remove(service)
    end
  end
end
`,
})

/**
 * Records that a consumer has read a cancel rule.
 */
export const acknowledgeRuleScript = luaScript<'known', 'consumer' | 'keepMs', void>({
  name: 'acknowledge-rule',
  keys: ['known'],
  args: ['consumer', 'keepMs'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local known = KEYS[1]
local consumer, keepMs = ARGV[1], ARGV[2]
redis.call('SADD', known, consumer)
redis.call('PEXPIRE', known, keepMs)
`,
})

/**
 * Begins one of the bulk canceller's passes through a queue. If there are more rules than one pass takes, each pass selects a random
 * subset.
 */
export const beginPassScript = luaScript<
  'leader' | 'cancelRules' | 'cancelReturned' | 'cancelPass',
  'fencing' | 'pass',
  [now: number, rules: string[]] | null
>({
  name: 'begin-pass',
  keys: ['leader', 'cancelRules', 'cancelReturned', 'cancelPass'],
  args: ['fencing', 'pass'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local leader, cancelRules, cancelReturned, cancelPass = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local fencing, pass = ARGV[1], ARGV[2]
--- @include time
--- @include fence
local RULES_PER_PASS = 50
if is_deposed(leader, fencing) then
  return false
end
local found = redis.call('HRANDFIELD', cancelRules, RULES_PER_PASS, 'WITHVALUES')
if #found == 0 then
  return false
end
local rules = {}
for i = 2, #found, 2 do
  rules[#rules + 1] = found[i]
end
redis.call('DEL', cancelReturned, cancelPass)
redis.call('HSET', cancelPass, 'id', pass)
return { millis(), rules }
`,
})

/**
 * Examines one page of a queue's unfinished tasks, and ends the waiting tasks that match a cancel rule.
 */
export const cancelPageScript = luaScript<
  'leader' | 'active' | 'delayed' | 'prioritized' | 'lanes' | 'wait' | 'endReply',
  'fencing' | 'base' | 'progress' | 'rulesText' | 'place' | 'from' | 'before' | 'limit' | 'request',
  [from: string, before: string, matched: number[], ended: string[]] | null
>({
  name: 'cancel-page',
  keys: ['leader', 'active', 'delayed', 'prioritized', 'lanes', 'wait', 'endReply'],
  args: ['fencing', 'base', 'progress', 'rulesText', 'place', 'from', 'before', 'limit', 'request'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local leader, active, delayed, prioritized, lanes, wait, endReply = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local fencing, base, progress, rulesText, place, from, before, limit, request = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9]
--- @include fence
--- @include stored-reply
--- @include cancel-in-place
--- @include cancel-in-lanes
local function scan(most)
  if place == 'active' then
    return count_in_active(active, from, before, most)
  elseif place == 'wait' then
    return cancel_in_list(wait, place, from, before, most)
  elseif place == 'lanes' then
    return cancel_in_lanes(lanes, from, before, most)
  end
  return cancel_in_set(place == 'delayed' and delayed or prioritized, place, from, before, most)
end
local earlier = stored_reply(endReply, request)
if earlier then
  return earlier
end
if is_deposed(leader, fencing) then
  return false
end
open_rules(decode_json(rulesText))
local next_from, next_before = scan(tonumber(limit))
note_drained_by_ends()
local page = { tostring(next_from), next_before, matched, ended }
if #ended > 0 then
  store_reply(endReply, request, page, REPLY_KEPT_MS)
end
return page
`,
})

/**
 * Cancels one task: ends it if no worker is running it, and otherwise asks the worker to stop it.
 */
export const cancelTaskScript = luaScript<
  'job' | 'completed' | 'failed' | 'waitingChildren' | 'cancelling' | 'cancelReply',
  'base' | 'id' | 'now' | 'stoppable' | 'reason' | 'record' | 'channel' | 'by' | 'request' | 'repeats',
  [answer: CancelAnswer, task: string]
>({
  name: 'cancel-task',
  keys: ['job', 'completed', 'failed', 'waitingChildren', 'cancelling', 'cancelReply'],
  args: ['base', 'id', 'now', 'stoppable', 'reason', 'record', 'channel', 'by', 'request', 'repeats'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local job, completed, failed, waitingChildren, cancelling, cancelReply = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local base, id, now, stoppable, reason, record, channel, by, request, repeats = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10]
--- @include stored-reply
--- @include leave-place
--- @include end-without-run
--- @include lock
local CANCEL_REPLY_KEPT_MS = 60000
local function without_request(answer)
  redis.call('HDEL', cancelling, id)
  return { answer, '' }
end
local function replied(answer, name)
  store_reply(cancelReply, request, { answer, name }, CANCEL_REPLY_KEPT_MS)
  return { answer, name }
end
local function end_waiting()
  if is_running(job) or redis.call('ZSCORE', waitingChildren, id) then
    return false
  end
  local task = read_waiting_task(id)
  local place = take_out(id)
  if not place then
    return false
  end
  end_waiting_task(task, place, 'cancelled', { at = now, reason = reason, record = record })
  note_drained_by_ends()
  return true
end
local earlier = stored_reply(cancelReply, request)
if earlier then
  return earlier
end
if repeats == '1' and redis.call('HEXISTS', cancelling, id) == 0 then
  return { 'already_ended', '' }
end
local name, data = unpack(redis.call('HMGET', job, 'name', 'data'))
if not name and redis.call('EXISTS', job) == 0 then
  return without_request('not_found')
end
if redis.call('ZSCORE', completed, id) or redis.call('ZSCORE', failed, id) then
  return without_request('already_ended')
end
if end_waiting() then
  return replied('cancelled', name or '')
end
if stoppable ~= '1' then
  return { 'not_cancellable', '' }
end
local is_first = redis.call('HSETNX', cancelling, id, by) == 1
local retried = string.match(data or '', '^{"v":%d+,"retriedAt":(%d+),') or '0'
redis.call('PUBLISH', channel, id .. ' ' .. retried .. ' ' .. by)
return is_first and replied('cancelling', '') or { 'cancelling', '' }
`,
})

/**
 * Deletes the cancel rules for which a whole pass did not find a matching task.
 */
export const forgetRulesScript = luaScript<
  'leader' | 'cancelRules' | 'cancelReturned' | 'cancelPass',
  'fencing' | 'pass' | 'base' | 'progress' | 'rulesText' | 'keepMs' | 'groupKeepMs' | 'limit',
  0 | 1
>({
  name: 'forget-rules',
  keys: ['leader', 'cancelRules', 'cancelReturned', 'cancelPass'],
  args: ['fencing', 'pass', 'base', 'progress', 'rulesText', 'keepMs', 'groupKeepMs', 'limit'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local leader, cancelRules, cancelReturned, cancelPass = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local fencing, pass, base, progress, rulesText, keepMs, groupKeepMs, limit = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8]
--- @include time
--- @include fence
--- @include matching-rule
if is_deposed(leader, fencing) or redis.call('HGET', cancelPass, 'id') ~= pass then
  return 1
end
local rules = decode_json(rulesText)
for _, id in ipairs(redis.call('SPOP', cancelReturned, limit)) do
  local i = matching_rule(base, rules, id)
  if i then
    redis.call('HSET', cancelPass, rules[i].id, 'matches')
  end
end
if redis.call('EXISTS', cancelReturned) == 1 then
  return 0
end
local now = whole(millis())
for _, rule in ipairs(rules) do
  if redis.call('HEXISTS', cancelPass, rule.id) == 0 and redis.call('HDEL', cancelRules, rule.id) == 1 then
    redis.call('HSET', progress .. rule.id, 'doneAt', now)
    redis.call('PEXPIRE', progress .. rule.id, rule.group and groupKeepMs or keepMs)
  end
end
if redis.call('EXISTS', cancelRules) == 0 then
  redis.call('DEL', cancelPass)
end
return 1
`,
})

/**
 * Reads the stored reply to a request to cancel one task.
 */
export const readCancelReplyScript = luaScript<'cancelReply', 'request', [answer: string, task: string] | null>({
  name: 'read-cancel-reply',
  keys: ['cancelReply'],
  args: ['request'],
  includes: INCLUDES,
  lua: `#!lua flags=no-writes
local cancelReply = KEYS[1]
local request = ARGV[1]
--- @include stored-reply
return stored_reply(cancelReply, request) or false
`,
})

/**
 * Reads the cancel rules for a consumer, and records that the consumer has read them.
 */
export const readRulesScript = luaScript<'cancelConsumers' | 'cancelRules', 'consumer' | 'silence', string[]>({
  name: 'read-rules',
  keys: ['cancelConsumers', 'cancelRules'],
  args: ['consumer', 'silence'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local cancelConsumers, cancelRules = KEYS[1], KEYS[2]
local consumer, silence = ARGV[1], ARGV[2]
--- @include time
local now = millis()
redis.call('ZADD', cancelConsumers, now, consumer)
redis.call('ZREMRANGEBYSCORE', cancelConsumers, '-inf', now - silence)
redis.call('PEXPIRE', cancelConsumers, silence)
return redis.call('HVALS', cancelRules)
`,
})

/**
 * Stores a cancel rule, and announces it to the queue's consumers. A second call with the same id stores nothing and returns the same
 * rule, even after the rule has been deleted. The rule of a drain is stored only while that drain is in force.
 */
export const storeRuleScript = luaScript<
  'cancelRules' | 'cancelConsumers' | 'progress' | 'cancelledGroup' | 'settings',
  'id' | 'rule' | 'limit' | 'trustedMs' | 'channel' | 'group' | 'drain',
  [rule: string, consumers: string[]] | 'full' | null
>({
  name: 'store-rule',
  keys: ['cancelRules', 'cancelConsumers', 'progress', 'cancelledGroup', 'settings'],
  args: ['id', 'rule', 'limit', 'trustedMs', 'channel', 'group', 'drain'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local cancelRules, cancelConsumers, progress, cancelledGroup, settings = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local id, rule, limit, trustedMs, channel, group, drain = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
--- @include time
local GROUP_REFUSED_S = 86400
if drain ~= '' then
  local current = redis.call('HGET', settings, 'drain')
  if not current or cjson.decode(current).command ~= drain then
    return false
  end
end
local now = millis()
local stored = redis.call('HGET', progress, 'rule')
if not stored then
  if redis.call('HLEN', cancelRules) >= tonumber(limit) then
    return 'full'
  end
  stored = rule .. ',"at":' .. whole(now) .. '}'
  redis.call('HSET', progress, 'rule', stored)
  redis.call('HSET', cancelRules, id, stored)
  if group ~= '' then
    redis.call('SET', cancelledGroup, id, 'EX', GROUP_REFUSED_S)
  end
  redis.call('PUBLISH', channel, id)
end
if drain ~= '' then
  redis.call('HSET', settings, 'cancelledDrain', drain)
end
return { stored, redis.call('ZRANGEBYSCORE', cancelConsumers, now - trustedMs, '+inf') }
`,
})

/**
 * Reads the clock of the server that holds a key.
 */
export const readTimeScript = luaScript<'anchor', never, [seconds: string, micros: string]>({
  name: 'read-time',
  keys: ['anchor'],
  args: [],
  includes: INCLUDES,
  lua: `#!lua flags=no-writes
local anchor = KEYS[1]
return redis.call('TIME')
`,
})

/**
 * Retries or deletes one page of the dead tasks that a request selects. The script also stores the position and the number of changed
 * tasks, so it may be sent again, also by another process, without changing a task twice.
 */
export const changeDeadPageScript = luaScript<
  'leader' | 'deadRequests' | 'progress' | 'set',
  | 'fencing'
  | 'base'
  | 'id'
  | 'action'
  | 'by'
  | 'filterText'
  | 'earliest'
  | 'latest'
  | 'rate'
  | 'keepMs'
  | 'afterCompensation',
  number | null
>({
  name: 'change-dead-page',
  keys: ['leader', 'deadRequests', 'progress', 'set'],
  args: [
    'fencing',
    'base',
    'id',
    'action',
    'by',
    'filterText',
    'earliest',
    'latest',
    'rate',
    'keepMs',
    'afterCompensation',
  ],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local leader, deadRequests, progress, set = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local fencing, base, id, action, by, filterText, earliest, latest, rate, keepMs, afterCompensation = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10], ARGV[11]
--- @include fence
--- @include matching-dead
--- @include rank-in-set
--- @include remove-ended
--- @include retry-dead
local CHANGED_AT_ONCE = 100
local EXAMINED_AT_ONCE = 500
local SAVED_S = 0.5
if is_deposed(leader, fencing) then
  return false
end
if redis.call('HEXISTS', deadRequests, id) == 0 then
  return 0
end
local filter, now = decode_json(filterText), millis()
local score, last, tokens, at = unpack(redis.call('HMGET', progress, 'score', 'last', 'tokens', 'tokensAt'))
local most = math.max(1, rate * SAVED_S)
tokens = math.min(most, tokens and tonumber(tokens) + math.max(0, now - tonumber(at)) * rate / 1000 or most)
local allowed = math.min(CHANGED_AT_ONCE, math.floor(tokens))
if allowed == 0 then
  return math.ceil((1 - tokens) * 1000 / rate)
end
local function retry(task)
  local stored, compensated = unpack(redis.call('HMGET', base .. task, 'retries', 'compensated'))
  if compensated and afterCompensation ~= '1' then
    return false
  end
  local retries = stored and decode_json(stored) or {}
  for _, each in ipairs(retries) do
    if each.request == id or each.copy then
      return false
    end
  end
  return retry_dead(task, retries, { at = now, by = by, request = id }, '')
end
local function delete(task)
  remove_ended_task(base, 'dead', task)
  return true
end
local change = action == 'retry' and retry or delete
local first = last and rank_in(set, score, last) or redis.call('ZCOUNT', set, '-inf', '(' .. earliest)
local beyond = redis.call('ZCOUNT', set, '-inf', latest)
local page = redis.call('ZRANGE', set, first, math.min(first + EXAMINED_AT_ONCE, beyond) - 1, 'WITHSCORES')
local changed, is_full = 0, false
for i = 1, #page, 2 do
  if matches_dead(base, filter, page[i]) then
    if changed == allowed then
      is_full = true
      break
    end
    if change(page[i]) then
      changed = changed + 1
    end
  end
  last, score = page[i], page[i + 1]
end
if changed > 0 then
  redis.call('HINCRBY', progress, 'changed', changed)
end
if not is_full and first + EXAMINED_AT_ONCE >= beyond then
  redis.call('HDEL', deadRequests, id)
  redis.call('HSET', progress, 'doneAt', whole(now))
  redis.call('PEXPIRE', progress, keepMs)
else
  redis.call(
    'HSET',
    progress,
    'score',
    score,
    'last',
    last,
    'tokens',
    tostring(tokens - changed),
    'tokensAt',
    whole(now)
  )
end
return 0
`,
})

/**
 * Counts a queue's dead tasks by fingerprint. Takes one command for each fingerprint and three more for each one that is returned,
 * whatever the number of tasks.
 */
export const countFingerprintsScript = luaScript<
  'fingerprints',
  'prefix' | 'limit',
  Array<[fingerprint: string, info: string, count: number, oldestAt: string, newestAt: string, newestId: TaskId]>
>({
  name: 'count-fingerprints',
  keys: ['fingerprints'],
  args: ['prefix', 'limit'],
  includes: INCLUDES,
  lua: `#!lua flags=no-writes
local fingerprints = KEYS[1]
local prefix, limit = ARGV[1], ARGV[2]
local kinds = {}
for _, fingerprint in ipairs(redis.call('HKEYS', fingerprints)) do
  local count = redis.call('ZCARD', prefix .. fingerprint)
  if count > 0 then
    kinds[#kinds + 1] = { fingerprint, count }
  end
end
table.sort(kinds, function(a, b)
  return a[2] > b[2] or a[2] == b[2] and a[1] < b[1]
end)
local found = {}
for i = 1, math.min(#kinds, tonumber(limit)) do
  local fingerprint, count = unpack(kinds[i])
  local set = prefix .. fingerprint
  local oldest, newest = redis.call('ZRANGE', set, 0, 0, 'WITHSCORES'), redis.call('ZRANGE', set, -1, -1, 'WITHSCORES')
  local info = redis.call('HGET', fingerprints, fingerprint)
  found[i] = { fingerprint, info, count, oldest[2], newest[2], newest[1] }
end
return found
`,
})

/**
 * Counts the dead tasks that match a filter, among a limited number of tasks. If the filter is empty, the script counts all tasks at once,
 * in O(log n).
 */
export const countMatchingDeadScript = luaScript<
  'set',
  'base' | 'filterText' | 'earliest' | 'latest' | 'score' | 'last' | 'scan',
  [matching: number, id: string, score: string]
>({
  name: 'count-matching-dead',
  keys: ['set'],
  args: ['base', 'filterText', 'earliest', 'latest', 'score', 'last', 'scan'],
  includes: INCLUDES,
  lua: `#!lua flags=no-writes
local set = KEYS[1]
local base, filterText, earliest, latest, score, last, scan = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
--- @include matching-dead
--- @include rank-in-set
local filter = decode_json(filterText)
if next(filter) == nil then
  return { redis.call('ZCOUNT', set, earliest, latest), '', '' }
end
local first = last == '' and redis.call('ZCOUNT', set, '-inf', '(' .. earliest) or rank_in(set, score, last)
local beyond = redis.call('ZCOUNT', set, '-inf', latest)
local page = redis.call('ZRANGE', set, first, math.min(first + scan, beyond) - 1, 'WITHSCORES')
local matching = 0
for i = 1, #page, 2 do
  if matches_dead(base, filter, page[i]) then
    matching = matching + 1
  end
end
if first + scan >= beyond then
  return { matching, '', '' }
end
return { matching, page[#page - 1], page[#page] }
`,
})

/**
 * Deletes one dead task.
 */
export const deleteTaskScript = luaScript<'job' | 'dead', 'base' | 'id', DeadTaskAnswer>({
  name: 'delete-task',
  keys: ['job', 'dead'],
  args: ['base', 'id'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local job, dead = KEYS[1], KEYS[2]
local base, id = ARGV[1], ARGV[2]
--- @include remove-ended
if redis.call('EXISTS', job) == 0 then
  return 'not_found'
end
if not redis.call('ZSCORE', dead, id) then
  return 'not_dead'
end
remove_ended_task(base, 'dead', id)
return 'done'
`,
})

/**
 * Lists a queue's requests to retry or delete dead tasks by filter, without those whose progress is no longer kept.
 */
export const listDeadRequestsScript = luaScript<
  'deadRequestIds',
  'prefix' | 'limit',
  Array<[request: string, changed: string, doneAt: string, stoppedBy: string]>
>({
  name: 'list-dead-requests',
  keys: ['deadRequestIds'],
  args: ['prefix', 'limit'],
  includes: INCLUDES,
  lua: `#!lua flags=no-writes
local deadRequestIds = KEYS[1]
local prefix, limit = ARGV[1], ARGV[2]
local found = {}
for _, id in ipairs(redis.call('LRANGE', deadRequestIds, 0, limit - 1)) do
  local fields = redis.call('HMGET', prefix .. id, 'request', 'changed', 'doneAt', 'stoppedBy')
  if fields[1] then
    found[#found + 1] = { fields[1], fields[2] or '0', fields[3] or '', fields[4] or '' }
  end
end
return found
`,
})

/**
 * Retries one dead task, or notes that a new task was enqueued in another queue in its place. A second call with the same request changes
 * nothing, and returns `done` again, unless ten other requests have retried the task in the meantime.
 */
export const retryTaskScript = luaScript<
  'job' | 'dead',
  'base' | 'id' | 'request' | 'by' | 'data' | 'copy' | 'afterCompensation',
  DeadTaskAnswer
>({
  name: 'retry-task',
  keys: ['job', 'dead'],
  args: ['base', 'id', 'request', 'by', 'data', 'copy', 'afterCompensation'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local job, dead = KEYS[1], KEYS[2]
local base, id, request, by, data, copy, afterCompensation = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
--- @include decode-json
--- @include retry-dead
local name, stored, compensated = unpack(redis.call('HMGET', job, 'name', 'retries', 'compensated'))
if not name then
  return 'not_found'
end
local retries = stored and decode_json(stored) or {}
for _, each in ipairs(retries) do
  if each.request == request then
    return 'done'
  end
end
if not redis.call('ZSCORE', dead, id) then
  return 'not_dead'
end
if compensated and afterCompensation ~= '1' then
  return 'compensated'
end
local entry = { at = millis(), by = by, request = request }
if copy ~= '' then
  entry.copy = copy
  add_retry(retries, entry)
  redis.call('HSET', job, 'retries', cjson.encode(retries))
  return 'done'
end
if not retry_dead(id, retries, entry, data) then
  return 'not_dead'
end
return 'done'
`,
})

/**
 * Finds the dead tasks that match a filter, newest first, among a limited number of tasks. A position is a place in the set's order, so
 * tasks that die or are retried between two pages do not move it. Examining a task takes Redis about 2 µs.
 */
export const searchDeadScript = luaScript<
  'set',
  'base' | 'filterText' | 'earliest' | 'latest' | 'score' | 'last' | 'limit' | 'scan',
  [ids: TaskId[], id: string, score: string]
>({
  name: 'search-dead',
  keys: ['set'],
  args: ['base', 'filterText', 'earliest', 'latest', 'score', 'last', 'limit', 'scan'],
  includes: INCLUDES,
  lua: `#!lua flags=no-writes
local set = KEYS[1]
local base, filterText, earliest, latest, score, last, limit, scan = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8]
--- @include matching-dead
--- @include rank-in-set
local READ_AT_ONCE = 100
local filter, most, scanned = decode_json(filterText), tonumber(limit), tonumber(scan)
local oldest = redis.call('ZCOUNT', set, '-inf', '(' .. earliest)
local rank = redis.call('ZCOUNT', set, '-inf', latest)
if last ~= '' then
  local after = rank_in(set, score, last)
  if redis.call('ZSCORE', set, last) == score then
    after = after - 1
  end
  rank = math.min(rank, after)
end
local found, examined, at_score, at_id = {}, 0, score, last
while rank > oldest and #found < most and examined < scanned do
  local page = redis.call('ZRANGE', set, math.max(oldest, rank - READ_AT_ONCE), rank - 1, 'WITHSCORES')
  for i = #page - 1, 1, -2 do
    if #found == most or examined == scanned then
      break
    end
    at_id, at_score = page[i], page[i + 1]
    examined, rank = examined + 1, rank - 1
    if matches_dead(base, filter, at_id) then
      found[#found + 1] = at_id
    end
  end
end
return { found, rank > oldest and at_id or '', at_score }
`,
})

/**
 * Stops a request to retry or delete dead tasks by filter. The leader changes each page of tasks in one script, which first looks for the
 * request, so no task is changed after this script has run. A second call changes nothing.
 */
export const stopDeadRequestScript = luaScript<
  'deadRequests' | 'progress',
  'id' | 'by' | 'keepMs',
  [request: string, changed: string, doneAt: string, stoppedBy: string] | null
>({
  name: 'stop-dead-request',
  keys: ['deadRequests', 'progress'],
  args: ['id', 'by', 'keepMs'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local deadRequests, progress = KEYS[1], KEYS[2]
local id, by, keepMs = ARGV[1], ARGV[2], ARGV[3]
--- @include time
local request, changed, doneAt, stoppedBy =
  unpack(redis.call('HMGET', progress, 'request', 'changed', 'doneAt', 'stoppedBy'))
if not request then
  return false
end
if not doneAt then
  redis.call('HDEL', deadRequests, id)
  doneAt, stoppedBy = whole(millis()), by
  redis.call('HSET', progress, 'doneAt', doneAt, 'stoppedBy', by)
  redis.call('PEXPIRE', progress, keepMs)
end
return { request, changed or '0', doneAt, stoppedBy or '' }
`,
})

/**
 * Stores a request to retry or delete dead tasks by filter. A second call with the same id stores nothing and returns the same request,
 * even after the request is done.
 */
export const storeDeadRequestScript = luaScript<
  'deadRequests' | 'progress' | 'deadRequestIds',
  'id' | 'request' | 'limit',
  string | null
>({
  name: 'store-dead-request',
  keys: ['deadRequests', 'progress', 'deadRequestIds'],
  args: ['id', 'request', 'limit'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local deadRequests, progress, deadRequestIds = KEYS[1], KEYS[2], KEYS[3]
local id, request, limit = ARGV[1], ARGV[2], ARGV[3]
--- @include time
local LISTED = 1000
local stored = redis.call('HGET', progress, 'request')
if stored then
  return stored
end
if redis.call('HLEN', deadRequests) >= tonumber(limit) then
  return false
end
stored = request .. ',"at":' .. whole(millis()) .. '}'
redis.call('HSET', progress, 'request', stored)
redis.call('HSET', deadRequests, id, stored)
redis.call('LPUSH', deadRequestIds, id)
redis.call('LTRIM', deadRequestIds, 0, LISTED - 1)
return stored
`,
})

/**
 * Applies a command to an API key's enqueue rate. An older command never overwrites a newer one.
 */
export const applyEnqueueRateScript = luaScript<'enqueueRates', 'apiKeyName' | 'sequence' | 'rate', void>({
  name: 'apply-enqueue-rate',
  keys: ['enqueueRates'],
  args: ['apiKeyName', 'sequence', 'rate'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local enqueueRates = KEYS[1]
local apiKeyName, sequence, rate = ARGV[1], ARGV[2], ARGV[3]
local newest = string.match(redis.call('HGET', enqueueRates, apiKeyName) or '0', '^%d+')
if tonumber(newest) < tonumber(sequence) then
  redis.call('HSET', enqueueRates, apiKeyName, sequence .. ' ' .. rate)
end
`,
})

/**
 * Gives an API process some of an API key's tokens. Grants the tokens that are needed now, or as many as there are. If there are fewer than
 * the process needs at least, grants none. Of the tokens that are then left, grants those that would be used soon, but at most half, so
 * that other processes get some, too. Once the bucket would be full again, Redis deletes it.
 */
export const leaseTokensScript = luaScript<
  'bucket',
  'max' | 'per' | 'needed' | 'least' | 'ahead',
  [granted: number, left: string]
>({
  name: 'lease-tokens',
  keys: ['bucket'],
  args: ['max', 'per', 'needed', 'least', 'ahead'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local bucket = KEYS[1]
local max, per, needed, least, ahead = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
--- @include time
--- @include token-bucket
local now = micros() / 1000
local tokens = tokens_in(redis.call('GET', bucket), now, tonumber(max), tonumber(per))
local available, granted = whole_tokens(tokens), 0
if available >= tonumber(least) then
  granted = math.min(tonumber(needed), available)
  granted = granted + math.min(tonumber(ahead), math.floor((available - granted) / 2))
  redis.call('SET', bucket, stored_bucket(tokens - granted, now), 'PX', per)
end
return { granted, string.format('%.9f', tokens - granted) }
`,
})

/**
 * Takes tokens of an API key in a queue, either all of them or none, or gives tokens back. The script that adds a task takes its token from
 * the same bucket (store/lua/includes/add/queue-limits.lua).
 */
export const takeTokensScript = luaScript<'apiKeyRates', 'apiKeyName' | 'max' | 'per' | 'wanted', number>({
  name: 'take-tokens',
  keys: ['apiKeyRates'],
  args: ['apiKeyName', 'max', 'per', 'wanted'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local apiKeyRates = KEYS[1]
local apiKeyName, max, per, wanted = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
--- @include time
--- @include token-bucket
local now = micros() / 1000
local tokens = tokens_in(redis.call('HGET', apiKeyRates, apiKeyName), now, tonumber(max), tonumber(per))
if whole_tokens(tokens) < tonumber(wanted) then
  return math.ceil((wanted - tokens) * per / max)
end
redis.call('HSET', apiKeyRates, apiKeyName, stored_bucket(math.min(max, tokens - wanted), now))
return 0
`,
})

/**
 * Adds what running attempts have reported to the stream of their queue's events. If an attempt has lost its lock, its events are dropped.
 * A call that is sent again changes nothing. Runs even if Redis is full: the stream has a bound, and its oldest events make room.
 */
export const writeEventsScript = luaScript<'eventBatch', 'base' | 'number' | 'tasks' | 'maxLogs', void>({
  name: 'write-events',
  keys: ['eventBatch'],
  args: ['base', 'number', 'tasks', 'maxLogs'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local eventBatch = KEYS[1]
local base, number, tasks, maxLogs = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
--- @include lock
local REMEMBERED_MS = 60000
if redis.call('GET', eventBatch) == number then
  return
end
redis.call('SET', eventBatch, number, 'PX', REMEMBERED_MS)
local function is_kept(line, job)
  return string.sub(line, 1, 13) ~= '{"type":"log"'
    or redis.call('EXISTS', job) == 0
    or redis.call('HINCRBY', job, 'logLines', 1) <= tonumber(maxLogs)
end
for _, task in ipairs(cjson.decode(tasks)) do
  local id, token, events = unpack(task)
  if owns_lock(base .. id, token) then
    local count
    for line in string.gmatch(events, '[^\\n]+') do
      if not count then
        count = line
      elseif is_kept(line, base .. id) then
        redis.call('XADD', base .. 'task-events', 'MAXLEN', '~', count, '*', 'id', id, 'event', line)
      end
    end
  end
end
`,
})

/**
 * Announces a command, after its queue settings, if it has any, have been applied. Workers read the settings again when the revision
 * has changed.
 */
export const announceCommandScript = luaScript<
  'unapplied' | 'settingsRevision',
  'id' | 'hasChanged' | 'channel' | 'message',
  void
>({
  name: 'announce-command',
  keys: ['unapplied', 'settingsRevision'],
  args: ['id', 'hasChanged', 'channel', 'message'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local unapplied, settingsRevision = KEYS[1], KEYS[2]
local id, hasChanged, channel, message = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
if hasChanged == '1' then
  redis.call('ZREM', unapplied, id)
  redis.call('INCR', settingsRevision)
end
redis.call('PUBLISH', channel, message)
`,
})

/**
 * Applies a command to its queue's settings. An older command never overwrites a newer one, whichever is applied first. Pause and resume
 * have the same effect as BullMQ's own. A change that may let tasks start adds the marker, because workers that got no task before are
 * waiting for the marker.
 */
export const applySettingsScript = luaScript<'settings' | 'meta' | 'limiter', 'base' | 'sequence' | 'mark', void>({
  name: 'apply-settings',
  keys: ['settings', 'meta', 'limiter'],
  args: ['base', 'sequence', 'mark'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local settings, meta, limiter = KEYS[1], KEYS[2], KEYS[3]
local base, sequence, mark = ARGV[1], ARGV[2], ARGV[3]
--- @include pausing
--- @include gates
--- @include derive-limits
local function is_newest(name)
  if tonumber(redis.call('HGET', settings, 'sequence:' .. name) or '0') >= tonumber(sequence) then
    return false
  end
  redis.call('HSET', settings, 'sequence:' .. name, sequence)
  return true
end
local function store(hash, name, value)
  if value == '' then
    redis.call('HDEL', hash, name)
  else
    redis.call('HSET', hash, name, value)
  end
end
local lifted = false
local set = {}
function set.paused(value)
  if value ~= '' then
    pause_queue()
    return
  end
  lifted = true
  while take_back_jobs() do
  end
  resume_queue()
end
function set.concurrency(value)
  lifted = true
  store(meta, 'concurrency', value)
end
function set.rate(value)
  lifted = true
  if value ~= '' then
    local max, duration = string.match(value, '^(%d+)/(%d+)$')
    redis.call('HSET', meta, 'max', max, 'duration', duration)
  elseif redis.call('GET', limiter) == mark then
    redis.call('HSET', meta, 'max', mark, 'duration', 1)
  else
    redis.call('HDEL', meta, 'max', 'duration')
  end
end
local fields_of_keys, sets_others = {}, false
for i = 4, #ARGV, 2 do
  local name, value = ARGV[i], ARGV[i + 1]
  if is_newest(name) then
    local service = string.match(name, '^breaker:(.*)$')
    if service then
      local given = cjson.decode(value)
      gates().set(service, given.mode, given.by, given.settings)
    elseif set[name] then
      set[name](value)
    else
      store(settings, name, value)
    end
    local field = string.match(name, '^keyLimit:(.*)$')
    local key = field and string.match(field, '^%a+:(.*)$')
    if key then
      fields_of_keys[field] = key
    end
    sets_others = sets_others or field and not key or string.find(name, '^capacity:') ~= nil
  end
end
if sets_others or next(fields_of_keys) then
  if sets_others or not derive_limits_of_keys(fields_of_keys) then
    derive_limits()
  end
end
if lifted and redis.call('HEXISTS', meta, 'paused') == 0 then
  wake_workers()
end
`,
})

/**
 * Removes a worker that has closed from the fleet.
 */
export const leaveFleetScript = luaScript<'heartbeats', 'base' | 'id', 0 | 1>({
  name: 'leave-fleet',
  keys: ['heartbeats'],
  args: ['base', 'id'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local heartbeats = KEYS[1]
local base, id = ARGV[1], ARGV[2]
--- @include forget-worker
return forget_worker(base, id, millis()) and 1 or 0
`,
})

/**
 * Reads one fleet command, or one page of the newest commands.
 */
export const readCommandsScript = luaScript<
  'commands' | 'heartbeats',
  'base' | 'id' | 'before' | 'limit',
  [now: string, last: string, ...commands: Array<[id: string, fields: string[], seen: string[]]>]
>({
  name: 'read-commands',
  keys: ['commands', 'heartbeats'],
  args: ['base', 'id', 'before', 'limit'],
  includes: INCLUDES,
  lua: `#!lua flags=no-writes
local commands, heartbeats = KEYS[1], KEYS[2]
local base, id, before, limit = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
--- @include time
local ids = { id, '' }
if id == '' then
  ids = redis.call('ZREVRANGEBYSCORE', commands, before, '-inf', 'WITHSCORES', 'LIMIT', 0, limit)
end
local found = { whole(millis()), ids[#ids] or '' }
for at = 1, #ids, 2 do
  local fields = redis.call('HGETALL', base .. 'command:' .. ids[at])
  if #fields > 0 then
    local seen = {}
    for i = 1, #fields, 2 do
      local worker = fields[i + 1] == 'pending' and string.match(fields[i], '^response:(.*)$')
      if worker then
        seen[#seen + 1] = worker
        seen[#seen + 1] = redis.call('ZSCORE', heartbeats, worker) or '0'
      end
    end
    found[#found + 1] = { ids[at], fields, seen }
  end
end
return found
`,
})

/**
 * Reads one page of the registered workers. A worker that is registered throughout the scan is on at least one page.
 */
export const readWorkersScript = luaScript<
  'heartbeats',
  'base' | 'silence' | 'slots' | 'cursor' | 'count',
  [next: string, now: string, ...workers: string[]]
>({
  name: 'read-workers',
  keys: ['heartbeats'],
  args: ['base', 'silence', 'slots', 'cursor', 'count'],
  includes: INCLUDES,
  lua: `#!lua flags=no-writes
local heartbeats = KEYS[1]
local base, silence, slots, cursor, count = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
--- @include time
local now = millis()
local page = redis.call('ZSCAN', heartbeats, cursor, 'COUNT', count)
local found = { page[1], whole(now) }
for i = 1, #page[2], 2 do
  local id, seenAt = page[2][i], page[2][i + 1]
  if tonumber(seenAt) > now - tonumber(silence) then
    local worker = redis.call('HMGET', base .. 'worker:' .. id, 'status', slots)
    if worker[1] then
      for _, value in ipairs({ id, seenAt, worker[1], worker[2] or '' }) do
        found[#found + 1] = value
      end
    end
  end
end
return found
`,
})

/**
 * Stores a worker's response to a command. Only a worker's first response is stored.
 */
export const respondToCommandScript = luaScript<'command' | 'inbox', 'channel' | 'id' | 'worker' | 'outcome', void>({
  name: 'respond-to-command',
  keys: ['command', 'inbox'],
  args: ['channel', 'id', 'worker', 'outcome'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local command, inbox = KEYS[1], KEYS[2]
local channel, id, worker, outcome = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
--- @include time
redis.call('ZREM', inbox, id)
if redis.call('HGET', command, 'response:' .. worker) ~= 'pending' then
  return
end
redis.call('HSET', command, 'response:' .. worker, outcome .. ',"at":' .. whole(millis()) .. '}')
redis.call('PUBLISH', channel, id)
`,
})

/**
 * Stores a fleet command, and adds it to the inboxes of the workers that it concerns. Also removes up to 200 old commands.
 */
export const storeCommandScript = luaScript<
  'command' | 'commands' | 'unapplied' | 'logLevel',
  'base' | 'id' | 'spec' | 'by' | 'changesSettings' | 'keepMs' | 'keepAtMost' | 'level' | 'levelMs' | 'cancels',
  [sequence: string, at: string] | null
>({
  name: 'store-command',
  keys: ['command', 'commands', 'unapplied', 'logLevel'],
  args: ['base', 'id', 'spec', 'by', 'changesSettings', 'keepMs', 'keepAtMost', 'level', 'levelMs', 'cancels'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local command, commands, unapplied, logLevel = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local base, id, spec, by, changesSettings, keepMs, keepAtMost, level, levelMs, cancels = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10]
--- @include time
local stored = redis.call('HMGET', command, 'spec', 'sequence', 'at')
if stored[1] then
  if stored[1] ~= spec then
    return false
  end
  return { stored[2], stored[3] }
end
local now = micros()
local newest = redis.call('ZREVRANGE', commands, 0, 0, 'WITHSCORES')
local sequence = math.max(now, tonumber(newest[2] or '0') + 1)
local at = whole(math.floor(now / 1000))
redis.call('HSET', command, 'spec', spec, 'by', by, 'at', at, 'sequence', whole(sequence))
if cancels == '1' then
  redis.call('HSET', command, 'cancels', '1')
end
for i = 11, #ARGV do
  local inbox = base .. 'inbox:' .. ARGV[i]
  redis.call('HSET', command, 'response:' .. ARGV[i], 'pending')
  redis.call('ZADD', inbox, whole(sequence), id)
  redis.call('PEXPIRE', inbox, keepMs)
end
redis.call('PEXPIRE', command, keepMs)
redis.call('ZADD', commands, whole(sequence), id)
if level == 'configured' then
  redis.call('DEL', logLevel)
elseif level ~= '' then
  local override = cjson.encode({ command = id, level = level, by = by, ['until'] = tonumber(at) + tonumber(levelMs) })
  redis.call('SET', logLevel, override, 'PX', levelMs)
end
if changesSettings == '1' then
  redis.call('ZADD', unapplied, whole(sequence), id)
end
local old = redis.call('ZRANGEBYSCORE', commands, '-inf', whole(now - tonumber(keepMs) * 1000), 'LIMIT', 0, 100)
local over = redis.call('ZCARD', commands) - tonumber(keepAtMost)
if over > 0 then
  for _, more in ipairs(redis.call('ZRANGE', commands, 0, math.min(over, 100) - 1)) do
    old[#old + 1] = more
  end
end
for _, each in ipairs(old) do
  redis.call('ZREM', commands, each)
  redis.call('ZREM', unapplied, each)
  redis.call('DEL', base .. 'command:' .. each)
end
return { whole(sequence), at }
`,
})

/**
 * Stores a worker's status, and returns the commands that are addressed to the worker. Also forgets up to twenty silent workers.
 */
export const workerHeartbeatScript = luaScript<
  'heartbeats' | 'worker' | 'inbox' | 'unapplied' | 'settingsRevision' | 'logLevel' | 'served',
  'base' | 'id' | 'status' | 'slots' | 'silence' | 'limit' | 'servedMs',
  [commands: string[], unapplied: string[], revision: string, logLevel: string]
>({
  name: 'worker-heartbeat',
  keys: ['heartbeats', 'worker', 'inbox', 'unapplied', 'settingsRevision', 'logLevel', 'served'],
  args: ['base', 'id', 'status', 'slots', 'silence', 'limit', 'servedMs'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local heartbeats, worker, inbox, unapplied, settingsRevision, logLevel, served = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local base, id, status, slots, silence, limit, servedMs = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
--- @include forget-worker
local now = millis()
redis.call('HSET', worker, 'status', status, 'slots', slots)
redis.call('PEXPIRE', worker, silence)
redis.call('ZADD', heartbeats, whole(now), id)
for i = 8, #ARGV do
  redis.call('ZADD', served, whole(now), ARGV[i])
end
redis.call('ZREMRANGEBYSCORE', served, '-inf', whole(now - tonumber(servedMs)))
local forgotten = whole(now - tonumber(silence))
for _, silent in ipairs(redis.call('ZRANGEBYSCORE', heartbeats, '-inf', forgotten, 'LIMIT', 0, 20)) do
  if not forget_worker(base, silent, now) then
    break
  end
end
local found = {}
for _, each in ipairs(redis.call('ZRANGE', inbox, 0, tonumber(limit) - 1)) do
  local command = redis.call('HMGET', base .. 'command:' .. each, 'spec', 'by', 'at')
  if command[1] then
    for _, value in ipairs({ each, command[1], command[2], command[3] }) do
      found[#found + 1] = value
    end
  else
    redis.call('ZREM', inbox, each)
  end
end
local revision, level = redis.call('GET', settingsRevision) or '', redis.call('GET', logLevel) or ''
return { found, redis.call('ZRANGE', unapplied, 0, 9), revision, level }
`,
})

/**
 * Adds members to a group. They are stored in the group's outbox, from which they are enqueued. Takes time in proportion to the number
 * of members in the request.
 */
export const addMembersScript = luaScript<
  'meta' | 'members' | 'queues' | 'requests' | 'outbox',
  'id' | 'channel' | 'queuesChannel' | 'key' | 'digest' | 'seal' | 'maxMembers' | 'maxQueues',
  number | [earlier: number] | 'missing' | 'reused' | 'sealed' | 'ended' | 'full' | 'busy' | 'queues'
>({
  name: 'add-members',
  keys: ['meta', 'members', 'queues', 'requests', 'outbox'],
  args: ['id', 'channel', 'queuesChannel', 'key', 'digest', 'seal', 'maxMembers', 'maxQueues'],
  includes: INCLUDES,
  lua: `#!lua
local meta, members, queues, requests, outbox = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local id, channel, queuesChannel, key, digest, seal, maxMembers, maxQueues = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8]
local FIRST = 9
local MAX_ENTRIES, MAX_BYTES = 10000, 33554432
--- @include group
local state, count, names, bytes = unpack(redis.call('HMGET', meta, 'state', 'count', 'queues', 'outboxBytes'))
if not state then
  return 'missing'
end
local known = redis.call('HGET', requests, key)
if known then
  local start, of = string.match(known, '^(%d+) (.*)$')
  return of == digest and { tonumber(start) } or 'reused'
end
if state ~= 'open' then
  return state
end
local added = (#ARGV - FIRST + 1) / 2
local start = tonumber(count)
if start + added > tonumber(maxMembers) then
  return 'full'
end
if redis.call('XLEN', outbox) >= MAX_ENTRIES or tonumber(bytes or 0) >= MAX_BYTES then
  return 'busy'
end
local positions, number, list = {}, 0, names or ''
for queue in string.gmatch(list, '%S+') do
  positions[queue], number = number, number + 1
end
for i = FIRST, #ARGV, 2 do
  if not positions[ARGV[i]] then
    list = (number == 0 and '' or list .. ' ') .. ARGV[i]
    positions[ARGV[i]], number = number, number + 1
  end
end
if number > tonumber(maxQueues) then
  return 'queues'
end
local now = millis()
local ttl = redis.call('PTTL', meta)
for i = FIRST, #ARGV, 2 do
  local member = start + (i - FIRST) / 2
  if positions[ARGV[i]] > 0 then
    redis.call('BITFIELD', queues, 'SET', 'u4', '#' .. whole(member), positions[ARGV[i]])
  end
  write_entry('m ' .. id .. ' ' .. whole(member) .. ' ' .. ARGV[i + 1])
end
redis.call('HSET', meta, 'count', whole(start + added), 'queues', list)
redis.call('HSET', requests, key, whole(start) .. ' ' .. digest)
redis.call('SETBIT', members, whole((start + added) * 3), 0)
for _, each in ipairs({ members, queues, requests, outbox }) do
  redis.call('PEXPIRE', each, ttl)
end
if list ~= (names or '') then
  redis.call('PUBLISH', queuesChannel, id)
end
if seal == '1' then
  seal_group(now)
end
return start
`,
})

/**
 * Cancels a group by request. A group that was cancelled or has ended stays as it is.
 */
export const cancelGroupScript = luaScript<
  'meta' | 'members' | 'queues' | 'requests' | 'outbox',
  'id' | 'channel' | 'by',
  [fields: string[], result: GroupResult | '']
>({
  name: 'cancel-group',
  keys: ['meta', 'members', 'queues', 'requests', 'outbox'],
  args: ['id', 'channel', 'by'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local meta, members, queues, requests, outbox = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local id, channel, by = ARGV[1], ARGV[2], ARGV[3]
--- @include group
local result
if redis.call('EXISTS', meta) == 1 then
  local now = millis()
  cancel_group(now, 'cancelled', by)
  result = end_if_complete(now)
end
return { redis.call('HGETALL', meta), result or '' }
`,
})

/**
 * Claims entries of a group's outbox, so that one process at a time delivers each of them. Takes time in proportion to their number.
 */
export const claimGroupEntriesScript = luaScript<
  'meta' | 'members' | 'queues' | 'requests' | 'outbox',
  'id' | 'channel' | 'limit' | 'idleMs' | 'cursor',
  [fresh: number, cursor: string, entries: Array<[id: string, text: string]>, result: GroupResult | '']
>({
  name: 'claim-group-entries',
  keys: ['meta', 'members', 'queues', 'requests', 'outbox'],
  args: ['id', 'channel', 'limit', 'idleMs', 'cursor'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local meta, members, queues, requests, outbox = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local id, channel, limit, idleMs, cursor = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local PAGES_AT_ONCE = 10
--- @include group
--- @include outbox-claims
if redis.call('EXISTS', outbox) == 0 then
  return { 0, '0-0', {}, '' }
end
local state, cancelled = unpack(redis.call('HMGET', meta, 'state', 'cancelledAt'))
local entries, fresh, next_cursor, left, result = {}, 0, '0-0', {}, nil
local function is_skipped(entry)
  local entry_id, text = unpack(entry)
  if not cancelled or string.sub(text, 1, 1) ~= 'm' then
    return false
  end
  if state ~= 'ended' then
    end_member(string.match(text, '^m %S+ (%d+) '), 'x')
  end
  redis.call('XACK', outbox, 'forwarders', entry_id)
  redis.call('XDEL', outbox, entry_id)
  redis.call('HINCRBY', meta, 'outboxBytes', -#text)
  return true
end
for _ = 1, cancelled and PAGES_AT_ONCE or 1 do
  local page = claim_fresh(limit)
  fresh = #page
  for _, entry in ipairs(page) do
    if not is_skipped(entry) then
      entries[#entries + 1] = entry
    end
  end
  if fresh == 0 or #entries > 0 then
    break
  end
end
if cancelled then
  result = end_if_complete(millis())
end
if idleMs ~= '' then
  next_cursor, left = claim_left(idleMs, cursor, limit)
end
for _, entry in ipairs(left) do
  entries[#entries + 1] = entry
end
return { fresh, next_cursor, entries, result or '' }
`,
})

/**
 * Creates a group. If the group exists, nothing changes.
 */
export const createGroupScript = luaScript<
  'meta',
  'by' | 'onError' | 'totalMs' | 'keepMs' | 'spareMs' | 'lines' | 'digest',
  [fields: string[], isNew: number] | 'reused'
>({
  name: 'create-group',
  keys: ['meta'],
  args: ['by', 'onError', 'totalMs', 'keepMs', 'spareMs', 'lines', 'digest'],
  includes: INCLUDES,
  lua: `#!lua
local meta = KEYS[1]
local by, onError, totalMs, keepMs, spareMs, lines, digest = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
--- @include time
local is_new = redis.call('EXISTS', meta) == 0
if is_new then
  local now = millis()
  redis.call('HSET', meta, 'state', 'open', 'by', by, 'onError', onError, 'keepMs', keepMs, 'digest', digest)
  redis.call('HSET', meta, 'createdAt', whole(now), 'timeoutAt', whole(now + totalMs), 'count', 0, 'ended', 0)
  if lines ~= '' then
    redis.call('HSET', meta, 'lines', lines)
  end
  redis.call('PEXPIRE', meta, whole(totalMs + spareMs))
else
  local known = redis.call('HGET', meta, 'digest')
  if known and known ~= digest then
    return 'reused'
  end
end
return { redis.call('HGETALL', meta), is_new and 1 or 0 }
`,
})

/**
 * Deletes delivered entries of a group's outbox, and the empty outbox itself. An entry that was deleted before is skipped, so a script
 * that is sent again does no harm.
 */
export const deleteGroupEntriesScript = luaScript<'meta' | 'outbox', never, void>({
  name: 'delete-group-entries',
  keys: ['meta', 'outbox'],
  args: [],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local meta, outbox = KEYS[1], KEYS[2]
for _, entry in ipairs(ARGV) do
  local stored = redis.call('XRANGE', outbox, entry, entry)[1]
  redis.call('XACK', outbox, 'forwarders', entry)
  if stored and redis.call('XDEL', outbox, entry) == 1 and redis.call('EXISTS', meta) == 1 then
    local text = stored[2][2]
    redis.call('HINCRBY', meta, 'outboxBytes', -#text)
    if string.sub(text, 1, 1) ~= 'm' then
      redis.call('HINCRBY', meta, 'owed', -1)
    end
  end
end
if redis.call('XLEN', outbox) == 0 then
  redis.call('DEL', outbox)
end
`,
})

/**
 * Records the ends of a group's members. Only the first end of each member counts, so that the script can be repeated. If the group
 * cancels its members on an error, the first error cancels the group in the same step. Takes constant time for each member.
 */
export const endMembersScript = luaScript<
  'meta' | 'members' | 'queues' | 'requests' | 'outbox',
  'id' | 'channel',
  [owed: number, result: GroupResult | ''] | null
>({
  name: 'end-members',
  keys: ['meta', 'members', 'queues', 'requests', 'outbox'],
  args: ['id', 'channel'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local meta, members, queues, requests, outbox = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local id, channel = ARGV[1], ARGV[2]
--- @include group
local state, count, on_error = unpack(redis.call('HMGET', meta, 'state', 'count', 'onError'))
if not state then
  return false
end
local result
if state ~= 'ended' then
  local now = millis()
  for i = 3, #ARGV, 2 do
    local member, letter = ARGV[i], ARGV[i + 1]
    local is_first = tonumber(member) < tonumber(count) and end_member(member, letter)
    if is_first and on_error == 'cancel' and (letter == 'd' or letter == 'e') then
      cancel_group(now, 'first_error', 'group ' .. id)
    end
  end
  result = end_if_complete(now)
end
return { tonumber(redis.call('HGET', meta, 'owed') or 0), result or '' }
`,
})

/**
 * Reads how some members of a group have ended, and to which queues they belong, all as of the same moment.
 */
export const readMembersScript = luaScript<
  'meta' | 'members' | 'queues',
  'from' | 'limit',
  [fields: string[], ends: number[], queues: number[]]
>({
  name: 'read-members',
  keys: ['meta', 'members', 'queues'],
  args: ['from', 'limit'],
  includes: INCLUDES,
  lua: `#!lua flags=no-writes
local meta, members, queues = KEYS[1], KEYS[2], KEYS[3]
local from, limit = ARGV[1], ARGV[2]
local ends, positions = {}, {}
local last = math.min(tonumber(redis.call('HGET', meta, 'count') or 0), from + limit) - 1
for member = from, last do
  local at = string.format('#%.0f', member)
  ends[#ends + 1] = redis.call('BITFIELD_RO', members, 'GET', 'u3', at)[1]
  positions[#positions + 1] = redis.call('BITFIELD_RO', queues, 'GET', 'u4', at)[1]
end
return { redis.call('HGETALL', meta), ends, positions }
`,
})

/**
 * Seals a group, so that it gets no further members.
 */
export const sealGroupScript = luaScript<
  'meta' | 'members' | 'queues' | 'requests' | 'outbox',
  'id' | 'channel',
  [fields: string[], result: GroupResult | '']
>({
  name: 'seal-group',
  keys: ['meta', 'members', 'queues', 'requests', 'outbox'],
  args: ['id', 'channel'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local meta, members, queues, requests, outbox = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local id, channel = ARGV[1], ARGV[2]
--- @include group
local result
if redis.call('EXISTS', meta) == 1 then
  local now = millis()
  seal_group(now)
  result = end_if_complete(now)
end
return { redis.call('HGETALL', meta), result or '' }
`,
})

/**
 * Looks whether a group needs anything from the leader. Cancels the group if its total timeout has passed. Ends it if it was cancelled
 * too long ago; its remaining members then count as removed.
 */
export const visitGroupScript = luaScript<
  'meta' | 'members' | 'queues' | 'requests' | 'outbox',
  'id' | 'channel' | 'forcedEndMs',
  [state: GroupPhase, timeoutAt: string, entries: number, result: GroupResult | ''] | null
>({
  name: 'visit-group',
  keys: ['meta', 'members', 'queues', 'requests', 'outbox'],
  args: ['id', 'channel', 'forcedEndMs'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local meta, members, queues, requests, outbox = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local id, channel, forcedEndMs = ARGV[1], ARGV[2], ARGV[3]
--- @include group
local state, timeout, cancelled, count, ended =
  unpack(redis.call('HMGET', meta, 'state', 'timeoutAt', 'cancelledAt', 'count', 'ended'))
if not state then
  return false
end
local result
if state ~= 'ended' then
  local now = millis()
  if not cancelled then
    if now >= tonumber(timeout) then
      cancel_group(now, 'group_timeout', 'group ' .. id)
    end
  elseif now >= cancelled + forcedEndMs then
    redis.call('HINCRBY', meta, 'r', count - ended)
    redis.call('HSET', meta, 'ended', count)
  end
  result = end_if_complete(now)
end
return { redis.call('HGET', meta, 'state'), timeout, redis.call('XLEN', outbox), result or '' }
`,
})

/**
 * Corrects the stored sums of a queue's unfinished tasks, and counts one repair. If anything was repaired since the sums were read, changes
 * nothing, because the same correction may have been made. O(1) for each API key.
 */
export const correctSumsScript = luaScript<'totals' | 'apiKeyTasks', 'drift' | 'bytes', 0 | 1>({
  name: 'correct-sums',
  keys: ['totals', 'apiKeyTasks'],
  args: ['drift', 'bytes'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local totals, apiKeyTasks = KEYS[1], KEYS[2]
local drift, bytes = ARGV[1], ARGV[2]
if tonumber(redis.call('HGET', totals, 'drift') or '0') ~= tonumber(drift) then
  return 0
end
redis.call('HINCRBY', totals, 'bytes', bytes)
for i = 3, #ARGV, 2 do
  if redis.call('HINCRBY', apiKeyTasks, ARGV[i], ARGV[i + 1]) <= 0 then
    redis.call('HDEL', apiKeyTasks, ARGV[i])
  end
end
redis.call('HINCRBY', totals, 'drift', 1)
return 1
`,
})

/**
 * Finds the entries in one page for which the status index differs from BullMQ's sets. An entry of a divided set is right only if exactly
 * one part contains it, with the same score. An entry of a part is wrong if the divided set does not have it. Examines every member that
 * is in the place throughout the scan. Takes one command for each member and part.
 */
export const findDriftScript = luaScript<
  'place' | 'divided',
  'base' | 'parts' | 'cursor' | 'count',
  [next: string, ...entries: string[]]
>({
  name: 'find-drift',
  keys: ['place', 'divided'],
  args: ['base', 'parts', 'cursor', 'count'],
  includes: INCLUDES,
  lua: `#!lua flags=no-writes
local place, divided = KEYS[1], KEYS[2]
local base, parts, cursor, count = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local page = redis.call('ZSCAN', place, cursor, 'COUNT', count)
local found = { page[1] }
local function report(id, score, attempts, stacks)
  for _, value in ipairs({ id, score, attempts or '', stacks or '' }) do
    found[#found + 1] = value
  end
end
local function is_indexed(id, score)
  local holders, is_same = 0, false
  for part in string.gmatch(parts, '%S+') do
    local in_part = redis.call('ZSCORE', base .. part, id)
    if in_part then
      holders = holders + 1
      is_same = tonumber(in_part) == tonumber(score)
    end
  end
  return holders == 1 and is_same
end
for i = 1, #page[2], 2 do
  local id, score = page[2][i], page[2][i + 1]
  if place ~= divided then
    if not redis.call('ZSCORE', divided, id) then
      report(id, '')
    end
  elseif not is_indexed(id, score) then
    local attempts, stacks = unpack(redis.call('HMGET', base .. id, 'atm', 'stacktrace'))
    report(id, redis.call('ZSCORE', divided, id), attempts, stacks)
  end
end
return found
`,
})

/**
 * Finds the dead tasks in one page that are not in the index of fingerprints.
 */
export const findUnindexedDeadScript = luaScript<
  'dead',
  'base' | 'cursor' | 'count',
  [next: string, tasks: Array<[id: string, reason: string, stacktrace: string]>]
>({
  name: 'find-unindexed-dead',
  keys: ['dead'],
  args: ['base', 'cursor', 'count'],
  includes: INCLUDES,
  lua: `#!lua flags=no-writes
local dead = KEYS[1]
local base, cursor, count = ARGV[1], ARGV[2], ARGV[3]
local page = redis.call('ZSCAN', dead, cursor, 'COUNT', count)
local found = {}
for i = 1, #page[2], 2 do
  local id = page[2][i]
  local fields = redis.call('HMGET', base .. id, 'fingerprint', 'failedReason', 'stacktrace')
  if not fields[1] then
    found[#found + 1] = { id, fields[2] or '', fields[3] or '' }
  end
end
return { page[1], found }
`,
})

/**
 * Adds dead tasks to the index of fingerprints. A task that is not dead any more, or that another process has added, is skipped.
 */
export const indexDeadScript = luaScript<'dead', 'base', void>({
  name: 'index-dead',
  keys: ['dead'],
  args: ['base'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local dead = KEYS[1]
local base = ARGV[1]
--- @include fingerprints
for i = 2, #ARGV, 2 do
  local id = ARGV[i]
  local score = redis.call('ZSCORE', dead, id)
  local name, fingerprint = unpack(redis.call('HMGET', base .. id, 'name', 'fingerprint'))
  if score and name and not fingerprint then
    enter_fingerprint(base, id, score, ARGV[i + 1])
  end
end
`,
})

/**
 * Removes the tasks from one fingerprint's set that are not dead any more.
 */
export const pruneFingerprintScript = luaScript<'set' | 'dead', 'base' | 'fingerprint' | 'cursor' | 'count', string>({
  name: 'prune-fingerprint',
  keys: ['set', 'dead'],
  args: ['base', 'fingerprint', 'cursor', 'count'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local set, dead = KEYS[1], KEYS[2]
local base, fingerprint, cursor, count = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
--- @include fingerprints
local page = redis.call('ZSCAN', set, cursor, 'COUNT', count)
for i = 1, #page[2], 2 do
  local id = page[2][i]
  if redis.call('ZSCORE', dead, id) ~= page[2][i + 1] then
    leave_fingerprint(base, id, fingerprint)
    redis.call('HDEL', base .. id, 'fingerprint')
  end
end
if redis.call('EXISTS', set) == 0 then
  redis.call('HDEL', base .. 'fingerprints', fingerprint)
end
return page[1]
`,
})

/**
 * Reads the tasks that have not ended, page by page: first the current state of each task for which there has been an event since the
 * previous page, and then the next tasks of a place. Takes Redis about 2 µs for each task. A caller that keeps the last state of each task
 * knows all unfinished tasks as of the last page:
 */
export const readUnfinishedScript = luaScript<
  'active' | 'waitingChildren' | 'delayed' | 'prioritized' | 'lanes' | 'wait' | 'totals' | 'apiKeyTasks' | 'events',
  'base' | 'place' | 'lane' | 'passed' | 'lastEvent' | 'limit' | 'overhead' | 'mark',
  | [
      place: number,
      lane: string,
      passed: number,
      lastEvent: string,
      tasks: Array<string | number>,
      bytes?: string,
      drift?: string,
      ofApiKeys?: string[],
    ]
  | null
>({
  name: 'read-unfinished',
  keys: ['active', 'waitingChildren', 'delayed', 'prioritized', 'lanes', 'wait', 'totals', 'apiKeyTasks', 'events'],
  args: ['base', 'place', 'lane', 'passed', 'lastEvent', 'limit', 'overhead', 'mark'],
  includes: INCLUDES,
  lua: `#!lua flags=no-writes
local active, waitingChildren, delayed, prioritized, lanes, wait, totals, apiKeyTasks, events = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local base, place, lane, passed, lastEvent, limit, overhead, mark = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8]
place, passed, limit = tonumber(place), tonumber(passed), tonumber(limit)
local tasks, is_known = {}, {}
local function report(id)
  if is_known[id] then
    return
  end
  is_known[id] = true
  local job = base .. id
  local name, ended, at_end = unpack(redis.call('HMGET', job, 'name', 'finishedOn', 'atEnd'))
  local bytes = -1
  if name and not ended then
    bytes = redis.call('HSTRLEN', job, 'data') + overhead
    if at_end and string.sub(at_end, 1, 1) == mark then
      bytes = bytes + redis.call('HSTRLEN', job, 'followUps') + redis.call('HSTRLEN', job, 'compensations')
    end
  end
  local n = #tasks
  tasks[n + 1], tasks[n + 2], tasks[n + 3] = id, bytes, string.sub(at_end or '', 2)
end
local function read_events()
  if lastEvent == '' then
    local newest = redis.call('XREVRANGE', events, '+', '-', 'COUNT', 1)[1]
    lastEvent = newest and newest[1] or '0-0'
    return 0
  end
  local entries, first = redis.call('XRANGE', events, lastEvent, '+', 'COUNT', limit + 1), 1
  if lastEvent ~= '0-0' then
    if not entries[1] or entries[1][1] ~= lastEvent then
      return nil
    end
    first = 2
  end
  for i = first, #entries do
    lastEvent = entries[i][1]
    local fields = entries[i][2]
    for n = 1, #fields, 2 do
      if fields[n] == 'jobId' then
        report(fields[n + 1])
      end
    end
  end
  return #entries - first + 1
end
local unread = read_events()
if not unread then
  return false
end
local left = unread >= limit and 0 or limit
passed = math.max(0, passed - unread)
local function ids_in_list(list)
  return redis.call('LRANGE', list, -passed - left, -passed - 1)
end
local function ids_in_lane(name)
  local list = base .. 'lane:' .. name
  local length = redis.call('LLEN', list)
  local ids = passed < length and ids_in_list(list) or {}
  local first = math.max(0, passed - length)
  if #ids < left then
    local last = first + left - #ids - 1
    for _, id in ipairs(redis.call('ZRANGE', base .. 'lane-priorities:' .. name, first, last)) do
      ids[#ids + 1] = id
    end
  end
  return ids
end
while KEYS[place] ~= totals and left > 0 do
  local key, ids, name, order = KEYS[place], {}, nil, nil
  if key == lanes then
    name, order = unpack(redis.call('ZRANGEBYSCORE', lanes, lane, '+inf', 'WITHSCORES', 'LIMIT', 0, 1))
    if order ~= lane then
      lane, passed = order or lane, 0
    end
    ids = name and ids_in_lane(name) or ids
  elseif key == active or key == wait then
    ids = ids_in_list(key)
  else
    ids = redis.call('ZRANGE', key, passed, passed + left - 1)
  end
  for _, id in ipairs(ids) do
    report(id)
  end
  if #ids == left then
    passed = passed + #ids
  elseif name then
    lane, passed = '(' .. order, 0
  else
    place, passed = place + 1, 0
  end
  left = left - #ids
end
local page = { place, lane, passed, lastEvent, tasks }
if KEYS[place] == totals and unread < limit then
  local bytes, drift = unpack(redis.call('HMGET', totals, 'bytes', 'drift'))
  page[6], page[7], page[8] = bytes or '0', drift or '0', redis.call('HGETALL', apiKeyTasks)
end
return page
`,
})

/**
 * Repairs entries of the status index, and counts them in the field `drift` of the totals. An entry is skipped if its score has changed
 * since it was found: either the script that moved the task has indexed it, or the next pass repairs it. An entry that another process
 * has already repaired is not counted again.
 */
export const repairEntriesScript = luaScript<'divided' | 'totals', 'base' | 'parts', number>({
  name: 'repair-entries',
  keys: ['divided', 'totals'],
  args: ['base', 'parts'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local divided, totals = KEYS[1], KEYS[2]
local base, parts = ARGV[1], ARGV[2]
local repaired = 0
for i = 3, #ARGV, 3 do
  local id, score, part = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  if (redis.call('ZSCORE', divided, id) or '') == score then
    local changed = 0
    for each in string.gmatch(parts, '%S+') do
      if each ~= part then
        changed = changed + redis.call('ZREM', base .. each, id)
      end
    end
    if part ~= '' then
      changed = changed + redis.call('ZADD', base .. part, 'CH', score, id)
    end
    if changed > 0 then
      repaired = repaired + 1
    end
  end
end
if repaired > 0 then
  redis.call('HINCRBY', totals, 'drift', repaired)
end
return repaired
`,
})

/**
 * Corrects a queue's totals, so that every accepted task is accounted for again, and stores when it did. This is the last step of an index
 * repair. Tasks that are counted as accepted but are not in any structure were removed without being counted, and are added to `removed`.
 * Tasks that are in a structure without being counted are added to `accepted`. Totals never decrease. O(1), because the number of tasks in
 * each status is the size of a structure.
 */
export const repairTotalsScript = luaScript<
  | 'totals'
  | 'wait'
  | 'active'
  | 'prioritized'
  | 'lanes'
  | 'turnState'
  | 'waitingChildren'
  | 'delayed'
  | 'completed'
  | 'failed',
  never,
  number
>({
  name: 'repair-totals',
  keys: [
    'totals',
    'wait',
    'active',
    'prioritized',
    'lanes',
    'turnState',
    'waitingChildren',
    'delayed',
    'completed',
    'failed',
  ],
  args: [],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local totals, wait, active, prioritized, lanes, turnState, waitingChildren, delayed, completed, failed = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
--- @include time
redis.call('HSET', totals, 'comparedAt', whole(millis()))
local in_lanes = tonumber(redis.call('HGET', turnState, 'waiting')) or 0
local tasks = redis.call('LLEN', wait) + redis.call('LLEN', active) + in_lanes
for _, set in ipairs({ prioritized, waitingChildren, delayed, completed, failed }) do
  tasks = tasks + redis.call('ZCARD', set)
end
local accepted, removed = unpack(redis.call('HMGET', totals, 'accepted', 'removed'))
local unaccounted = tonumber(accepted or '0') - tonumber(removed or '0') - tasks
if unaccounted == 0 then
  return 0
end
local correction = math.abs(unaccounted)
redis.call('HINCRBY', totals, unaccounted > 0 and 'removed' or 'accepted', correction)
redis.call('HINCRBY', totals, 'drift', correction)
return correction
`,
})

/**
 * Throttles a queue, or extends the current throttle. BullMQ reads the counter only if the queue has a rate, so a queue without one is
 * given a maximum that is never reached.
 */
export const throttleScript = luaScript<'limiter' | 'meta', 'duration' | 'mark' | 'hasOwnRate', void>({
  name: 'throttle',
  keys: ['limiter', 'meta'],
  args: ['duration', 'mark', 'hasOwnRate'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local limiter, meta = KEYS[1], KEYS[2]
local duration, mark, hasOwnRate = ARGV[1], ARGV[2], ARGV[3]
local left = redis.call('GET', limiter) == mark and redis.call('PTTL', limiter) or 0
if left < tonumber(duration) then
  redis.call('SET', limiter, mark, 'PX', duration)
end
if hasOwnRate ~= '1' and redis.call('HEXISTS', meta, 'max') == 0 then
  redis.call('HSET', meta, 'max', mark, 'duration', 1)
end
`,
})

/**
 * Stores the limits that the catalogue of a worker contains: those of concurrency keys, and the capacities of limiters.
 */
export const defineLimitsScript = luaScript<'settings', 'base' | 'keyLimits' | 'capacities' | 'replaces', void>({
  name: 'define-limits',
  keys: ['settings'],
  args: ['base', 'keyLimits', 'capacities', 'replaces'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local settings = KEYS[1]
local base, keyLimits, capacities, replaces = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
--- @include derive-limits
local function define(name, defined)
  local stored = redis.call('HGET', settings, name)
  if stored == defined or not stored and defined == '{}' or stored and replaces == '' then
    return false
  end
  redis.call('HSET', settings, name, defined)
  return true
end
local has_new_limits = define('definedKeyLimits', keyLimits)
local has_new_capacities = define('definedCapacities', capacities)
if has_new_limits or has_new_capacities then
  derive_limits()
end
`,
})

/**
 * Throttles the concurrency key of a task, or extends its current throttle. O(log n).
 */
export const throttleKeyScript = luaScript<'job', 'base' | 'duration', 0 | 1>({
  name: 'throttle-key',
  keys: ['job'],
  args: ['base', 'duration'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local job = KEYS[1]
local base, duration = ARGV[1], ARGV[2]
--- @include lane
--- @include time
local lane = redis.call('HGET', job, 'lane')
local key = lane and split_lane(lane_name(lane))
if not key or key == '' then
  return 0
end
local throttles, now = base .. 'key-throttles', millis()
redis.call('ZREMRANGEBYSCORE', throttles, '-inf', whole(now))
redis.call('ZADD', throttles, 'GT', whole(now + duration + 1), key)
redis.call('PEXPIREAT', throttles, redis.call('ZRANGE', throttles, -1, -1, 'WITHSCORES')[2])
return 1
`,
})

/**
 * Removes the placeholder rate of a throttle that has ended, because that rate would otherwise cost two commands per job. A throttle that
 * has not ended is not changed.
 */
export const unthrottleScript = luaScript<'limiter' | 'meta', 'mark', void>({
  name: 'unthrottle',
  keys: ['limiter', 'meta'],
  args: ['mark'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local limiter, meta = KEYS[1], KEYS[2]
local mark = ARGV[1]
if redis.call('HGET', meta, 'max') == mark and redis.call('GET', limiter) ~= mark then
  redis.call('HDEL', meta, 'max', 'duration')
end
`,
})

/**
 * Stores the result of a finished step of a running task, unless the step has one. Runs even if Redis is full, because the step's side
 * effect has already happened. Checking the lock's token is not enough, because a plain BullMQ Worker may use the same token for the next
 * attempt.
 */
export const keepStepScript = luaScript<'job', 'token' | 'fencingToken' | 'field' | 'result', string | null>({
  name: 'keep-step',
  keys: ['job'],
  args: ['token', 'fencingToken', 'field', 'result'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local job = KEYS[1]
local token, fencingToken, field, result = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
--- @include lock
if not owns_lock(job, token) or redis.call('HGET', job, 'ats') ~= fencingToken then
  return false
end
redis.call('HSETNX', job, field, result)
return redis.call('HGET', job, field)
`,
})

/**
 * Notes that the process of an attempt lives although the attempt has lost its lock, for example because Redis did not respond for longer
 * than a lock lasts. The loss then counts neither as a death of a process nor towards the number of losses that a task may have, whether or
 * not the leader has already recovered the task. The script may be sent again.
 */
export const noteSurvivalScript = luaScript<'job', 'fencingToken', void>({
  name: 'note-survival',
  keys: ['job'],
  args: ['fencingToken'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local job = KEYS[1]
local fencingToken = ARGV[1]
--- @include losses
if redis.call('HGET', job, 'diedIn') == fencingToken then
  redis.call('HDEL', job, 'diedIn')
  if redis.call('HINCRBY', job, 'deaths', -1) <= 0 then
    redis.call('HDEL', job, 'deaths', 'alone')
  end
end
if redis.call('HGET', job, 'lostIn') == fencingToken then
  redis.call('HDEL', job, 'lostIn')
  uncount_loss(job)
elseif redis.call('HGET', job, 'ats') == fencingToken then
  redis.call('HSET', job, 'livedIn', fencingToken)
end
`,
})

/**
 * Reads the input of a task that its pipeline run keeps.
 */
export const readKeptInputScript = luaScript<'meta' | 'inputs', 'incarnation' | 'task', string | null>({
  name: 'read-kept-input',
  keys: ['meta', 'inputs'],
  args: ['incarnation', 'task'],
  includes: INCLUDES,
  lua: `#!lua flags=no-writes
local meta, inputs = KEYS[1], KEYS[2]
local incarnation, task = ARGV[1], ARGV[2]
return redis.call('HGET', meta, 'incarnation') == incarnation and redis.call('HGET', inputs, task)
`,
})

/**
 * Reads the results of a task's finished steps.
 */
export const readStepsScript = luaScript<'job', 'prefix', string[]>({
  name: 'read-steps',
  keys: ['job'],
  args: ['prefix'],
  includes: INCLUDES,
  lua: `#!lua flags=no-writes
local job = KEYS[1]
local prefix = ARGV[1]
local found = {}
for _, field in ipairs(redis.call('HKEYS', job)) do
  if string.sub(field, 1, #prefix) == prefix then
    found[#found + 1] = string.sub(field, #prefix + 1)
    found[#found + 1] = redis.call('HGET', job, field)
  end
end
return found
`,
})

/**
 * Stores a task that a handler has registered for the end of its own task: a compensation, or a follow-up of a failure or of any end.
 * A registration replaces an earlier one with the same letter and identity, in its place, so the script may be sent again. Runs even if
 * Redis is full, because running tasks must be able to end.
 */
export const registerTaskScript = luaScript<
  'job' | 'totals',
  'token' | 'fencingToken' | 'letter' | 'identity' | 'template' | 'nextLetter' | 'maxLines' | 'maxBytes' | 'mark',
  Registration
>({
  name: 'register-task',
  keys: ['job', 'totals'],
  args: ['token', 'fencingToken', 'letter', 'identity', 'template', 'nextLetter', 'maxLines', 'maxBytes', 'mark'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local job, totals = KEYS[1], KEYS[2]
local token, fencingToken, letter, identity, template, nextLetter, maxLines, maxBytes, mark = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9]
--- @include lock
if not owns_lock(job, token) or redis.call('HGET', job, 'ats') ~= fencingToken then
  return 'lock_lost'
end
local field = letter == '' and 'compensations' or 'followUps'
local stored, at_end = unpack(redis.call('HMGET', job, field, 'atEnd'))
stored, at_end = stored or '', at_end or ''
local head = letter .. identity .. ' '
local own, lines, is_known, counted, bytes = head .. template, {}, false, 0, 0
local function add(line)
  lines[#lines + 1] = line
  if string.sub(line, 1, 2) ~= nextLetter .. '{' then
    counted, bytes = counted + 1, bytes + #line
  end
end
for line in string.gmatch(stored, '[^\\n]+') do
  local is_same = string.sub(line, 1, #head) == head
  add(is_same and own or line)
  is_known = is_known or is_same
end
if not is_known then
  add(own)
end
if counted > tonumber(maxLines) or bytes > tonumber(maxBytes) then
  return 'full'
end
local text = table.concat(lines, '\\n')
redis.call('HSET', job, field, text, 'atEnd', mark .. string.sub(at_end, 2))
redis.call('HINCRBY', totals, 'bytes', #text - #stored)
return 'stored'
`,
})

/**
 * Stores that an attempt of a quarantined task is about to run alone in its worker's process.
 */
export const startAloneScript = luaScript<'job', 'token' | 'fencingToken', 0 | 1>({
  name: 'start-alone',
  keys: ['job'],
  args: ['token', 'fencingToken'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local job = KEYS[1]
local token, fencingToken = ARGV[1], ARGV[2]
--- @include lock
if not owns_lock(job, token) then
  return 0
end
redis.call('HSET', job, 'alone', fencingToken)
return 1
`,
})

/**
 * Counts again how many tasks of each concurrency key are active, and what the active tasks hold of each limiter, in case another tool or a
 * lost task has made the counts wrong. Takes about 1 µs for each active task.
 */
export const countActiveScript = luaScript<'leader' | 'totals', 'fencing' | 'base', number>({
  name: 'count-active',
  keys: ['leader', 'totals'],
  args: ['fencing', 'base'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local leader, totals = KEYS[1], KEYS[2]
local fencing, base = ARGV[1], ARGV[2]
--- @include time
--- @include fence
--- @include active-count
if is_deposed(leader, fencing) then
  return 0
end
redis.call('HSET', totals, 'countedAt', whole(millis()))
local wrong = count_active(false)
if wrong > 0 then
  redis.call('HINCRBY', totals, 'drift', wrong)
end
return wrong
`,
})

/**
 * Ends waiting tasks whose queue timeout has passed.
 */
export const expireTasksScript = luaScript<
  'expiries' | 'wait' | 'leader' | 'endReply',
  'base' | 'now' | 'limit' | 'reason' | 'record' | 'fencing' | 'request',
  [hasMore: 0 | 1, ...expired: string[]] | null
>({
  name: 'expire-tasks',
  keys: ['expiries', 'wait', 'leader', 'endReply'],
  args: ['base', 'now', 'limit', 'reason', 'record', 'fencing', 'request'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local expiries, wait, leader, endReply = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local base, now, limit, reason, record, fencing, request = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
--- @include fence
--- @include stored-reply
--- @include leave-place
--- @include end-without-run
--- @include lock
local NEAR = 1000
local MAX_PASSED = 200000
local passed = 0
local function expire(id, list)
  local is_near = redis.call('LPOS', list, id, 'RANK', -1, 'MAXLEN', NEAR)
  local length = is_near and 0 or redis.call('LLEN', list)
  local task, place = read_waiting_task(id), take_out(id)
  if place then
    passed = passed + ((place == 'wait' or place == 'lanes') and length or 0)
    end_waiting_task(task, place, 'expired', { at = now, reason = reason, record = record })
  end
  return place
end
local earlier = stored_reply(endReply, request)
if earlier then
  return earlier
end
if is_deposed(leader, fencing) then
  return false
end
local due = redis.call('ZRANGEBYSCORE', expiries, '-inf', now, 'WITHSCORES', 'LIMIT', 0, limit)
local reply = { #due == 2 * limit and 1 or 0 }
for i = 1, #due, 2 do
  local id, time = due[i], due[i + 1]
  local name, starts, lane, ended_at = unpack(redis.call('HMGET', base .. id, 'name', 'ats', 'lane', 'finishedOn'))
  local list = lane and lane_list(base, lane_name(lane)) or wait
  if passed > 0 and passed + redis.call('LLEN', list) > MAX_PASSED then
    reply[1] = 1
    break
  end
  redis.call('ZREM', expiries, id)
  starts = tonumber(starts or '0')
  if name and starts == 0 and not ended_at and expire(id, list) then
    reply[#reply + 1] = id
    reply[#reply + 1] = name
  elseif name and starts == 1 and is_running(base .. id) then
    redis.call('HSET', base .. id, 'expiresAt', time)
  end
end
note_drained_by_ends()
if #reply > 1 then
  store_reply(endReply, request, reply, REPLY_KEPT_MS)
end
return reply
`,
})

/**
 * Adds queues to a namespace's registry. Runs even if Redis is full, because a worker that starts will end tasks.
 */
export const registerQueuesScript = luaScript<'schema' | 'registry', 'schemaVersion' | 'replaces', 0 | 1>({
  name: 'register-queues',
  keys: ['schema', 'registry'],
  args: ['schemaVersion', 'replaces'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local schema, registry = KEYS[1], KEYS[2]
local schemaVersion, replaces = ARGV[1], ARGV[2]
if redis.call('GET', schema) ~= schemaVersion then
  return 0
end
for i = 3, #ARGV, 2 do
  local queue, retention = ARGV[i], ARGV[i + 1]
  local stored = redis.call('HGET', registry, queue)
  if not stored or retention ~= '' and (replaces == '1' or stored == '') then
    redis.call('HSET', registry, queue, retention)
  end
end
return 1
`,
})

/**
 * Removes ended tasks whose retention is over. Every eighth end of an attempt also removes old tasks with the same status (ENDS_PER_REMOVAL
 * in store/moves.ts), so this script only has to remove tasks while few attempts end, and tasks that ended without an attempt.
 */
export const removeOldScript = luaScript<'leader', 'fencing' | 'now' | 'retention' | 'base' | 'limit', number>({
  name: 'remove-old',
  keys: ['leader'],
  args: ['fencing', 'now', 'retention', 'base', 'limit'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local leader = KEYS[1]
local fencing, now, retention, base, limit = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
--- @include fence
--- @include remove-ended
if is_deposed(leader, fencing) then
  return 0
end
local removed = 0
for status, kept in pairs(cjson.decode(retention)) do
  local since = kept.ageMs and whole(now - kept.ageMs) or ''
  removed = removed + remove_ended(base, status, since, kept.count or '', limit - removed)
end
return removed
`,
})

/**
 * Deletes the entries of unique keys that no task has any more. Examining 500 entries takes Redis about 1 ms. Outdated entries do no harm
 * except that they take memory.
 */
export const removeUniqueKeysScript = luaScript<
  'leader' | 'uniqueKeys',
  'fencing' | 'base' | 'cursor' | 'limit',
  [next: string, seen: number, removed: number] | null
>({
  name: 'remove-unique-keys',
  keys: ['leader', 'uniqueKeys'],
  args: ['fencing', 'base', 'cursor', 'limit'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local leader, uniqueKeys = KEYS[1], KEYS[2]
local fencing, base, cursor, limit = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
--- @include fence
--- @include key-owner
--- @include time
if is_deposed(leader, fencing) then
  return false
end
local now = millis()
local next_cursor, entries = unpack(redis.call('HSCAN', uniqueKeys, cursor, 'COUNT', limit))
local removed = 0
for i = 1, #entries, 2 do
  if not key_owner(base, entries[i + 1], now) then
    removed = removed + redis.call('HDEL', uniqueKeys, entries[i])
  end
end
return { next_cursor, #entries / 2, removed }
`,
})

/**
 * Releases the leader's lease, and announces that the namespace has no leader. Does nothing if another process holds it.
 */
export const resignScript = luaScript<'lease', 'holder' | 'channel', void>({
  name: 'resign',
  keys: ['lease'],
  args: ['holder', 'channel'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local lease = KEYS[1]
local holder, channel = ARGV[1], ARGV[2]
if redis.call('GET', lease) ~= holder then
  return
end
redis.call('DEL', lease)
redis.call('PUBLISH', channel, '')
`,
})

/**
 * Checks one queue for the leader: does the housekeeping that takes only a few commands, and returns which other work is due. O(1), except
 * that finding a due task is O(log n).
 */
export const surveyQueueScript = luaScript<
  | 'leader'
  | 'meta'
  | 'totals'
  | 'limiter'
  | 'marker'
  | 'wait'
  | 'active'
  | 'prioritized'
  | 'lanes'
  | 'turns'
  | 'turnState'
  | 'laneTimes'
  | 'keyLimits'
  | 'capacities'
  | 'waitingChildren'
  | 'delayed'
  | 'scheduled'
  | 'retrying'
  | 'completed'
  | 'failed'
  | 'dead'
  | 'cancelled'
  | 'expired'
  | 'expiries'
  | 'scheduleTimes'
  | 'schedules'
  | 'scheduleTroubles'
  | 'cancelling'
  | 'cancelRules'
  | 'uniqueKeys'
  | 'newFingerprints'
  | 'deadRequests'
  | 'apiKeyTasks'
  | 'taskEvents'
  | 'outbox'
  | 'settings'
  | 'stalledCheck'
  | 'unattached',
  | 'fencing'
  | 'now'
  | 'base'
  | 'retention'
  | 'eventsSince'
  | 'compareEveryMs'
  | 'countEveryMs'
  | 'scheduleHorizonMs'
  | 'throttleMark'
  | 'outboxMark',
  [fencing: number, duties: Duty[]]
>({
  name: 'survey-queue',
  keys: [
    'leader',
    'meta',
    'totals',
    'limiter',
    'marker',
    'wait',
    'active',
    'prioritized',
    'lanes',
    'turns',
    'turnState',
    'laneTimes',
    'keyLimits',
    'capacities',
    'waitingChildren',
    'delayed',
    'scheduled',
    'retrying',
    'completed',
    'failed',
    'dead',
    'cancelled',
    'expired',
    'expiries',
    'scheduleTimes',
    'schedules',
    'scheduleTroubles',
    'cancelling',
    'cancelRules',
    'uniqueKeys',
    'newFingerprints',
    'deadRequests',
    'apiKeyTasks',
    'taskEvents',
    'outbox',
    'settings',
    'stalledCheck',
    'unattached',
  ],
  args: [
    'fencing',
    'now',
    'base',
    'retention',
    'eventsSince',
    'compareEveryMs',
    'countEveryMs',
    'scheduleHorizonMs',
    'throttleMark',
    'outboxMark',
  ],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local leader, meta, totals, limiter, marker, wait, active, prioritized, lanes, turns, turnState, laneTimes, keyLimits, capacities, waitingChildren, delayed, scheduled, retrying, completed, failed, dead, cancelled, expired, expiries, scheduleTimes, schedules, scheduleTroubles, cancelling, cancelRules, uniqueKeys, newFingerprints, deadRequests, apiKeyTasks, taskEvents, outbox, settings, stalledCheck, unattached = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11], KEYS[12], KEYS[13], KEYS[14], KEYS[15], KEYS[16], KEYS[17], KEYS[18], KEYS[19], KEYS[20], KEYS[21], KEYS[22], KEYS[23], KEYS[24], KEYS[25], KEYS[26], KEYS[27], KEYS[28], KEYS[29], KEYS[30], KEYS[31], KEYS[32], KEYS[33], KEYS[34], KEYS[35], KEYS[36], KEYS[37], KEYS[38]
local fencing, now, base, retention, eventsSince, compareEveryMs, countEveryMs, scheduleHorizonMs, throttleMark, outboxMark = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10]
--- @include fence
--- @include queue-chores
--- @include forget-turns
if is_deposed(leader, fencing) then
  return { tonumber(redis.call('GET', leader)), {} }
end
local paused, concurrency = reopen_queue(meta, totals, outbox, limiter, throttleMark, outboxMark)
local running = redis.call('LLEN', active)
local in_lanes = tonumber(redis.call('HGET', turnState, 'waiting')) or 0
local waiting = redis.call('LLEN', wait) + redis.call('ZCARD', prioritized) + in_lanes
if waiting == 0 then
  forget_turns(base)
end
local may_start = redis.call('EXISTS', wait, prioritized, turns) > 0 or has_until(laneTimes, now)
if may_start and not paused and (not concurrency or running < tonumber(concurrency)) then
  redis.call('ZADD', marker, 0, '0')
end
if eventsSince ~= '' then
  drop_events(taskEvents, eventsSince)
end
local duties = {}
local function add(duty, is_due)
  if is_due then
    duties[#duties + 1] = duty
  end
end
local function exists(...)
  return redis.call('EXISTS', ...) > 0
end
local time = millis()
add('requeueLost', running > 0)
add('expire', has_until(expiries, now))
add('runSchedules', has_until(scheduleTimes, whole(time + scheduleHorizonMs)))
add('watchSchedules', exists(schedules, scheduleTroubles))
add('repeatCancels', exists(cancelling))
local drain, done = unpack(redis.call('HMGET', settings, 'drain', 'cancelledDrain'))
drain = drain and cjson.decode(drain) or {}
add('cancelDrained', drain.cancelledBy and drain.command ~= done)
add('cancelByRules', exists(cancelRules))
add('removeUniqueKeys', exists(uniqueKeys))
add('reportFingerprints', exists(newFingerprints))
add('changeDead', exists(deadRequests))
add('forwardOutbox', exists(outbox))
add('reportUnattached', exists(stalledCheck, unattached))
local function size(...)
  local sum = 0
  for _, set in ipairs({ ... }) do
    sum = sum + redis.call('ZCARD', set)
  end
  return sum
end
local kept = retention ~= '' and cjson.decode(retention) or {}
local function has_old(set, of)
  return of
    and (of.count and size(set) > of.count or of.ageMs and has_until(set, string.format('(%.0f', now - of.ageMs)))
end
add(
  'removeOld',
  has_old(completed, kept.completed)
    or has_old(dead, kept.dead)
    or has_old(cancelled, kept.cancelled)
    or has_old(expired, kept.expired)
)
local fields = redis.call('HMGET', totals, 'accepted', 'removed', 'bytes', 'comparedAt', 'countedAt')
local accepted, removed, bytes =
  tonumber(fields[1] or '0') or 0, tonumber(fields[2] or '0') or 0, tonumber(fields[3] or '0')
local compared_at, counted_at = fields[4], fields[5]
add('countActive', time - (counted_at or 0) >= tonumber(countEveryMs) and exists(keyLimits, capacities))
if not compared_at then
  redis.call('HSET', totals, 'comparedAt', whole(time))
end
local ended, later = size(failed), size(delayed)
local unfinished = running + waiting + later + size(waitingChildren)
local is_conserved = accepted - removed == unfinished + ended + size(completed)
local is_divided = ended == size(dead, cancelled, expired) and later == size(scheduled, retrying)
local is_charged = bytes >= 0 and (bytes == 0) == (unfinished == 0) and (unfinished > 0 or not exists(apiKeyTasks))
local is_compared = not compared_at or time - compared_at < tonumber(compareEveryMs)
add('repairIndex', not (is_conserved and is_divided and is_charged and is_compared))
return { tonumber(fencing), duties }
`,
})

/**
 * Acquires or renews the lease of a namespace's leader.
 */
export const takeLeaseScript = luaScript<
  'lease' | 'fencing' | 'schema',
  'holder' | 'leaseMs' | 'schemaVersion' | 'above' | 'channel',
  [fencing: number, leftMs: number, newest: number]
>({
  name: 'take-lease',
  keys: ['lease', 'fencing', 'schema'],
  args: ['holder', 'leaseMs', 'schemaVersion', 'above', 'channel'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local lease, fencing, schema = KEYS[1], KEYS[2], KEYS[3]
local holder, leaseMs, schemaVersion, above, channel = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local newest = tonumber(redis.call('GET', schema) or '0')
local number = tonumber(redis.call('GET', fencing) or '0')
if newest > tonumber(schemaVersion) then
  return { 0, tonumber(leaseMs), number }
end
local current = redis.call('GET', lease)
if current and current ~= holder then
  return { 0, redis.call('PTTL', lease), number }
end
if not current or number <= tonumber(above) then
  number = math.max(number, tonumber(above)) + 1
  redis.call('SET', fencing, string.format('%.0f', number))
end
redis.call('SET', lease, holder, 'PX', leaseMs)
redis.call('PUBLISH', channel, '.')
return { number, tonumber(leaseMs), number }
`,
})

/**
 * Renews the locks of running tasks, and removes the marks of the checks for lost tasks (../store/lua/recover.lua), as BullMQ's own
 * extendLocks does. The caller limits how many locks one script renews.
 */
export const renewLocksScript = luaScript<'any', 'base' | 'lockMs', number[]>({
  name: 'renew-locks',
  keys: ['any'],
  args: ['base', 'lockMs'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local any = KEYS[1]
local base, lockMs = ARGV[1], ARGV[2]
--- @include lock
--- @include unmark
local lost = {}
for i = 3, #ARGV, 2 do
  local id, token = ARGV[i], ARGV[i + 1]
  if owns_lock(base .. id, token) then
    redis.call('HSET', base .. id, 'lock', lock_of(token, lockMs))
    unmark(id)
  else
    lost[#lost + 1] = (i - 1) / 2
  end
end
return lost
`,
})

/**
 * Checks whether keys and entries have an owner.
 */
export const checkOrphansScript = luaScript<'first', never, SubjectState[]>({
  name: 'check-orphans',
  keys: ['first'],
  args: [],
  includes: INCLUDES,
  lua: `#!lua flags=no-writes
local first = KEYS[1]
--- @include subject-state
return states_of(function() end)
`,
})

/**
 * Deletes the keys and entries that have no owner.
 */
export const deleteOrphansScript = luaScript<'first', never, SubjectState[]>({
  name: 'delete-orphans',
  keys: ['first'],
  args: [],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local first = KEYS[1]
--- @include subject-state
return states_of(function(key, kind, entry, with)
  if not entry then
    redis.call('DEL', key, unpack(with))
  elseif kind == 'hash' then
    redis.call('HDEL', key, entry)
  elseif kind == 'zset' then
    redis.call('ZREM', key, entry)
  elseif kind == 'set' then
    redis.call('SREM', key, entry)
  else
    redis.call('LREM', key, 0, entry)
  end
end)
`,
})

/**
 * Claims entries of an outbox, so that one process at a time delivers each of them. O(entries).
 */
export const claimEntriesScript = luaScript<
  'outbox',
  'limit' | 'idleMs' | 'cursor',
  [fresh: number, cursor: string, entries: Array<[id: string, text: string]>]
>({
  name: 'claim-entries',
  keys: ['outbox'],
  args: ['limit', 'idleMs', 'cursor'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local outbox = KEYS[1]
local limit, idleMs, cursor = ARGV[1], ARGV[2], ARGV[3]
--- @include outbox-claims
if redis.call('EXISTS', outbox) == 0 then
  return { 0, '0-0', {} }
end
local entries = claim_fresh(limit)
local fresh, next_cursor, left = #entries, '0-0', {}
if idleMs ~= '' then
  next_cursor, left = claim_left(idleMs, cursor, limit)
end
for _, entry in ipairs(left) do
  entries[#entries + 1] = entry
end
return { fresh, next_cursor, entries }
`,
})

/**
 * Deletes delivered entries of an outbox, and opens the queue that a full outbox has closed. An entry that is deleted already is skipped,
 * so a script that is sent again does no harm. The empty outbox itself is deleted. The queue is opened when the outbox is at most half
 * full, so that it is not closed again at the next end.
 */
export const deleteEntriesScript = luaScript<
  'outbox' | 'totals' | 'meta' | 'marker' | 'wait' | 'prioritized' | 'lanes' | 'delayed',
  'mark' | 'maxEntries' | 'maxBytes' | 'scoreStep',
  void
>({
  name: 'delete-entries',
  keys: ['outbox', 'totals', 'meta', 'marker', 'wait', 'prioritized', 'lanes', 'delayed'],
  args: ['mark', 'maxEntries', 'maxBytes', 'scoreStep'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local outbox, totals, meta, marker, wait, prioritized, lanes, delayed = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local mark, maxEntries, maxBytes, scoreStep = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local bytes = 0
for i = 5, #ARGV do
  local entry = redis.call('XRANGE', outbox, ARGV[i], ARGV[i])[1]
  if entry then
    bytes = bytes + #entry[2][2]
    redis.call('XACK', outbox, 'forwarders', ARGV[i])
    redis.call('XDEL', outbox, ARGV[i])
  end
end
local left, left_bytes = redis.call('XLEN', outbox), 0
if left == 0 then
  redis.call('DEL', outbox)
  redis.call('HDEL', totals, 'outboxBytes')
else
  left_bytes = redis.call('HINCRBY', totals, 'outboxBytes', -bytes)
end
if left > maxEntries / 2 or left_bytes > maxBytes / 2 or redis.call('HGET', meta, 'paused') ~= mark then
  return
end
redis.call('HDEL', meta, 'paused')
if redis.call('LLEN', wait) + redis.call('EXISTS', prioritized, lanes) > 0 then
  redis.call('ZADD', marker, 0, '0')
else
  local due = redis.call('ZRANGE', delayed, 0, 0, 'WITHSCORES')
  if due[2] then
    redis.call('ZADD', marker, tonumber(due[2]) / tonumber(scoreStep), '1')
  end
end
`,
})

/**
 * Counts the active tasks of each concurrency key among some of a queue's active tasks. Takes one command for each task.
 */
export const countActiveLanesScript = luaScript<
  'active',
  'base' | 'passed' | 'scan',
  Array<[key: string, count: number]>
>({
  name: 'count-active-lanes',
  keys: ['active'],
  args: ['base', 'passed', 'scan'],
  includes: INCLUDES,
  lua: `#!lua flags=no-writes
local active = KEYS[1]
local base, passed, scan = ARGV[1], ARGV[2], ARGV[3]
--- @include lane
local counts, found = {}, {}
for _, id in ipairs(redis.call('LRANGE', active, -passed - scan, -passed - 1)) do
  local lane = redis.call('HGET', base .. id, 'lane')
  local key = lane and split_lane(lane_name(lane)) or ''
  if key ~= '' then
    counts[key] = (counts[key] or 0) + 1
  end
end
for key, count in pairs(counts) do
  found[#found + 1] = { key, count }
end
return found
`,
})

/**
 * Counts what a light drain of a queue's fleet waits for: the tasks that wait or are active, the delayed tasks that are due by Redis's
 * clock, the entries of the outbox, and the quarantined tasks that are not due yet because no worker had a place for them. Such a task is
 * in `postponed` with the same score as in `delayed`. If the scores differ, the task has left the delayed set since.
 */
export const countRemainingScript = luaScript<
  'wait' | 'prioritized' | 'lanes' | 'turnState' | 'active' | 'delayed' | 'postponed' | 'outbox',
  'scoreStep',
  number
>({
  name: 'count-remaining',
  keys: ['wait', 'prioritized', 'lanes', 'turnState', 'active', 'delayed', 'postponed', 'outbox'],
  args: ['scoreStep'],
  includes: INCLUDES,
  lua: `#!lua flags=no-writes
local wait, prioritized, lanes, turnState, active, delayed, postponed, outbox = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local scoreStep = ARGV[1]
--- @include time
local due = (millis() + 1) * tonumber(scoreStep)
local waiting = redis.call('LLEN', wait)
  + redis.call('ZCARD', prioritized)
  + (tonumber(redis.call('HGET', turnState, 'waiting')) or 0)
local later = redis.call('ZRANGEBYSCORE', postponed, whole(due), '+inf', 'WITHSCORES')
for i = 1, #later, 2 do
  if redis.call('ZSCORE', delayed, later[i]) == later[i + 1] then
    waiting = waiting + 1
  end
end
local due_tasks = redis.call('ZCOUNT', delayed, '-inf', '(' .. whole(due))
return waiting + due_tasks + redis.call('LLEN', active) + redis.call('XLEN', outbox)
`,
})

/**
 * Reads for each of the given concurrency keys how many of its tasks wait and are active, its limits, and why it may start no task at the
 * moment. If the queue does not limit its keys, their active tasks are not counted. Takes two commands for each key, and up to ten more if
 * there are limits and throttles.
 */
export const describeKeysScript = luaScript<
  'lanes' | 'settings',
  'base',
  [now: string, waitingKeys: number, waitingTasks: string, keys: StoredKey[]]
>({
  name: 'describe-keys',
  keys: ['lanes', 'settings'],
  args: ['base'],
  includes: INCLUDES,
  lua: `#!lua flags=no-writes
local lanes, settings = KEYS[1], KEYS[2]
local base = ARGV[1]
--- @include time
--- @include lane-tasks
--- @include queue-features
--- @include key-limits
local KEY_LIMIT = 'keyLimit:'
local obstacles = read_obstacles(read_features())
local function describe_limit(name, key, is_own, value)
  if not value then
    return {}
  end
  local field = is_own and name .. ':' .. key or name
  local is_commanded = redis.call('HEXISTS', settings, KEY_LIMIT .. field) == 1
  return { tostring(value), is_own and 1 or 0, is_commanded and 'command' or 'definition' }
end
local function describe(key)
  local active, limit, stored, own, own_rate = 0, nil, nil, nil, nil
  if obstacles.has_limits then
    active = active_of_key(key)
    limit, stored, own, own_rate = limits_of_key(key)
  end
  local rate = stored and open_rate(key, stored) or nil
  local blocks = {}
  if limit and active >= limit then
    table.insert(blocks, 'concurrency')
  end
  if key_starts_at(key, rate, false) then
    table.insert(blocks, 'rate')
  end
  if key_starts_at(key, nil, obstacles.has_throttles) then
    table.insert(blocks, 'throttle')
  end
  local starts_at = key_starts_at(key, rate, obstacles.has_throttles)
  return {
    lane_length(base, key),
    active,
    describe_limit('concurrency', key, own, limit),
    describe_limit('rate', key, own_rate, stored),
    blocks,
    starts_at and whole(starts_at) or '',
  }
end
local described = {}
for i = 2, #ARGV do
  described[i - 1] = describe(ARGV[i])
end
return {
  whole(millis()),
  redis.call('ZCARD', lanes),
  redis.call('HGET', base .. 'turn-state', 'waiting') or '0',
  described,
}
`,
})

/**
 * Reads one page of the tasks that wait in the lanes of a queue, one lane after the other. Within a lane, the tasks are in the order in
 * which they start. If the task before the page has left its lane, the page begins as in list-page.lua and sorted-set-page.lua. Takes two
 * commands for each lane.
 */
export const listLanesScript = luaScript<
  'lanes',
  'base' | 'after' | 'last' | 'score' | 'passed' | 'limit',
  [ids: string[], lane: string, last: string, score: string, passed: string]
>({
  name: 'list-lanes',
  keys: ['lanes'],
  args: ['base', 'after', 'last', 'score', 'passed', 'limit'],
  includes: INCLUDES,
  lua: `#!lua flags=no-writes
local lanes = KEYS[1]
local base, after, last, score, passed, limit = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
--- @include lane
--- @include passed-in-list
--- @include rank-in-set
local most = tonumber(limit)
local found, at = {}, { '', '', '', '' }
local function read_list(number, name, from)
  local list = lane_list(base, name)
  local index = passed_in_list(list, from, passed)
  local ids = redis.call('LRANGE', list, -index - (most - #found), -index - 1)
  for i = #ids, 1, -1 do
    found[#found + 1] = ids[i]
    index = index + 1
    at = { number, ids[i], '', tostring(index) }
  end
end
local function read_priorities(number, name, from)
  local set = lane_priorities(base, name)
  local first = from == '' and 0 or rank_in(set, score, from)
  local page = redis.call('ZRANGE', set, first, first + most - #found - 1, 'WITHSCORES')
  for i = 1, #page, 2 do
    found[#found + 1] = page[i]
    at = { number, page[i], page[i + 1], '' }
  end
end
local first = after == '' and '-inf' or after
while #found < most do
  local name, number = unpack(redis.call('ZRANGEBYSCORE', lanes, first, '+inf', 'WITHSCORES', 'LIMIT', 0, 1))
  if not name then
    break
  end
  local from = number == after and last or ''
  local is_in_priorities = from ~= '' and score ~= ''
  if not is_in_priorities then
    read_list(number, name, from)
  end
  if #found < most then
    read_priorities(number, name, is_in_priorities and from or '')
  end
  first = '(' .. number
end
return { found, unpack(at) }
`,
})

/**
 * Reads one page of a list from its right end, beginning after a task that may have left the list in the meantime.
 */
export const listPageScript = luaScript<'list', 'last' | 'passedBefore' | 'limit', [passed: number, ids: string[]]>({
  name: 'list-page',
  keys: ['list'],
  args: ['last', 'passedBefore', 'limit'],
  includes: INCLUDES,
  lua: `#!lua flags=no-writes
local list = KEYS[1]
local last, passedBefore, limit = ARGV[1], ARGV[2], ARGV[3]
--- @include passed-in-list
local passed = passed_in_list(list, last, passedBefore)
return { passed, redis.call('LRANGE', list, -passed - limit, -passed - 1) }
`,
})

/**
 * Finds the concurrency keys with the longest lanes among some of a queue's lanes. Takes two commands for each lane.
 */
export const rankLanesScript = luaScript<
  'lanes',
  'base' | 'after' | 'scan' | 'fromCount' | 'fromKey' | 'lastCount' | 'lastKey',
  [keys: Array<[key: string, count: number]>, last: string]
>({
  name: 'rank-lanes',
  keys: ['lanes'],
  args: ['base', 'after', 'scan', 'fromCount', 'fromKey', 'lastCount', 'lastKey'],
  includes: INCLUDES,
  lua: `#!lua flags=no-writes
local lanes = KEYS[1]
local base, after, scan, fromCount, fromKey, lastCount, lastKey = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
--- @include is-after
--- @include lane-tasks
local function precedes(count, key, other, other_key)
  if count ~= other then
    return count > other
  end
  return is_after(key, other_key)
end
local from_count, last_count = tonumber(fromCount), tonumber(lastCount)
local first = after == '' and '-inf' or '(' .. after
local page = redis.call('ZRANGEBYSCORE', lanes, first, '+inf', 'WITHSCORES', 'LIMIT', 0, scan)
local found = {}
for i = 1, #page, 2 do
  local key, count = split_lane(page[i]), lane_length(base, page[i])
  local is_behind = key ~= '' and (not from_count or precedes(from_count, fromKey, count, key))
  if is_behind and (not last_count or precedes(count, key, last_count, lastKey)) then
    found[#found + 1] = { key, count }
  end
end
return { found, #page == 2 * scan and page[#page] or '' }
`,
})

/**
 * Reads the head of a queue: the oldest waiting task, the one that starts next, how many are blocked and the oldest of them, whether a
 * command holds the queue, and which Workers use it that were not attached. The time does not depend on the number of tasks or lanes.
 * Everything is read at the same moment. Otherwise, if workers take tasks quickly, the task would have started before its times are read,
 * and would seem to have been ready only since then.
 */
export const readHeadScript = luaScript<
  'meta' | 'settings' | 'unattached',
  'base' | 'mark',
  [
    paused: string | null,
    draining: 0 | 1,
    blocked: number,
    nextReadyAt: string,
    oldest: [] | [id: string, task: string, enqueuedAt: string, readyAt: string],
    oldestBlocked: [] | [id: string, readyAt: string],
    unattached: string | null,
  ]
>({
  name: 'read-head',
  keys: ['meta', 'settings', 'unattached'],
  args: ['base', 'mark'],
  includes: INCLUDES,
  lua: `#!lua flags=no-writes
local meta, settings, unattached = KEYS[1], KEYS[2], KEYS[3]
local base, mark = ARGV[1], ARGV[2]
--- @include time
--- @include blocked-tasks
--- @include oldest-tasks
local limits = limits_at(base, millis(), mark)
local starts_next = next_startable(base, limits)
local next_since = starts_next and ready_at(base, starts_next)
local oldest, since, blocked, blocked_since = oldest_tasks(base, limits)
local name, enqueued_at = unpack(oldest and redis.call('HMGET', base .. oldest, 'name', 'timestamp') or {})
return {
  redis.call('HGET', meta, 'paused'),
  redis.call('HEXISTS', settings, 'drain'),
  count_blocked(base, limits),
  next_since and whole(next_since) or '',
  oldest and { oldest, name, enqueued_at, whole(since) } or {},
  blocked and { blocked, whole(blocked_since) } or {},
  redis.call('GET', unattached),
}
`,
})

/**
 * Runs several read commands, all as of the same moment. A transaction would do the same, but a full Redis refuses every command of a
 * transaction.
 */
export const readTogetherScript = luaScript<'first', never, unknown[]>({
  name: 'read-together',
  keys: ['first'],
  args: [],
  includes: INCLUDES,
  lua: `#!lua flags=no-writes
local first = KEYS[1]
local replies, at = {}, 1
while at <= #ARGV do
  local words = tonumber(ARGV[at])
  replies[#replies + 1] = redis.call(unpack(ARGV, at + 1, at + words))
  at = at + words + 1
end
return replies
`,
})

/**
 * Reads what a waiting task in a lane waits for, and how many tasks of the same lane start before it. If the task is further behind in a
 * long lane, it is not searched for, so a task that has left such a lane since may be reported as waiting in it. Takes Redis O(log n) for a
 * task with a priority. Otherwise, the time grows with the number of tasks that are counted.
 */
export const readTurnScript = luaScript<
  'job',
  'base' | 'id' | 'max',
  [ahead: number, kind: 'turn' | 'concurrency' | 'rate' | 'limiter', limiter?: string, until?: string | null] | null
>({
  name: 'read-turn',
  keys: ['job'],
  args: ['base', 'id', 'max'],
  includes: INCLUDES,
  lua: `#!lua flags=no-writes
local job = KEYS[1]
local base, id, max = ARGV[1], ARGV[2], ARGV[3]
--- @include lane
--- @include ticket-of
local field = redis.call('HGET', job, 'lane')
if not field then
  return nil
end
local name = lane_name(field)
local function waits_for(ahead)
  local time = redis.call('ZSCORE', base .. 'lane-times', name)
  if time then
    return { ahead, 'rate', '', time }
  end
  if not redis.call('ZSCORE', base .. 'blocked-lanes', name) then
    return { ahead, 'turn' }
  end
  local key, needs = split_lane(name)
  local limiter = needs and ticket_of(base, name, key, needs)
  if limiter and limiter ~= 'key' then
    return { ahead, 'limiter', limiter, redis.call('ZSCORE', base .. 'lane-times', '\\30' .. limiter) }
  end
  return { ahead, 'concurrency' }
end
local list, most = lane_list(base, name), tonumber(max)
local length = redis.call('LLEN', list)
local rank = redis.call('ZRANK', lane_priorities(base, name), id)
if rank then
  return waits_for(math.min(most, length + rank))
end
local index = redis.call('LPOS', list, id, 'RANK', -1, 'MAXLEN', max)
if index then
  return waits_for(length - index - 1)
end
if length > most then
  return waits_for(most)
end
`,
})

/**
 * Reads what a queue stores about why one of its tasks does not run.
 */
export const readWaitScript = luaScript<
  'meta' | 'settings' | 'wait' | 'prioritized' | 'active' | 'postponed' | 'limiter',
  'id' | 'max',
  [
    now: string,
    postponed: string | null,
    lost: number | null,
    ahead: number,
    meta: Array<string | null>,
    settings: Array<string | null>,
    active: number,
    used: string | null,
    usedForMs: number,
  ]
>({
  name: 'read-wait',
  keys: ['meta', 'settings', 'wait', 'prioritized', 'active', 'postponed', 'limiter'],
  args: ['id', 'max'],
  includes: INCLUDES,
  lua: `#!lua flags=no-writes
local meta, settings, wait, prioritized, active, postponed, limiter = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local id, max = ARGV[1], ARGV[2]
--- @include time
local length, rank = redis.call('LLEN', wait), redis.call('ZRANK', prioritized, id)
local ahead = length + (rank or redis.call('ZCARD', prioritized))
local place = not rank and redis.call('LPOS', wait, id, 'RANK', -1, 'MAXLEN', max)
if place then
  ahead = length - place - 1
end
return {
  whole(millis()),
  redis.call('ZSCORE', postponed, id),
  redis.call('LPOS', active, id, 'MAXLEN', max),
  math.min(ahead, tonumber(max)),
  redis.call('HMGET', meta, 'paused', 'concurrency', 'max', 'duration'),
  redis.call('HMGET', settings, 'sequence:paused', 'drain'),
  redis.call('LLEN', active),
  redis.call('GET', limiter),
  redis.call('PTTL', limiter),
}
`,
})

/**
 * Reads one page of a sorted set, beginning after a task that may have left the set in the meantime. The page begins after the place that
 * the given task has in the set's order, whether or not the task is still there. The page therefore contains exactly the tasks that follow,
 * whatever has been added to or removed from the set in the meantime.
 */
export const sortedSetPageScript = luaScript<
  'set',
  'score' | 'last' | 'limit' | 'descends',
  Array<[id: string, score: string]>
>({
  name: 'sorted-set-page',
  keys: ['set'],
  args: ['score', 'last', 'limit', 'descends'],
  includes: INCLUDES,
  lua: `#!lua flags=no-writes
local set = KEYS[1]
local score, last, limit, descends = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
--- @include rank-in-set
local first = last == '' and 0 or rank_in(set, score, last)
if descends == '1' and last ~= '' then
  local at = redis.call('ZSCORE', set, last)
  if at and tonumber(at) == tonumber(score) then
    first = first - 1
  end
  first = redis.call('ZCARD', set) - first
end
local command = descends == '1' and 'ZREVRANGE' or 'ZRANGE'
local page = redis.call(command, set, first, first + limit - 1, 'WITHSCORES')
local found = {}
for i = 1, #page, 2 do
  found[#found + 1] = { page[i], page[i + 1] }
end
return found
`,
})

/**
 * Finds out whether the server that has a key accepts writes to it, as probe-primary does. O(1).
 */
export const probeNodeScript = luaScript<'anchor', never, void>({
  name: 'probe-node',
  keys: ['anchor'],
  args: [],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local anchor = KEYS[1]
return 1
`,
})

/**
 * Finds out whether a server is a primary that accepts writes. Redis refuses this script on a read-only replica, and whenever it refuses
 * writes, although the script writes nothing, because it does not say so. Redis runs it at `maxmemory`. O(1).
 */
export const probePrimaryScript = luaScript<never, never, void>({
  name: 'probe-primary',
  keys: [],
  args: [],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
return 1
`,
})

/**
 * Deletes delivered entries of a pipeline run's outbox, and the empty outbox itself. An entry that was deleted before is skipped, so a
 * script that is sent again does no harm.
 */
export const deleteRunEntriesScript = luaScript<'outbox', never, void>({
  name: 'delete-run-entries',
  keys: ['outbox'],
  args: [],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local outbox = KEYS[1]
for _, entry in ipairs(ARGV) do
  redis.call('XACK', outbox, 'forwarders', entry)
  redis.call('XDEL', outbox, entry)
end
if redis.call('XLEN', outbox) == 0 then
  redis.call('DEL', outbox)
end
`,
})

/**
 * Adds the items that an attempt of a source has emitted to its run. Values whose positions were emitted before are ignored, so that the
 * script can be sent again.
 */
export const emitItemsScript = luaScript<
  'base' | 'meta' | 'definition' | 'tasks' | 'inputs' | 'early' | 'results' | 'errors' | 'outbox',
  'id' | 'channels' | 'incarnation' | 'segment' | 'token' | 'from' | 'count' | 'digest' | 'cursor' | 'isLast',
  RunReply<'stopped' | 'fenced' | [emitted: number, batch: number, free: number, digest: string, cursor: string]>
>({
  name: 'emit-items',
  keys: ['base', 'meta', 'definition', 'tasks', 'inputs', 'early', 'results', 'errors', 'outbox'],
  args: ['id', 'channels', 'incarnation', 'segment', 'token', 'from', 'count', 'digest', 'cursor', 'isLast'],
  includes: INCLUDES,
  lua: `#!lua
local base, meta, definition, tasks, inputs, early, results, errors, outbox = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local id, channels, incarnation, segment, token, from, count, digest, cursor, isLast = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10]
--- @include run
local FIRST = 11
if run.state ~= 'running' or run.incarnation ~= incarnation then
  return { false, {}, 'stopped', {} }
end
if
  run.source ~= 'active'
  or run.segment ~= segment
  or tonumber(token) < number('fencingToken')
  or tonumber(from) > number('emitted')
then
  return { false, {}, 'fenced', {} }
end
set('fencingToken', token)
set('isWaiting', '')
local fresh = FIRST + math.ceil((number('emitted') - from) / tonumber(run.batch1 or 1))
for i = fresh, #ARGV do
  push_item(ARGV[i])
end
if fresh <= #ARGV then
  set('emitted', from + count)
  set('digest', digest)
  set('cursor', cursor)
end
if isLast == '1' and from + count == number('emitted') then
  set('isExhausted', '1')
end
if run.isExhausted ~= '1' and free() <= 0 then
  set('isWaiting', '1')
end
local answer = reply(millis())
answer[3] = { number('emitted'), number('batch1'), free(), run.digest or '', run.cursor or '' }
return answer
`,
})

/**
 * Records the ends of a pipeline run's tasks, and starts what may start now. Only the first end of each task counts, so that the script
 * can be repeated. Takes constant time for each task.
 */
export const endRunTasksScript = luaScript<
  'base' | 'meta' | 'definition' | 'tasks' | 'inputs' | 'early' | 'results' | 'errors' | 'outbox',
  'id' | 'channels' | 'incarnation',
  RunReply<false | null> | null
>({
  name: 'end-run-tasks',
  keys: ['base', 'meta', 'definition', 'tasks', 'inputs', 'early', 'results', 'errors', 'outbox'],
  args: ['id', 'channels', 'incarnation'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local base, meta, definition, tasks, inputs, early, results, errors, outbox = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local id, channels, incarnation = ARGV[1], ARGV[2], ARGV[3]
--- @include run
if run.incarnation ~= incarnation then
  return false
end
local now = millis()
for i = 4, #ARGV, 4 do
  end_run_task(tonumber(ARGV[i]), ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], now)
end
return reply(now)
`,
})

/**
 * Lets the keys that the cancel of a pipeline run has stored in a queue expire, once none of the run's tasks is left in the queue. Deletes
 * the rule, so that no pass has to look for its tasks. A repeated call does not prolong the times.
 */
export const expireRunCancelScript = luaScript<
  'cancelledGroup' | 'cancelRules' | 'progress' | 'cancelPass' | 'cancelReturned',
  'rule' | 'keepMs',
  void
>({
  name: 'expire-run-cancel',
  keys: ['cancelledGroup', 'cancelRules', 'progress', 'cancelPass', 'cancelReturned'],
  args: ['rule', 'keepMs'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local cancelledGroup, cancelRules, progress, cancelPass, cancelReturned = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local rule, keepMs = ARGV[1], ARGV[2]
--- @include time
if redis.call('HDEL', cancelRules, rule) == 1 then
  redis.call('HSET', progress, 'doneAt', whole(millis()))
end
redis.call('PEXPIRE', progress, keepMs, 'LT')
redis.call('PEXPIRE', cancelledGroup, keepMs, 'LT')
if redis.call('EXISTS', cancelRules) == 0 then
  redis.call('UNLINK', cancelPass, cancelReturned)
end
`,
})

/**
 * Returns which of the given tasks do not exist in their queue, and the outbox of the queue, as of the same moment.
 */
export const findMissingTasksScript = luaScript<'outbox', 'base', [outbox: OutboxSpanReply, missing: string[]]>({
  name: 'find-missing-tasks',
  keys: ['outbox'],
  args: ['base'],
  includes: INCLUDES,
  lua: `#!lua flags=no-writes
local outbox = KEYS[1]
local base = ARGV[1]
--- @include outbox-span
local missing = {}
for i = 2, #ARGV do
  if redis.call('EXISTS', base .. ARGV[i]) == 0 then
    missing[#missing + 1] = ARGV[i]
  end
end
return { outbox_span(outbox), missing }
`,
})

/**
 * Reads a pipeline run.
 */
export const readRunScript = luaScript<
  'base' | 'meta' | 'definition',
  never,
  [fields: string[], definition: string, waiting: number[]] | null
>({
  name: 'read-run',
  keys: ['base', 'meta', 'definition'],
  args: [],
  includes: INCLUDES,
  lua: `#!lua flags=no-writes
local base, meta, definition = KEYS[1], KEYS[2], KEYS[3]
local fields = redis.call('HGETALL', meta)
if #fields == 0 then
  return false
end
local waiting = {}
for stage = 1, redis.call('HGET', meta, 'stages') + 1 do
  waiting[stage] = redis.call('LLEN', base .. 'waiting:' .. stage)
end
return { fields, redis.call('GET', definition), waiting }
`,
})

/**
 * Reads which tasks a pipeline run awaits, a sample at a time, and the outbox of the run, as of the same moment.
 */
export const sampleRunTasksScript = luaScript<
  'meta' | 'tasks' | 'outbox',
  'cursor' | 'count',
  [incarnation: string, outbox: OutboxSpanReply, awaited: string[], sample: string[], cursor: string] | null
>({
  name: 'sample-run-tasks',
  keys: ['meta', 'tasks', 'outbox'],
  args: ['cursor', 'count'],
  includes: INCLUDES,
  lua: `#!lua flags=no-writes
local meta, tasks, outbox = KEYS[1], KEYS[2], KEYS[3]
local cursor, count = ARGV[1], ARGV[2]
--- @include outbox-span
local incarnation = redis.call('HGET', meta, 'incarnation')
if not incarnation then
  return false
end
local awaited = {}
for i = 3, #ARGV do
  if redis.call('SISMEMBER', tasks, ARGV[i]) == 1 then
    awaited[#awaited + 1] = ARGV[i]
  end
end
local sample = redis.call('SSCAN', tasks, cursor, 'COUNT', count)
return { incarnation, outbox_span(outbox), awaited, sample[2], sample[1] }
`,
})

/**
 * Starts a pipeline run. If the run exists, nothing changes.
 */
export const startRunScript = luaScript<
  'base' | 'meta' | 'definition' | 'tasks' | 'inputs' | 'early' | 'results' | 'errors' | 'outbox',
  'id' | 'channels' | 'settings' | 'totalMs' | 'spareMs',
  RunReply<false | null>
>({
  name: 'start-run',
  keys: ['base', 'meta', 'definition', 'tasks', 'inputs', 'early', 'results', 'errors', 'outbox'],
  args: ['id', 'channels', 'settings', 'totalMs', 'spareMs'],
  includes: INCLUDES,
  lua: `#!lua
local base, meta, definition, tasks, inputs, early, results, errors, outbox = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local id, channels, settings, totalMs, spareMs = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
--- @include run
local now = millis()
if run.state then
  return reply(now)
end
for i = 6, #ARGV, 2 do
  set(ARGV[i], ARGV[i + 1])
end
stages = number('stages')
set('state', 'running')
set('createdAt', now)
set('timeoutAt', now + totalMs)
set('expiresAt', now + totalMs + spareMs)
set('source', 'active')
for _, name in ipairs({ 'fencingToken', 'emitted', 'results', 'resultBytes', 'errorCount' }) do
  set(name, 0)
end
set('segment', 1)
set('reduce', run.reduceQueue and 'pending' or 'none')
write('SET', definition, settings)
start(0, 1, '')
touched[meta] = true
return reply(now)
`,
})

/**
 * Cancels a pipeline run by request. A run that is stopping or has ended stays as it is.
 */
export const stopRunScript = luaScript<
  'base' | 'meta' | 'definition' | 'tasks' | 'inputs' | 'early' | 'results' | 'errors' | 'outbox',
  'id' | 'channels' | 'by',
  RunReply<false | null> | null
>({
  name: 'stop-run',
  keys: ['base', 'meta', 'definition', 'tasks', 'inputs', 'early', 'results', 'errors', 'outbox'],
  args: ['id', 'channels', 'by'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local base, meta, definition, tasks, inputs, early, results, errors, outbox = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local id, channels, by = ARGV[1], ARGV[2], ARGV[3]
--- @include run
if not run.state then
  return false
end
local now = millis()
stop('cancelled', by, now)
return reply(now)
`,
})

/**
 * Looks whether a pipeline run needs anything from the leader. Stops the run if its total timeout has passed. Ends the run if it was
 * stopped too long ago. The returned entries include those that another process has left; there may be more of them if there are 100 or
 * more entries. A task that has ended was enqueued, although its queue may not remember it, so its entry is deleted.
 */
export const visitRunScript = luaScript<
  'base' | 'meta' | 'definition' | 'tasks' | 'inputs' | 'early' | 'results' | 'errors' | 'outbox',
  'id' | 'channels' | 'forcedEndMs' | 'leftForMs',
  RunReply<[isCancelOver: 0 | 1, queues: string, reduceQueue: string] | null> | null
>({
  name: 'visit-run',
  keys: ['base', 'meta', 'definition', 'tasks', 'inputs', 'early', 'results', 'errors', 'outbox'],
  args: ['id', 'channels', 'forcedEndMs', 'leftForMs'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local base, meta, definition, tasks, inputs, early, results, errors, outbox = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local id, channels, forcedEndMs, leftForMs = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local MAX_LEFT = 100
--- @include run
if not run.state then
  return false
end
local now = millis()
if run.state ~= 'ended' then
  local is_stopped = run.reason and run.reason ~= 'taken'
  if not is_stopped then
    if now >= number('timeoutAt') then
      stop('run_timeout', 'run ' .. id, now)
    end
  elseif now >= run.stoppedAt + forcedEndMs then
    redis.call('UNLINK', tasks, inputs)
    set('source', 'done')
    for stage = 1, stages do
      set('running' .. stage, 0)
    end
  end
end
local answer = reply(now)
if redis.call('EXISTS', outbox) == 1 then
  local _, left = claim_left(leftForMs, '0-0', MAX_LEFT)
  for _, entry in ipairs(left) do
    local of, stage, position = string.match(entry[2], '^i (%S+) (%d+) (%d+)')
    if of and (of ~= run_token() or redis.call('SISMEMBER', tasks, stage .. '.' .. position) == 0) then
      redis.call('XACK', outbox, 'forwarders', entry[1])
      redis.call('XDEL', outbox, entry[1])
    else
      table.insert(answer[2], entry)
    end
  end
  if redis.call('XLEN', outbox) == 0 then
    redis.call('DEL', outbox)
  end
end
local is_over = run.state == 'ended' and redis.call('EXISTS', outbox) == 0
local is_cancel_over = run.reason and number('endedAt') < number('stoppedAt') + forcedEndMs
answer[3] = is_over and { is_cancel_over and 1 or 0, run.queues, run.reduceQueue or '' } or false
return answer
`,
})

/**
 * Notes which editions of schedules a running process declares, and forgets those that no process has declared for a while.
 */
export const declareSchedulesScript = luaScript<'editions', 'forgetMs' | 'keepMs', string[]>({
  name: 'declare-schedules',
  keys: ['editions'],
  args: ['forgetMs', 'keepMs'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local editions = KEYS[1]
local forgetMs, keepMs = ARGV[1], ARGV[2]
--- @include time
local now = millis()
local known = redis.call('HGETALL', editions)
for i = 1, #known, 2 do
  local last = string.find(known[i], ' ', 1, true) and string.match(known[i + 1], ' (%d+)$')
  if last and tonumber(last) < now - tonumber(forgetMs) then
    redis.call('HDEL', editions, known[i])
  end
end
for i = 3, #ARGV, 2 do
  local field = ARGV[i] .. ' ' .. ARGV[i + 1]
  local first = string.match(redis.call('HGET', editions, field) or '', '^%d+') or whole(now)
  redis.call('HSET', editions, field, first .. ' ' .. whole(now))
end
redis.call('PEXPIRE', editions, keepMs)
return redis.call('HGETALL', editions)
`,
})

/**
 * Reads a queue's schedules: all of them, or those that are due.
 */
export const readSchedulesScript = luaScript<
  'schedules' | 'scheduleTimes',
  'within',
  [now: number, schedules: Array<string | null>]
>({
  name: 'read-schedules',
  keys: ['schedules', 'scheduleTimes'],
  args: ['within'],
  includes: INCLUDES,
  lua: `#!lua flags=no-writes
local schedules, scheduleTimes = KEYS[1], KEYS[2]
local within = ARGV[1]
--- @include time
local now = millis()
if within == '' then
  return { now, redis.call('HVALS', schedules) }
end
local names = redis.call('ZRANGEBYSCORE', scheduleTimes, '-inf', whole(now + within), 'LIMIT', 0, 500)
if #names == 0 then
  return { now, {} }
end
return { now, redis.call('HMGET', schedules, unpack(names)) }
`,
})

/**
 * Stores which troubles of a schedule the leader has reported. Does nothing if a newer leader has worked on the queue.
 */
export const reportTroublesScript = luaScript<'leader' | 'scheduleTroubles', 'fencing' | 'name' | 'troubles', void>({
  name: 'report-troubles',
  keys: ['leader', 'scheduleTroubles'],
  args: ['fencing', 'name', 'troubles'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local leader, scheduleTroubles = KEYS[1], KEYS[2]
local fencing, name, troubles = ARGV[1], ARGV[2], ARGV[3]
--- @include fence
if is_deposed(leader, fencing) then
  return
end
if troubles == '' then
  redis.call('HDEL', scheduleTroubles, name)
else
  redis.call('HSET', scheduleTroubles, name, troubles)
end
`,
})

/**
 * Enqueues the task of a schedule's tick, and moves the schedule past the tick. A second call with the same arguments changes nothing and
 * returns the same. The first arguments are described in schedule-write.lua.
 */
export const runScheduleScript = luaScript<
  'schedules' | 'scheduleTimes' | 'settings',
  'name' | 'expected' | 'token' | 'record' | 'wakeAt' | 'notBefore' | 'base',
  WriteResult
>({
  name: 'run-schedule',
  keys: ['schedules', 'scheduleTimes', 'settings'],
  args: ['name', 'expected', 'token', 'record', 'wakeAt', 'notBefore', 'base'],
  includes: INCLUDES,
  lua: `#!lua
local schedules, scheduleTimes, settings = KEYS[1], KEYS[2], KEYS[3]
local name, expected, token, record, wakeAt, notBefore, base = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
--- @include schedule-write
--- @include new-tasks
local refused = refusal()
if refused then
  return refused
end
if redis.call('HEXISTS', settings, 'drain') == 1 then
  return 'draining'
end
local reply = add_tasks(8, #ARGV, false)[1]
if type(reply) == 'table' and reply[1] == 'error' then
  return redis.error_reply(reply[2])
end
write_schedule()
return 'written'
`,
})

/**
 * Creates, changes or deletes a schedule, unless it has been written since it was read. A second call with the same arguments changes
 * nothing and returns the same. The arguments are described in schedule-write.lua.
 */
export const writeScheduleScript = luaScript<
  'schedules' | 'scheduleTimes',
  'name' | 'expected' | 'token' | 'record' | 'wakeAt' | 'notBefore',
  WriteResult
>({
  name: 'write-schedule',
  keys: ['schedules', 'scheduleTimes'],
  args: ['name', 'expected', 'token', 'record', 'wakeAt', 'notBefore'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local schedules, scheduleTimes = KEYS[1], KEYS[2]
local name, expected, token, record, wakeAt, notBefore = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
--- @include schedule-write
local refused = refusal()
if refused then
  return refused
end
write_schedule()
return 'written'
`,
})

/**
 * Lets the scripts add all of BullMQ's events to the queue's stream for some time, because a reader follows it (../backend-events.ts).
 * A queue without the field has all events at any time.
 */
export const addAllEventsScript = luaScript<'meta', 'forMs', null>({
  name: 'add-all-events',
  keys: ['meta'],
  args: ['forMs'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local meta = KEYS[1]
local forMs = ARGV[1]
--- @include time
if redis.call('HEXISTS', meta, 'allEventsUntil') == 1 then
  redis.call('HSET', meta, 'allEventsUntil', whole(millis() + forMs))
end
`,
})

/**
 * Adds one job of a team's own Queue, alone or in a transaction of the team's.
 */
export const addJobScript = luaScript<'any', never, string | number>({
  name: 'add-job',
  keys: ['any'],
  args: [],
  includes: INCLUDES,
  lua: `#!lua
local any = KEYS[1]
--- @include own-adds
local job = read_own_job(1)
return add_job(job, false)
`,
})

/**
 * Adds several jobs of a team's own Queue, or the jobs of a FlowProducer, each to its queue. A parent comes before its children.
 */
export const addJobsScript = luaScript<'any', 'isFlow', (string | number)[]>({
  name: 'add-jobs',
  keys: ['any'],
  args: ['isFlow'],
  includes: INCLUDES,
  lua: `#!lua
local any = KEYS[1]
local isFlow = ARGV[1]
--- @include own-adds
local replies, job, at = {}, nil, 2
while at <= #ARGV do
  job, at = read_own_job(at)
  replies[#replies + 1] = add_job(job, isFlow == '1')
end
end_flow()
return replies
`,
})

/**
 * Adds a job scheduler with its next job, or changes one, in place of BullMQ's `addJobScheduler`. The next job of a changed scheduler
 * replaces the one that is waiting.
 */
export const addSchedulerScript = luaScript<
  'schedulers',
  'base' | 'scheduler' | 'time' | 'settings' | 'data' | 'template' | 'options',
  [id: string, delayMs: number] | number
>({
  name: 'add-scheduler',
  keys: ['schedulers'],
  args: ['base', 'scheduler', 'time', 'settings', 'data', 'template', 'options'],
  includes: INCLUDES,
  lua: `#!lua
local schedulers = KEYS[1]
local base, scheduler, time, settings, data, template, options = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
--- @include time
--- @include job-removal
--- @include leave-place
--- @include scheduler
local MAX_TIMES = 33
local STORED = { 'tz', 'limit', 'pattern', 'startDate', 'endDate', 'every', 'offset' }
local hash, now = schedulers .. ':' .. scheduler, millis()
local set, job = cjson.decode(settings), { data = data, options = cjson.decode(options) }
local every, last = set.every, tonumber(redis.call('ZSCORE', schedulers, scheduler))
local current = last and planned_id(scheduler, last)
job.name = set.name
local function waits(id)
  return redis.call('EXISTS', base .. id) == 1
    and (
      redis.call('ZSCORE', base .. 'delayed', id)
      or redis.call('ZSCORE', base .. 'prioritized', id)
      or redis.call('LPOS', base .. 'wait', id)
    )
end
local replaces = current and waits(current)
local function is_free(id)
  return replaces and id == current or redis.call('EXISTS', base .. id) == 0
end
local function plan_by_interval()
  local is_changed = last and tonumber(redis.call('HGET', hash, 'every')) ~= every
  local of_job = job.options['repeat'] or {}
  local offset = set.offset or of_job.offset or 0
  local planned, found_offset = next_time(not is_changed and last or nil, every, now, offset, set.startDate)
  if replaces and not is_changed then
    return last
  end
  set.offset = not replaces and found_offset or set.offset
  for _ = 1, MAX_TIMES do
    if is_free(planned_id(scheduler, planned)) then
      return planned
    end
    planned = planned + every
  end
  return nil
end
local function may_replace(id)
  return replaces and (redis.call('ZSCORE', base .. 'completed', id) or redis.call('ZSCORE', base .. 'failed', id))
end
local function store_scheduler(planned)
  local iterations, offset = unpack(redis.call('HMGET', hash, 'ic', 'offset'))
  set.offset = set.offset or offset
  local fields = { 'name', set.name, 'ic', iterations or '1' }
  for _, name in ipairs(STORED) do
    append_given(fields, name, set[name])
  end
  append_given(fields, 'opts', template ~= '{}' and template)
  append_given(fields, 'data', data ~= '{}' and data)
  redis.call('ZADD', schedulers, whole(planned), scheduler)
  redis.call('DEL', hash)
  redis.call('HSET', hash, unpack(fields))
end
local planned = tonumber(time)
if every then
  planned = plan_by_interval()
  if not planned then
    return -11
  end
else
  set.offset = set.offset or not replaces and 0 or nil
end
local id = planned_id(scheduler, planned)
local is_taken = not is_free(id)
if is_taken and not may_replace(id) then
  return -10
end
if replaces then
  take_out(current)
  delete_in_bulk(current)
end
if is_taken then
  leave_set(base, 'completed', id)
  leave_set(base, 'failed', id)
  delete_in_bulk(id)
end
store_scheduler(planned)
return { id, add_planned(scheduler, planned, now, job) }
`,
})

/**
 * Adds tasks to one queue.
 */
export const addScript = luaScript<'any', 'base' | 'isAll' | 'length', AddReply[]>({
  name: 'add',
  keys: ['any'],
  args: ['base', 'isAll', 'length'],
  includes: INCLUDES,
  lua: `#!lua
local any = KEYS[1]
local base, isAll, length = ARGV[1], ARGV[2], ARGV[3]
--- @include new-tasks
return add_tasks(4, tonumber(length), isAll == '1')
`,
})

/**
 * Changes the data of a job, in place of BullMQ's `updateData`. A task that has not ended is charged for what the data takes
 * (includes/task/task-charge.lua).
 */
export const changeDataScript = luaScript<'job' | 'totals', 'data', number>({
  name: 'change-data',
  keys: ['job', 'totals'],
  args: ['data'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local job, totals = KEYS[1], KEYS[2]
local data = ARGV[1]
if redis.call('EXISTS', job) == 0 then
  return -1
end
if redis.call('HEXISTS', job, 'finishedOn') == 0 then
  redis.call('HINCRBY', totals, 'bytes', #data - redis.call('HSTRLEN', job, 'data'))
end
redis.call('HSET', job, 'data', data)
return 0
`,
})

/**
 * Changes when a delayed task is due, in place of BullMQ's `changeDelay`.
 */
export const changeDelayScript = luaScript<'job', 'base' | 'id' | 'delay', number>({
  name: 'change-delay',
  keys: ['job'],
  args: ['base', 'id', 'delay'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local job = KEYS[1]
local base, id, delay = ARGV[1], ARGV[2], ARGV[3]
--- @include place-again
--- @include note-moved
local function part_of()
  if redis.call('ZSCORE', base .. 'scheduled', id) then
    return 'scheduled'
  end
  local has_failed = (tonumber(redis.call('HGET', job, 'atm')) or 0) > 0
  return (has_failed or redis.call('ZSCORE', base .. 'retrying', id)) and 'retrying' or 'scheduled'
end
if redis.call('EXISTS', job) == 0 then
  return -1
end
local part = part_of()
if not leave_delayed(base, id) then
  return -3
end
local due = millis() + math.max(0, delay)
redis.call('HSET', job, 'delay', delay)
delay_task(id, due, part)
add_move_event('delayed', id, 'delay', whole(due))
write_waiting()
note_moved(id)
return 0
`,
})

/**
 * Changes the priority of a task, in place of BullMQ's `changePriority`. If the task is waiting and not delayed, it moves behind the others
 * of that priority or, with `lifo`, before them. The priority of a delayed task applies when it is due, and that of a running one when it
 * returns.
 */
export const changePriorityScript = luaScript<'job', 'base' | 'id' | 'priority' | 'lifo', number>({
  name: 'change-priority',
  keys: ['job'],
  args: ['base', 'id', 'priority', 'lifo'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local job = KEYS[1]
local base, id, priority, lifo = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
--- @include place-again
--- @include leave-place
--- @include note-moved
if redis.call('EXISTS', job) == 0 then
  return -1
end
redis.call('HSET', job, 'priority', priority)
if leave_ready(id) then
  place_waiting(id, redis.call('HGET', job, 'lane'), tonumber(priority), lifo == '1')
  write_waiting()
  note_moved(id)
end
return 0
`,
})

/**
 * Stores the current schema version, unless the namespace already has a version or holds data of 0.1.0.
 */
export const claimNamespaceScript = luaScript<'schema' | 'legacyFleet', 'version' | 'hasLegacyQueue', string>({
  name: 'claim-namespace',
  keys: ['schema', 'legacyFleet'],
  args: ['version', 'hasLegacyQueue'],
  includes: INCLUDES,
  lua: `#!lua
local schema, legacyFleet = KEYS[1], KEYS[2]
local version, hasLegacyQueue = ARGV[1], ARGV[2]
local stored = redis.call('GET', schema)
if stored then
  return stored
end
if hasLegacyQueue == '1' or redis.call('EXISTS', legacyFleet) == 1 then
  return '1'
end
redis.call('SET', schema, version)
return version
`,
})

/**
 * Removes old jobs of one state, in place of BullMQ's `cleanJobsInSet`: the oldest ones of a list, or those of a set with the lowest
 * scores. The states `wait` and `prioritized` include the tasks in lanes.
 */
export const cleanJobsScript = luaScript<'place', 'base' | 'state' | 'before' | 'limit', string[]>({
  name: 'clean-jobs',
  keys: ['place'],
  args: ['base', 'state', 'before', 'limit'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local place = KEYS[1]
local base, state, before, limit = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
--- @include job-removal
local OF_LISTS = { 'finishedOn', 'processedOn', 'timestamp' }
local TIMES = {
  active = OF_LISTS,
  wait = OF_LISTS,
  paused = OF_LISTS,
  delayed = { 'processedOn', 'timestamp' },
  prioritized = { 'timestamp' },
}
local times, removed, most = TIMES[state], {}, tonumber(limit)
local function is_old(id)
  for _, time in ipairs(redis.call('HMGET', base .. id, unpack(times))) do
    if time then
      return tonumber(time) <= tonumber(before)
    end
  end
  return true
end
local function may_remove(id)
  if not times then
    return true
  end
  local is_held = state == 'active' and is_running(base .. id)
  return not is_held and not is_next_of_scheduler(id) and is_old(id)
end
local function remove(id)
  local lane = state == 'active' and redis.call('HGET', base .. id, 'lane')
  if lane then
    give_back(lane)
  end
  delete_in_bulk(id)
  removed[#removed + 1] = id
end
local function left()
  return most > 0 and most - #removed or 0
end
local function clean_list(list)
  local ids, removed_before = redis.call('LRANGE', list, most > 0 and -left() or 0, -1), #removed
  for i, id in ipairs(ids) do
    if may_remove(id) then
      redis.call('LSET', list, i - #ids - 1, '')
      remove(id)
    end
  end
  if #removed > removed_before then
    redis.call('LREM', list, 0, '')
  end
end
local function clean_set(set)
  local range = most > 0 and { 'LIMIT', 0, left() } or {}
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', set, 0, times and '+inf' or before, unpack(range))) do
    if may_remove(id) then
      if set == place then
        leave_set(base, state, id)
      else
        redis.call('ZREM', set, id)
      end
      remove(id)
    end
  end
end
local is_list = times == OF_LISTS
local clean, key_in_lane = is_list and clean_list or clean_set, is_list and lane_list or lane_priorities
clean(place)
local has_lanes = state == 'wait' or state == 'prioritized'
for _, name in ipairs(has_lanes and redis.call('ZRANGE', base .. 'lanes', 0, -1) or {}) do
  if most > 0 and left() == 0 then
    break
  end
  local removed_before = #removed
  clean(key_in_lane(base, name))
  if #removed > removed_before then
    note_left_lane(name, #removed - removed_before)
  end
end
redis.call('XADD', base .. 'events', '*', 'event', 'cleaned', 'count', #removed)
return removed
`,
})

/**
 * Removes all waiting jobs, in place of BullMQ's `drain`, except for the next ones of job schedulers. O(n).
 */
export const drainQueueScript = luaScript<'wait', 'base' | 'delayed', void>({
  name: 'drain-queue',
  keys: ['wait'],
  args: ['base', 'delayed'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local wait = KEYS[1]
local base, delayed = ARGV[1], ARGV[2]
--- @include job-removal
--- @include forget-turns
local function drain_list(list)
  local kept = {}
  for _, id in ipairs(redis.call('LRANGE', list, 0, -1)) do
    if is_next_of_scheduler(id) then
      kept[#kept + 1] = id
    else
      delete_in_bulk(id)
    end
  end
  redis.call('DEL', list)
  for _, id in ipairs(kept) do
    redis.call('RPUSH', list, id)
  end
end
local function drain_set(set)
  for _, id in ipairs(redis.call('ZRANGE', base .. set, 0, -1)) do
    if not is_next_of_scheduler(id) then
      leave_set(base, set, id)
      delete_in_bulk(id)
    end
  end
end
drain_list(wait)
drain_list(base .. 'paused')
drain_set('prioritized')
for _, name in ipairs(redis.call('ZRANGE', base .. 'lanes', 0, -1)) do
  drain_list(lane_list(base, name))
  drain_set('lane-priorities:' .. name)
end
redis.call('UNLINK', base .. 'lanes')
forget_turns(base)
if delayed == '1' then
  drain_set('delayed')
end
`,
})

/**
 * Ends attempts of the tasks of one queue, and starts tasks: what one Worker asks for at about the same time.
 */
export const endAndStartScript = luaScript<
  'any',
  'base' | 'time' | 'count' | 'length' | 'lockMs' | 'worker' | 'ownMax' | 'ownPerMs' | 'candidates',
  MoveReply[]
>({
  name: 'end-and-start',
  keys: ['any'],
  args: ['base', 'time', 'count', 'length', 'lockMs', 'worker', 'ownMax', 'ownPerMs', 'candidates'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local any = KEYS[1]
local base, time, count, length, lockMs, worker, ownMax, ownPerMs, candidates = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9]
--- @include given-time
--- @include lock
local reads_clock, is_repeat = time == '', #ARGV > tonumber(length)
time = given_time(time)
local now = tonumber(time)
local features, has_ended, has_delayed, is_idle
--- @include task-charge
--- @include queue-meta
--- @include rare-functions
--- @include task-end
--- @include attempt-end
--- @include task-start
--- @include error-text
local MAX_BYTES = 262144
local function size_of(fields)
  local size = 0
  for i = 2, fields == 0 and 0 or #fields, 2 do
    size = size + #fields[i]
  end
  return size
end
local function go_on(token, starts, id, is_done)
  local start = is_repeat and starts and rare('resent').started_before(token, id) or nil
  if start or not is_done then
    return start
  end
  start = starts and start_task(token) or nil
  if has_delayed and not (start and start[1] ~= 0) then
    rare('idle').wake_when_due()
  end
  if has_ended and (not start or is_idle) then
    rare('idle').note_drained()
  end
  return start
end
local replies, bytes, at = {}, 0, 10
for n = 1, tonumber(count) do
  local token, starts, id = ARGV[at], ARGV[at + 1] == '1', ARGV[at + 2]
  local is_whole, code, is_done, start = true, 0, true, 0
  features, has_ended, has_delayed, is_idle = nil, false, false, false
  at = at + 3
  if id ~= '' then
    found_nothing = nil
    local ending
    ending, at = read_end(id, token, at)
    is_whole, code, is_done = pcall(end_attempt, ending)
  end
  if not is_whole then
    code = error_text(code)
  elseif code >= 0 then
    local is_late, found = starts and bytes > MAX_BYTES and not is_repeat, nil
    is_whole, found = pcall(go_on, token, starts and not is_late, id, is_done)
    if not is_whole and id == '' then
      code = error_text(found)
    elseif is_late and is_done then
      start = 'later'
    elseif is_whole and found then
      start = found
      bytes = bytes + size_of(found[1])
    end
  end
  replies[n] = { code, start }
end
refund_ended()
if reads_clock then
  replies[#replies + 1] = { now, 0 }
end
return replies
`,
})

/**
 * Adds tasks from outboxes to one queue. Redis runs this script even if its memory is full, because each task takes the place of an entry
 * that takes as much memory.
 */
export const forwardScript = luaScript<'any', 'base' | 'length', AddReply[]>({
  name: 'forward',
  keys: ['any'],
  args: ['base', 'length'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local any = KEYS[1]
local base, length = ARGV[1], ARGV[2]
--- @include new-tasks
return add_tasks(3, tonumber(length), false)
`,
})

/**
 * Detects whether Bullpen 0.1.0 wrote a queue. That version stored no schema version, so its data is recognised by keys that only it
 * wrote, or by one of its jobs at either end of a place. Examines at most twelve jobs.
 */
export const isLegacyScript = luaScript<
  'switches' | 'cancelFeeds' | 'wait' | 'active' | 'prioritized' | 'delayed' | 'completed' | 'failed',
  'base' | 'backoffType',
  0 | 1
>({
  name: 'is-legacy',
  keys: ['switches', 'cancelFeeds', 'wait', 'active', 'prioritized', 'delayed', 'completed', 'failed'],
  args: ['base', 'backoffType'],
  includes: INCLUDES,
  lua: `#!lua flags=no-writes
local switches, cancelFeeds, wait, active, prioritized, delayed, completed, failed = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local base, backoffType = ARGV[1], ARGV[2]
if redis.call('EXISTS', switches, cancelFeeds) > 0 then
  return 1
end
local function is_legacy(id)
  local job = redis.call('HMGET', base .. id, 'data', 'opts')
  return job[1]
    and job[2]
    and string.sub(job[1], 1, 7) == '{"v":1,'
    and string.find(job[2], '"type":"' .. backoffType .. '"', 1, true)
end
for _, at in ipairs({ 0, -1 }) do
  for _, list in ipairs({ wait, active }) do
    local id = redis.call('LINDEX', list, at)
    if id and is_legacy(id) then
      return 1
    end
  end
  for _, set in ipairs({ prioritized, delayed, completed, failed }) do
    local id = redis.call('ZRANGE', set, at, at)[1]
    if id and is_legacy(id) then
      return 1
    end
  end
end
return 0
`,
})

/**
 * Removes up to `count` jobs of a paused queue, wherever they are, and finally what BullMQ stores about the queue, in place of BullMQ's
 * `obliterate`. What Bullpen stores stays, so that the totals say what has become of the tasks.
 */
export const obliterateQueueScript = luaScript<'meta', 'base' | 'count' | 'force', number>({
  name: 'obliterate-queue',
  keys: ['meta'],
  args: ['base', 'count', 'force'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local meta = KEYS[1]
local base, count, force = ARGV[1], ARGV[2], ARGV[3]
--- @include job-removal
--- @include forget-turns
local left = tonumber(count)
local function remove_from_list(list, leave)
  local ids = redis.call('LRANGE', list, 0, left - 1)
  for _, id in ipairs(ids) do
    if leave then
      leave(id)
    end
    delete_in_bulk(id)
  end
  redis.call('LTRIM', list, #ids, -1)
  left = left - #ids
end
local function remove_from_set(set)
  local ids = redis.call('ZRANGE', base .. set, 0, left - 1)
  for _, id in ipairs(ids) do
    leave_set(base, set, id)
    delete_in_bulk(id)
  end
  left = left - #ids
end
local function leave_active(id)
  redis.call('DEL', base .. id .. ':lock')
  local lane = redis.call('HGET', base .. id, 'lane')
  if lane then
    give_back(lane)
  end
end
local function remove_schedulers()
  local names = redis.call('ZRANGE', base .. 'repeat', 0, left - 1)
  for _, name in ipairs(names) do
    redis.call('DEL', base .. 'repeat:' .. name)
    redis.call('ZREM', base .. 'repeat', name)
  end
  left = left - #names
end
local function remove_from_lanes()
  for _, name in ipairs(redis.call('ZRANGE', base .. 'lanes', 0, -1)) do
    local before = left
    remove_from_list(lane_list(base, name))
    if left > 0 then
      remove_from_set('lane-priorities:' .. name)
    end
    if left < before then
      note_left_lane(name, before - left)
    end
    if left <= 0 then
      return
    end
  end
  forget_turns(base)
end
local function remove_list(name)
  return function()
    remove_from_list(base .. name, name == 'active' and leave_active or nil)
  end
end
local function remove_set(name)
  return function()
    remove_from_set(name)
  end
end
if redis.call('HEXISTS', meta, 'paused') == 0 then
  return -1
end
if force ~= '1' and redis.call('EXISTS', base .. 'active') == 1 then
  return -2
end
local steps = {
  remove_list('active'),
  remove_set('delayed'),
  remove_schedulers,
  remove_set('completed'),
  remove_list('wait'),
  remove_list('paused'),
  remove_set('prioritized'),
  remove_from_lanes,
  remove_set('failed'),
}
for _, step in ipairs(steps) do
  step()
  if left <= 0 then
    return 1
  end
end
for _, name in ipairs({
  'events',
  'delay',
  'stalled-check',
  'attached-check',
  'stalled',
  'unrenewed',
  'id',
  'pc',
  'marker',
  'meta',
}) do
  redis.call('DEL', base .. name)
end
for _, outcome in ipairs({ 'completed', 'failed' }) do
  redis.call('DEL', base .. 'metrics:' .. outcome, base .. 'metrics:' .. outcome .. ':data')
end
return 0
`,
})

/**
 * Lets the scripts omit BullMQ's events of moves in a namespace's queue, unless somebody reads them (../backend-events.ts). Does nothing if
 * an earlier call has done so. Runs even if Redis is full, because a worker that starts will end tasks.
 */
export const omitMoveEventsScript = luaScript<'meta', 'afterMs', null>({
  name: 'omit-move-events',
  keys: ['meta'],
  args: ['afterMs'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local meta = KEYS[1]
local afterMs = ARGV[1]
--- @include time
redis.call('HSETNX', meta, 'allEventsUntil', whole(millis() + afterMs))
`,
})

/**
 * Pauses or resumes a queue, in place of BullMQ's `pause`.
 */
export const pauseQueueScript = luaScript<'any', 'base' | 'paused', number>({
  name: 'pause-queue',
  keys: ['any'],
  args: ['base', 'paused'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local any = KEYS[1]
local base, paused = ARGV[1], ARGV[2]
--- @include pausing
if paused == '1' then
  pause_queue()
  return 0
end
if take_back_jobs() then
  return 1
end
resume_queue()
wake_workers()
return 0
`,
})

/**
 * Lets a delayed task start at once, in place of BullMQ's `promote`. A task that has waited for a place in quarantine keeps its turn
 * (includes/end/task-return.lua).
 */
export const promoteTaskScript = luaScript<'job', 'base' | 'id', number>({
  name: 'promote-task',
  keys: ['job'],
  args: ['base', 'id'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local job = KEYS[1]
local base, id = ARGV[1], ARGV[2]
--- @include place-again
--- @include leave-place
if redis.call('EXISTS', job) == 0 or not leave_delayed(base, id) then
  return -3
end
local lane, priority, keeps_turn = unpack(redis.call('HMGET', job, 'lane', 'priority', 'waits'))
redis.call('HSET', job, 'delay', '0')
if keeps_turn then
  redis.call('HDEL', job, 'waits')
end
place_waiting(id, lane, tonumber(priority) or 0, keeps_turn)
add_move_event('waiting', id, 'prev', 'delayed')
write_waiting()
return 0
`,
})

/**
 * Returns the tasks that have lost their worker to the queue, in two checks, as BullMQ does. A check marks the active tasks, and the
 * renewal of a task's lock removes its mark. A task that the next check finds marked and without a lock has lost its worker.
 */
export const recoverScript = luaScript<
  'unrenewed',
  'base' | 'now' | 'maxLosses' | 'fencing' | 'checkMs' | 'position',
  [position: string, expiresInMs: number | null, unattached: string[], ...recovered: string[]]
>({
  name: 'recover',
  keys: ['unrenewed'],
  args: ['base', 'now', 'maxLosses', 'fencing', 'checkMs', 'position'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local unrenewed = KEYS[1]
local base, now, maxLosses, fencing, checkMs, position = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
--- @include fence
--- @include given-time
--- @include lock
--- @include unmark
--- @include lost-attempts
local MARKS_AT_ONCE, MARKED_AT_ONCE = 500, 1000
local RETURNED_AT_ONCE, MAX_PASSED = 50, 100000
local active = base .. 'active'
now = given_time(now)
local unattached = {}
local function left_of_marked(id)
  local job = base .. id
  local left = own_lock_left(job)
  if left then
    return left
  end
  left = redis.call('PTTL', job .. ':lock')
  if left ~= -2 and fencing ~= '' then
    unattached[#unattached + 1] = id
    unattached[#unattached + 1] = redis.call('HGET', job, 'pb') or ''
  end
  return left
end
local function look_at_marks(cursor)
  local most = math.floor(MAX_PASSED / math.max(1, redis.call('LLEN', active)))
  most = math.max(1, math.min(most, RETURNED_AT_ONCE))
  local after, ids = unpack(redis.call('SSCAN', unrenewed, cursor, 'COUNT', MARKS_AT_ONCE))
  local lost, soonest = {}, nil
  for _, id in ipairs(ids) do
    local left = left_of_marked(id)
    if left >= 0 then
      soonest = math.min(soonest or left, left)
    elseif left == -2 and #lost == most then
      return lost, soonest, cursor
    elseif left == -2 then
      lost[#lost + 1] = read_lost(id)
    end
  end
  return lost, soonest, after == '0' and '' or after
end
local function return_all(lost)
  local returned = {}
  for _, task in ipairs(lost) do
    unmark(task.id)
    if redis.call('LREM', active, '-1', task.id) == 1 and task.exists then
      return_lost(task, now, tonumber(maxLosses))
      returned[#returned + 1] = task.id
    end
  end
  if #returned > 0 then
    redis.call('HINCRBY', base .. 'totals', 'recovered', #returned)
    if is_open() then
      redis.call('ZADD', base .. 'marker', '0', '0')
    end
  end
  return returned
end
local function mark_active(marked)
  local ids = redis.call('LRANGE', active, -(marked + MARKED_AT_ONCE), -(marked + 1))
  if #ids > 0 then
    redis.call('SADD', unrenewed, unpack(ids))
  end
  return #ids == MARKED_AT_ONCE
end
if fencing ~= '' and is_deposed(base .. 'leader', fencing) then
  return { '', false, {} }
end
if checkMs ~= '' and not redis.call('SET', base .. 'attached-check', now, 'PX', checkMs, 'NX') then
  return { '', false, {} }
end
if position == '0 0' then
  redis.call('DEL', base .. 'stalled')
end
local cursor, marked = string.match(position, '^(%d*) (%d+)$')
local lost, soonest = {}, nil
if cursor ~= '' then
  lost, soonest, cursor = look_at_marks(cursor)
end
local returned = return_all(lost)
if cursor ~= '' then
  return { cursor .. ' 0', soonest or false, unattached, unpack(returned) }
end
local has_more = mark_active(tonumber(marked))
return { has_more and ' ' .. whole(marked + MARKED_AT_ONCE) or '', soonest or false, unattached, unpack(returned) }
`,
})

/**
 * Lets a parent no longer wait for a child, in place of BullMQ's `removeChildDependency`. If it was the last one, the parent starts.
 */
export const removeChildDependencyScript = luaScript<'job', 'parent', number>({
  name: 'remove-child-dependency',
  keys: ['job'],
  args: ['parent'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local job = KEYS[1]
local parent = ARGV[1]
--- @include remove-ended
if redis.call('EXISTS', job) == 0 then
  return -1
end
if redis.call('EXISTS', parent) == 0 then
  return -5
end
if redis.call('SISMEMBER', parent .. ':dependencies', job) == 0 then
  return 1
end
leave_parent(job, parent)
redis.call('HDEL', job, 'parentKey', 'parent')
return 0
`,
})

/**
 * Removes a job, wherever it is, in place of BullMQ's `removeJob`.
 */
export const removeJobScript = luaScript<'job', 'base' | 'id' | 'children', number>({
  name: 'remove-job',
  keys: ['job'],
  args: ['base', 'id', 'children'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local job = KEYS[1]
local base, id, children = ARGV[1], ARGV[2], ARGV[3]
--- @include job-removal
if is_next_of_scheduler(id) then
  return -8
end
if is_locked(job, children == '1') then
  return 0
end
remove_job(base, id, nil, { with_children = children == '1' })
return 1
`,
})

/**
 * Deletes those of some jobs that are in no place, in place of BullMQ's `removeOrphanedJobs`. A hash of Bullpen's may have any name, so
 * a hash without a job's name stays. The leader's repair counts such a job as removed, and does not count its bytes (internals/status/
 * index-repair.ts), so it is not counted here.
 */
export const removeOrphansScript = luaScript<'wait', 'base', number>({
  name: 'remove-orphans',
  keys: ['wait'],
  args: ['base'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local wait = KEYS[1]
local base = ARGV[1]
--- @include delete-job
--- @include lane
local LISTS = { wait, base .. 'active', base .. 'paused' }
local SETS = { 'completed', 'failed', 'delayed', 'prioritized', 'waiting-children' }
local function is_in_place(id, lane)
  for _, list in ipairs(LISTS) do
    if redis.call('LPOS', list, id) then
      return true
    end
  end
  for _, set in ipairs(SETS) do
    if redis.call('ZSCORE', base .. set, id) then
      return true
    end
  end
  local name = lane and lane_name(lane)
  return name
    and (redis.call('LPOS', lane_list(base, name), id) or redis.call('ZSCORE', lane_priorities(base, name), id))
end
local function read_job(id)
  local kind = redis.call('TYPE', base .. id).ok
  if kind ~= 'hash' then
    return kind == 'none', false
  end
  local name, lane = unpack(redis.call('HMGET', base .. id, 'name', 'lane'))
  return name, lane
end
local removed = 0
for i = 2, #ARGV do
  local id = ARGV[i]
  local is_job, lane = read_job(id)
  if is_job and not is_in_place(id, lane) then
    local has_lock = redis.call('DEL', base .. id .. ':lock') == 1
    if delete_keys(base .. id) or has_lock then
      removed = removed + 1
    end
  end
end
return removed
`,
})

/**
 * Removes a job scheduler, and its next job if that is delayed, in place of BullMQ's `removeJobScheduler`.
 */
export const removeSchedulerScript = luaScript<'schedulers', 'base' | 'scheduler', number>({
  name: 'remove-scheduler',
  keys: ['schedulers'],
  args: ['base', 'scheduler'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local schedulers = KEYS[1]
local base, scheduler = ARGV[1], ARGV[2]
--- @include queue-meta
--- @include job-removal
local next_at = redis.call('ZSCORE', schedulers, scheduler)
if not next_at then
  return 1
end
local id = 'repeat:' .. scheduler .. ':' .. next_at
if leave_set(base, 'delayed', id) then
  delete_in_bulk(id)
  add_bullmq_event('removed', id, 'prev', 'delayed')
end
redis.call('ZREM', schedulers, scheduler)
redis.call('DEL', schedulers .. ':' .. scheduler)
return 0
`,
})

/**
 * Removes the children of a job, and theirs, that no worker has and that have not ended, in place of BullMQ's `removeUnprocessedChildren`.
 */
export const removeUnprocessedChildrenScript = luaScript<'job', 'base', void>({
  name: 'remove-unprocessed-children',
  keys: ['job'],
  args: ['base'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local job = KEYS[1]
local base = ARGV[1]
--- @include job-removal
remove_children(job, { with_children = true, is_unprocessed = true })
`,
})

/**
 * Lets a task that has ended run again, in place of BullMQ's `reprocessJob`.
 */
export const retryEndedScript = luaScript<'job', 'base' | 'id' | 'set' | 'lifo' | 'attempts' | 'starts', number>({
  name: 'retry-ended',
  keys: ['job'],
  args: ['base', 'id', 'set', 'lifo', 'attempts', 'starts'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local job = KEYS[1]
local base, id, set, lifo, attempts, starts = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
--- @include return-ended
local name, compensated, lane, priority, deaths, parent =
  unpack(redis.call('HMGET', job, 'name', 'compensated', 'lane', 'priority', 'deaths', 'parentKey'))
if not name then
  return -1
end
if compensated or not redis.call('ZSCORE', base .. set, id) then
  return -3
end
local forgotten = { set == 'completed' and 'returnvalue' or 'failedReason' }
if attempts == '1' then
  forgotten[#forgotten + 1] = 'atm'
end
if starts == '1' then
  forgotten[#forgotten + 1] = 'ats'
end
leave_ended(id, set)
local task = { id = id, lane = lane, priority = priority, deaths = deaths, parent = parent }
return_ended(task, set, forgotten, lifo == '1')
write_waiting()
return 1
`,
})

/**
 * Lets several jobs that have ended run again, or several delayed ones start, in place of BullMQ's `moveJobsToWait`. As there, they go
 * to `wait` even if they have a priority. A task whose compensations were released is left out, because BullMQ's own retry cannot say
 * that they are intended to stay.
 */
export const returnJobsScript = luaScript<'set', 'base' | 'state' | 'count' | 'latest', number>({
  name: 'return-jobs',
  keys: ['set'],
  args: ['base', 'state', 'count', 'latest'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local set = KEYS[1]
local base, state, count, latest = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
--- @include return-ended
--- @include leave-place
local PAGE = 1000
local function start_delayed(task, keeps_turn)
  leave_delayed(base, task.id)
  if keeps_turn then
    redis.call('HDEL', base .. task.id, 'waits')
  end
  place_waiting(task.id, task.lane, 0, keeps_turn)
  add_move_event('waiting', task.id, 'prev', state)
end
local function move(id)
  local name, compensated, lane, deaths, parent, keeps_turn =
    unpack(redis.call('HMGET', base .. id, 'name', 'compensated', 'lane', 'deaths', 'parentKey', 'waits'))
  local task = { id = id, lane = lane, deaths = deaths, parent = parent }
  if state == 'delayed' then
    start_delayed(task, keeps_turn)
    return true
  end
  if compensated then
    return false
  end
  leave_ended(id, state)
  if name then
    return_ended(task, state, { state == 'completed' and 'returnvalue' or 'failedReason' }, false)
  end
  return true
end
local moved, kept, most = 0, 0, tonumber(count)
while moved < most do
  local ids = redis.call('ZRANGEBYSCORE', set, 0, latest, 'LIMIT', kept, math.min(most - moved, PAGE))
  if #ids == 0 then
    break
  end
  for _, id in ipairs(ids) do
    if move(id) then
      moved = moved + 1
    else
      kept = kept + 1
    end
  end
  write_waiting()
end
return moved > 0 and moved == most and 1 or 0
`,
})

/**
 * Adds the next job of a job scheduler when its last one starts, in place of BullMQ's `updateJobScheduler`.
 */
export const updateSchedulerScript = luaScript<
  'schedulers',
  'base' | 'scheduler' | 'time' | 'options' | 'producer',
  string | null
>({
  name: 'update-scheduler',
  keys: ['schedulers'],
  args: ['base', 'scheduler', 'time', 'options', 'producer'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local schedulers = KEYS[1]
local base, scheduler, time, options, producer = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
--- @include time
--- @include scheduler
local last = tonumber(redis.call('ZSCORE', schedulers, scheduler))
if not last or producer ~= planned_id(scheduler, last) then
  return false
end
local hash, now, given = schedulers .. ':' .. scheduler, millis(), cjson.decode(options)
local name, data, every, offset = unpack(redis.call('HMGET', hash, 'name', 'data', 'every', 'offset'))
local of_job, planned = given['repeat'] or {}, tonumber(time)
every = tonumber(every or of_job.every)
if every then
  planned = next_time(last, every, now, tonumber(offset or of_job.offset or 0))
end
local id = planned_id(scheduler, planned)
if redis.call('EXISTS', base .. id) == 1 then
  add_event_of(base, 'duplicated', id)
  return false
end
redis.call('ZADD', schedulers, whole(planned), scheduler)
redis.call('HINCRBY', hash, 'ic', '1')
add_planned(scheduler, planned, now, { name = name, data = data or '{}', options = given })
return id
`,
})

/**
 * Lets an active job wait for its children, in place of BullMQ's `moveToWaitingChildren`. Meanwhile, it holds no place of its lane.
 */
export const waitForChildrenScript = luaScript<'job', 'base' | 'id' | 'token' | 'child', number>({
  name: 'wait-for-children',
  keys: ['job'],
  args: ['base', 'id', 'token', 'child'],
  includes: INCLUDES,
  lua: `#!lua flags=allow-oom
local job = KEYS[1]
local base, id, token, child = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
--- @include time
--- @include give-back
--- @include lock
--- @include unmark
local function has_child()
  local dependencies = job .. ':dependencies'
  if child == '' then
    return redis.call('EXISTS', dependencies) == 1
  end
  return redis.call('SISMEMBER', dependencies, child) == 1
end
if redis.call('EXISTS', job) == 0 then
  return -1
end
if redis.call('EXISTS', job .. ':unsuccessful') == 1 then
  return -9
end
if not has_child() then
  return 1
end
local owner = token ~= '0' and owner_of(redis.call('HGET', job, 'lock'))
if token ~= '0' and owner ~= token then
  return owner and -6 or -2
end
if redis.call('LREM', base .. 'active', '-1', id) == 0 then
  return -3
end
redis.call('HSET', job, 'lock', '')
if token ~= '0' then
  unmark(id)
end
local lane = redis.call('HGET', job, 'lane')
if lane then
  give_back(lane)
end
redis.call('ZADD', base .. 'waiting-children', whole(millis()), id)
redis.call('XADD', base .. 'events', '*', 'event', 'waiting-children', 'jobId', id, 'prev', 'active')
return 0
`,
})

/**
 * Looks whether a task may have ended, for a caller that is about to wait for its end. Most tasks of such callers have not, and to read
 * such a task as a whole costs several times as much.
 */
export const mayHaveEndedScript = luaScript<'job' | 'completed' | 'failed' | 'cancelRules', 'id', 0 | 1>({
  name: 'may-have-ended',
  keys: ['job', 'completed', 'failed', 'cancelRules'],
  args: ['id'],
  includes: INCLUDES,
  lua: `#!lua flags=no-writes
local job, completed, failed, cancelRules = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local id = ARGV[1]
if redis.call('EXISTS', job) == 0 or redis.call('EXISTS', cancelRules) == 1 then
  return 1
end
return (redis.call('ZSCORE', completed, id) or redis.call('ZSCORE', failed, id)) and 1 or 0
`,
})

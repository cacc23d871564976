-- Puts tasks into the places where they wait, with the events from which BullMQ's tools learn of it.
--
-- place_task(task)                            puts a new task into `delayed`, or behind others
-- delay_task(id, due, part)                   puts a task into `delayed` and into `scheduled` or `retrying`. `due` is in ms since 1970
-- place_waiting(id, lane, priority, to_head)  puts a task into its lane, `prioritized` or `wait`: behind the others there or, if `to_head`,
--                                             before them. A task that belongs behind those in `wait` is kept for write_waiting
-- write_waiting()                             writes the kept tasks to `wait`, and the marker that wakes a worker. It must be called after
--                                             the others
-- add_bullmq_event(name, id, ...)             adds an event to BullMQ's stream, with further fields
--
-- `rare().enter_lane` is that of lanes.lua, which few scripts need.
--- @include time

local MAX_BULLMQ_EVENTS = '10000'
-- BullMQ orders the jobs that are due at the same time by a counter in the lower bits of their scores, and the jobs of a priority as well.
local DELAYED_STEP, PRIORITY_STEP = 0x1000, 0x100000000

local waiting, may_wake, has_delayed, queue_settings = {}, false, false, nil

local function read_settings()
  queue_settings = redis.call('HMGET', base .. 'meta', 'paused', 'concurrency', 'opts.maxLenEvents')
  if not queue_settings[3] then
    queue_settings[3] = MAX_BULLMQ_EVENTS
    redis.call('HSET', base .. 'meta', 'opts.maxLenEvents', MAX_BULLMQ_EVENTS)
  end
end

local function add_bullmq_event(name, id, ...)
  if not queue_settings then
    read_settings()
  end
  redis.call('XADD', base .. 'events', 'MAXLEN', '~', queue_settings[3], '*', 'event', name, 'jobId', id, ...)
end

local function delay_task(id, due, part)
  local least, most = due * DELAYED_STEP, (due + 1) * DELAYED_STEP - 1
  local last = redis.call('ZREVRANGEBYSCORE', base .. 'delayed', whole(most), whole(least), 'WITHSCORES', 'LIMIT', 0, 1)
  local score = whole(last[2] and math.min(last[2] + 1, most) or least)
  redis.call('ZADD', base .. 'delayed', score, id)
  redis.call('ZADD', base .. part, score, id)
  has_delayed = true
end

local function place_waiting(id, lane, priority, to_head)
  local is_first = true
  if lane then
    is_first = rare().enter_lane(lane, id, priority, to_head)
  elseif priority > 0 then
    local order = to_head and 0 or redis.call('INCR', base .. 'pc') % PRIORITY_STEP
    redis.call('ZADD', base .. 'prioritized', whole(priority * PRIORITY_STEP + order), id)
  elseif to_head then
    redis.call('RPUSH', base .. 'wait', id)
  else
    waiting[#waiting + 1] = id
  end
  may_wake = may_wake or is_first
end

local function place_task(task)
  local id = task.id
  add_bullmq_event('added', id, 'name', task.name)
  if task.delay then
    local due = task.enqueued_at + task.delay
    delay_task(id, due, 'scheduled')
    return add_bullmq_event('delayed', id, 'delay', whole(due))
  end
  place_waiting(id, task.lane, tonumber(task.priority or 0), false)
  add_bullmq_event('waiting', id)
end

local function may_start()
  if not queue_settings then
    read_settings()
  end
  local paused, concurrency = queue_settings[1], queue_settings[2]
  return not paused and not (concurrency and redis.call('LLEN', base .. 'active') >= tonumber(concurrency))
end

local function write_waiting()
  if #waiting > 0 then
    redis.call('LPUSH', base .. 'wait', unpack(waiting))
    waiting = {}
  end
  if may_wake and may_start() then
    redis.call('ZADD', base .. 'marker', '0', '0')
  end
  if has_delayed then
    local next_due = math.floor(redis.call('ZRANGE', base .. 'delayed', 0, 0, 'WITHSCORES')[2] / DELAYED_STEP)
    -- A lane may start a task before (blocked-lanes.lua).
    local lane_time = redis.call('ZRANGE', base .. 'lane-times', 0, 0, 'WITHSCORES')[2]
    redis.call('ZADD', base .. 'marker', whole(math.min(next_due, lane_time or next_due)), '1')
  end
end

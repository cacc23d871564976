-- What BullMQ stores about a queue in its hash `meta`, and in its stream of events. `base` is the prefix of the queue's keys.
--
-- queue_meta(is_changed)           the fields `paused`, `concurrency`, `max`, `duration`, `opts.maxLenEvents` and `allEventsUntil`, in this
--                                  order, each false if it is not set. They are read once, and again after a change
-- is_open()                        whether tasks may start: the queue is not paused, and has fewer active tasks than it may have
-- add_bullmq_event(name, id, ...)  adds an event about a task, with further fields. A stream that keeps 0 events keeps those of the last
--                                  script, because readers get events once the script has ended
-- add_move_event(name, id, ...)    does the same for an event that tells only where a task is now, if somebody may follow these events
--
-- Each of BullMQ's events takes Redis about as long as three other commands. In Bullpen's own queues, those of moves are therefore added
-- only until a time, `allEventsUntil`, which a QueueEvents with Bullpen's backend keeps ahead of the time (../../backend-events.ts).
--- @include time
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

-- add_event_of(home, name, id, ...)       adds an event of BullMQ about a job, with further fields, to the stream of the queue whose keys have
--                                         the prefix `home`. A stream that keeps 0 events keeps those of the last script, because readers
--                                         get events once the script has ended
-- add_move_event_of(home, name, id, ...)  does the same for an event that tells only where a job is now, if somebody may follow these
--
-- Scripts about many tasks of their own queue use the functions of queue-meta.lua instead, which read all that they need at once.
--- @include time
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

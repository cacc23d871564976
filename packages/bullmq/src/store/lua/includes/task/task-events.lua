-- What has happened to the tasks of a queue: the events in the stream `task-events`.
--
-- Each entry of the stream has two fields: `id`, the task's id, and `event`, an EventBody as JSON. Redis creates the entry's id, which is
-- also the event's id and its time. A task's field `events` says how many entries the stream keeps. A task without events does not have the
-- field. XADD drops the oldest entries beyond this number in whole blocks (`~`), which takes constant time.
--
-- add_task_event(base, id, count, event)  adds an event, and keeps `count` entries
-- event_start(type, name, tags, group)    the beginning of an event as JSON: its type and the fields that describe its task, which are the
--                                         values of the task's fields of the same names. `group` is a group's id and the number of its
--                                         member
-- add_task_events(base, id, lines, due)   adds the events of an attempt. The first line is how many entries the stream keeps, and each
--                                         further line is an event. If the JSON of an event ends before a time, it is completed with the
--                                         time `due`, in ms since 1970
--
-- At most MAX_LOG_EVENTS log lines of a task become events, over all of its attempts. The hash of the task may have been deleted in the
-- meantime. It must not be created again only to count lines.
local MAX_LOG_EVENTS = 100

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
  for line in string.gmatch(lines, '[^\n]+') do
    if not count then
      count = line
    elseif may_add(base .. id, line) then
      local event = due and string.sub(line, -1) ~= '}' and line .. string.format('%.0f}', due) or line
      add_task_event(base, id, count, event)
    end
  end
end

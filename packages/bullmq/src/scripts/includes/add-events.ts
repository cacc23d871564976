// Lua lines that add events to a queue's stream.
//
// The stream is the key `task-events`. Each entry has two fields, `id` (of the task) and `event` (JSON, an EventBody). Redis
// creates the entry's id, which is the event's id and its time. XADD drops the oldest entries beyond the number that the task was
// stored with, in whole blocks (`~`), which takes constant time.
import { MAX_LOG_EVENTS } from '@bullpen/contract/internal'

/** The stream's name, without the prefix of the queue's keys. */
export const TASK_EVENTS = 'task-events'

/** The field of a job that holds how many events its queue's stream keeps. A task without events does not have the field. */
export const EVENTS_FIELD = 'events'

/** The field of a job that counts its log lines among the events. */
const LOG_LINES_FIELD = 'logLines'

/** A Lua expression that adds an event. The arguments are Lua expressions. */
export const addEvent = (count: string, id: string, body: string): string =>
  `call('XADD', base .. '${TASK_EVENTS}', 'MAXLEN', '~', ${count}, '*', 'id', ${id}, 'event', ${body})`

/**
 * Lua lines that add the events in the local variable `events`, unless it is ''. Its first line is how many events the stream keeps,
 * and each further line is an event. `id` is the task's id and `job` the key of its job. At most {@link MAX_LOG_EVENTS} log lines
 * of a task become events, over all of its attempts. The job may have been removed in the meantime, and must not be created again
 * for this count. With `due`, an event that breaks off before a time gets that time, in ms since 1970.
 */
export const addEvents = (id: string, job: string, due?: string): string => `
  local count
  for line in string.gmatch(events, '[^\\n]+') do
    if not count then
      count = line
    elseif string.sub(line, 1, 13) ~= '{"type":"log"' or call('EXISTS', ${job}) == 0
      or call('HINCRBY', ${job}, '${LOG_LINES_FIELD}', 1) <= ${MAX_LOG_EVENTS} then${
        due === undefined
          ? ''
          : `
      if string.sub(line, -1) ~= '}' then line = line .. string.format('%.0f}', ${due}) end`
      }
      ${addEvent('count', id, 'line')}
    end
  end`

/**
 * A Lua expression for the beginning of an event as JSON: its type and the fields that describe its task. The arguments are Lua
 * expressions: the values of the job's fields of the same names. `group` is a group's id and the number of its member, or nil.
 */
export const eventStart = (type: string, name: string, tags: string, group: string): string =>
  `'{"type":"${type}","task":' .. cjson.encode(${name} or '') .. (${tags} and ',"tags":' .. ${tags} or '')
      .. (${group} and string.gsub(${group}, '^(%S+) (%d+)', ',"group":{"id":"%1","member":%2}') or '')`

-- Returns tasks that have lost their worker: the attempt ends, and the task goes to the head of its lane or of `wait`, before the tasks
-- with a priority, as in BullMQ. The lost worker can store nothing, so the script that finds the lost attempt writes its record and its
-- event.
--
-- read_lost(id)               reads and decodes what the end of the attempt needs. `exists` is whether the task still does
-- return_lost(task, at, max)  ends the attempt of a task that the caller has taken out of `active`, and puts the task where it waits. `at`
--                             is when the loss was found (ms since 1970), and `max` how often a task may lose its worker (losses.lua). The
--                             caller wakes a worker
--
-- `base` is the prefix of the queue's keys.
--- @include place-again
--- @include give-back
--- @include attempt-records
--- @include losses
--- @include note-moved
--- @include task-events

local LOST_RECORD = '{"fencingToken":%s,"attempt":%d,"counted":false,"state":"RECOVER_ERR","reason":"process_lost",'
  .. '"message":"the worker was lost","worker":%s,"startedAt":%s,"endedAt":%s}'
  .. '\nRECOVER_ERR (process_lost): the worker was lost'
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
    -- BullMQ once had job schedulers without a hash.
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

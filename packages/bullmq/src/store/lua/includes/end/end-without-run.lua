-- Ends tasks that are waiting or delayed: tasks that are cancelled, and tasks whose queue timeout has passed.
--
-- read_waiting_task(id)   reads and decodes what the end of a task needs, while the task is still where it waits
-- end_waiting_task(task, place, status, ending)
--                         ends a task that the caller has taken out of the place with this name. `status` is `cancelled` or `expired`.
--                         `ending` has the time (`at`, in ms since 1970), and the `reason` and the `record` that `endOf` returns
--                         (codec.ts). If the task's last attempt ended later, the task gets the time of that end
-- note_drained_by_ends()  adds BullMQ's event `drained` if any of these tasks could have started, and no task of the queue is waiting or
--                         active any more. The script calls it once, after it has ended its tasks
--
-- `base` is the prefix of the queue's keys. The end of a task changes what the end of a failed job changes in BullMQ: the job's parent,
-- its deduplication id, the metrics and the event stream. But it counts no attempt, because none has run, and the event `failed` names
-- the place where the task was waiting. A task is read before the caller takes it out of its place, because Redis keeps what a script
-- has written before an error: a task whose fields cannot be decoded stays where it waits.
--- @include attempt-records
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
  append_stack(task.job, task.stacks, record .. string.sub(ending.record, 2) .. '\n' .. ending.reason)
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

-- Stores the jobs that a team's own Queue, FlowProducer or job scheduler adds.
--
-- add_own_job(home, id, job) stores a job and puts it into its place, with the fields and events that BullMQ gives it, and counts it in the
-- totals of its queue, whose keys begin with `home`.
--
-- `job` is a table. Only the first six are always there:
--
--   name, data, options  texts; the options are the JSON that BullMQ stores
--   at                   when the job was created, in ms since 1970
--   delay, priority      numbers, which are 0 if it has none
--   lifo                 whether it starts before the other jobs of the queue
--   hasChildren          whether children will be added for which it waits
--   deduplication        the option `de`, decoded (deduplication-key.lua)
--   repeatKey            the job scheduler that the job belongs to
--   parentKey, parent    the key of its parent, and what BullMQ stores about it, as JSON
--   siblings             the key of the set of children for which the parent waits
--
-- append_given(fields, name, value) appends a name and a value to a list unless the value is nil or false.
--- @include bullmq-event
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

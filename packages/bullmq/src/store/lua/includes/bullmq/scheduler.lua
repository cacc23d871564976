-- BullMQ's job schedulers, which a team's own Queue uses. A scheduler adds its next job when its last one starts.
--
-- The set `repeat` has the schedulers by the time for which their next jobs are planned, in ms since 1970, and the hash
-- `repeat:<scheduler>` what they add. Their jobs have the ids `repeat:<scheduler>:<time>`, and the field `rjk` has the scheduler's id.
--
-- planned_id(scheduler, time)                      the id of the job that is planned for this time
-- next_time(last, every, now, offset, starts_at)   the next time of a scheduler with an interval, and how far it is from a multiple of
--                                                  the interval. `last` is the time of the last job, or nil, and `starts_at` that
--                                                  before which a new scheduler adds no job, or nil
-- add_planned(scheduler, time, now, job)           adds the job that is planned for this time, and returns how long it is delayed.
--                                                  `job` is a table of its `name`, `data` and decoded `options`
--
-- `base` is the prefix of the queue's keys.
--- @include own-job

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
  -- BullMQ also counts the jobs that already have an id.
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

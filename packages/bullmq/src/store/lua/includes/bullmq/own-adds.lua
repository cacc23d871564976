-- Adds the jobs of a team's own Queue or FlowProducer, in place of BullMQ's `addStandardJob`, `addDelayedJob`, `addPrioritizedJob` and
-- `addParentJob`.
--
-- The arguments of a job are the prefix of its queue's keys, its id or '' to get the next number, its name, its data, its options, when it
-- was created ('' for now), and how many further fields it has, each of which is a name and a value (own-job.lua). Most jobs have none of
-- these fields.
--
-- read_own_job(at)       returns the job whose arguments begin at this position, and the position after its last one
-- add_job(job, is_flow)  adds a job, and returns its id, or that of the job because of which it is not added, or BullMQ's code: -5 if its
--                        parent does not exist, and -7 if the job exists and is the child of another parent
-- end_flow()             must be called after the jobs of a flow (existing-job.lua)
--- @include given-time
--- @include own-job

local OWN_FIELDS = 7
local MISSING_PARENT = -5

local created

-- Returns the functions that few jobs need, and creates them on the first call.
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

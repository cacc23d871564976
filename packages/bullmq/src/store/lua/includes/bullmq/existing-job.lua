-- What BullMQ does if a job that a team adds already exists.
--
-- note_existing(home, id, job, is_flow)  makes the existing job a child of the new one's parent, if there is one, and returns its id, or
--                                        OTHER_PARENT if it is the child of another parent. If the job is completed, a parent that waits
--                                        for nothing else goes on (flow-parent.lua); that of a flow may get more children, and goes on
--                                        later. `job` is that of own-job.lua, and `home` is the prefix of its queue's keys
-- resume_parents()                       lets those parents of a flow go on that have got only completed children. A parent that should
--                                        have got a child of another one waits on
--- @include own-job
--- @include flow-parent

local OTHER_PARENT = -7

-- The jobs of the flow that are completed, and the keys of the parents that wait on.
local completed, refused = {}, {}

local function resume_parent_of(job)
  if redis.call('EXISTS', job.parentKey .. ':dependencies') == 0 then
    local parent = cjson.decode(job.parent)
    resume_parent(parent.queueKey .. ':', parent.id, millis())
  end
end

local function join_parent(home, id, job, is_flow)
  local key, parent = home .. id, job.parentKey
  if redis.call('ZSCORE', home .. 'completed', id) then
    redis.call('HSET', parent .. ':processed', key, redis.call('HGET', key, 'returnvalue') or 'null')
    if is_flow then
      completed[#completed + 1] = job
    else
      resume_parent_of(job)
    end
  elseif job.siblings then
    redis.call('SADD', job.siblings, key)
  end
  redis.call('HSET', key, 'parentKey', parent, 'parent', job.parent)
end

local function note_existing(home, id, job, is_flow)
  local parent, other = job.parentKey, redis.call('HGET', home .. id, 'parentKey')
  if parent and other and other ~= parent and redis.call('EXISTS', other) == 1 then
    refused[parent] = true
    return OTHER_PARENT
  end
  if parent then
    join_parent(home, id, job, is_flow)
  end
  add_event_of(home, 'duplicated', id)
  return id
end

local function resume_parents()
  for _, job in ipairs(completed) do
    if not refused[job.parentKey] then
      resume_parent_of(job)
    end
  end
end

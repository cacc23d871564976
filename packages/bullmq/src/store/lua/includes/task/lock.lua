-- The lock of an active task, which is stored in the task's own hash, so that starts, ends and renewals need no command for it.
--
-- The field `lock` has the time at which the lock expires (13 digits: ms since 1970, by Redis's clock), a blank, and the token of the
-- worker that has the task. It is empty after an attempt. A lock that has expired is gone, although the field stays until the task has
-- been recovered.
--
-- A BullMQ Worker without Bullpen's backend stores its locks as BullMQ does: as keys `<job>:lock` that expire.
--
-- lock_of(token, ms)        the field of a lock that expires after this time
-- owner_of(lock)            the token in a field, or nil if there is no lock or it has expired
-- owns_lock(job, token)     whether the job's lock has this token
-- own_lock_left(job)        in how many ms the job's lock expires, or nil
-- is_running(job)           whether the job has a lock of either kind
--- @include time
local TIME_LENGTH = 13

local function lock_of(token, ms)
  return whole(millis() + ms) .. ' ' .. token
end

local function left_of(lock)
  local left = lock and lock ~= '' and tonumber(string.sub(lock, 1, TIME_LENGTH)) - millis()
  return left and left > 0 and left or nil
end

local function owner_of(lock)
  return left_of(lock) and string.sub(lock, TIME_LENGTH + 2) or nil
end

local function owns_lock(job, token)
  return owner_of(redis.call('HGET', job, 'lock')) == token
end

local function own_lock_left(job)
  return left_of(redis.call('HGET', job, 'lock'))
end

local function is_running(job)
  return own_lock_left(job) ~= nil or redis.call('EXISTS', job .. ':lock') == 1
end

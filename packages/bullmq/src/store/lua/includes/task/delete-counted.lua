-- delete_counted(home, id) deletes a job of one of Bullpen's queues that the caller has taken out of its place. If the job has not
-- ended, its charge is refunded, and its deletion is an end of its own, which releases compensations and tells a group (outbox.lua).
-- `home` is the prefix of the queue's keys. Returns whether the job existed.
--- @include delete-job
--- @include outbox
--- @include task-charge

local function delete_counted(home, id)
  local job = home .. id
  local enqueued_at, ended_at = unpack(redis.call('HMGET', job, 'timestamp', 'finishedOn'))
  if enqueued_at and not ended_at and charge(home, job, -1) then
    write_outbox(home, id, 'removed')
  end
  return delete_job(home, id)
end

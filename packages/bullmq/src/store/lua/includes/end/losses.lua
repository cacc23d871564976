-- Counts how often a task has lost its worker, and how often a process has died because of it. These fields of a task belong to its
-- quarantine. A task whose process was never lost has none of them:
--
--   stc      BullMQ's own counter of losses, which also counts deaths that another task has caused
--   deaths   how many processes have died because of the task, as far as is known
--   alone    the fencing token of an attempt that runs alone in its worker's process. Any other attempt of a quarantined task runs in a
--            child process, or waits in a worker for its place. If the worker dies in the meantime, the task has not caused that death
--   diedIn   the fencing token of the last attempt whose loss was counted as a death
--   lostIn   that of the last attempt whose loss was counted in `stc`
--   livedIn  that of the last attempt that has lost its lock although its process lives, which the process notes itself
--            (internals/worker/note-survival.lua)
--
-- count_loss(job, loss, max)  counts a loss of the task with the key `job`. If there were more than `max`, the next worker fails the
--                             task, as BullMQ's field `defa` says, unless a job scheduler repeats it. `loss` has what was read before:
--                             `starts`, `deaths`, `alone`, `lived` (`livedIn`) and `is_repeated`
-- uncount_loss(job)           takes a loss back whose process lives
local TOO_MANY_LOSSES = 'job stalled more than allowable limit'

-- If the process of the attempt has already said that it lives, nothing is counted. No death is counted if the task was quarantined and did
-- not run in the worker's process.
local function count_loss(job, loss, max)
  local starts = loss.starts
  if starts and loss.lived == starts then
    return
  end
  if redis.call('HINCRBY', job, 'stc', '1') > max and not loss.is_repeated then
    redis.call('HSET', job, 'defa', TOO_MANY_LOSSES)
  end
  if not starts then
    return
  end
  redis.call('HSET', job, 'lostIn', starts)
  if not loss.deaths or loss.alone == starts then
    redis.call('HINCRBY', job, 'deaths', '1')
    redis.call('HSET', job, 'diedIn', starts)
  end
end

local function uncount_loss(job)
  -- A retry by request may have forgotten the loss meanwhile.
  if redis.call('HINCRBY', job, 'stc', '-1') <= 0 then
    redis.call('HDEL', job, 'stc')
  end
  if redis.call('HGET', job, 'defa') == TOO_MANY_LOSSES then
    redis.call('HDEL', job, 'defa')
  end
end

#!lua flags=allow-oom
-- Looks whether a pipeline run needs anything from the leader. Stops the run if its total timeout has passed. Ends the run if it was
-- stopped too long ago. The returned entries include those that another process has left; there may be more of them if there are 100 or
-- more entries. A task that has ended was enqueued, although its queue may not remember it, so its entry is deleted.
--
-- KEYS  base, meta, definition, tasks, inputs, early, results, errors, outbox
-- ARGV  id
-- ARGV  channels     the prefix of the channels
-- ARGV  forcedEndMs  how long after it was stopped a run ends at the latest
-- ARGV  leftForMs    how long ago a process must have claimed an entry for it to count as left
--
-- Returns `RunReply<[isCancelOver: 0 | 1, queues: string, reduceQueue: string] | null> | null`: for a run that has ended and whose outbox is
-- empty, whether it was stopped and then ended after its tasks, so that what its cancel has stored is no longer needed, and its queues.
-- Null if there is no such run.
--- @type RunReply from ./run-change.ts

-- How many entries that another process has left one visit returns.
local MAX_LEFT = 100
--- @include run

if not run.state then
  return false
end
local now = millis()
if run.state ~= 'ended' then
  local is_stopped = run.reason and run.reason ~= 'taken'
  if not is_stopped then
    if now >= number('timeoutAt') then
      stop('run_timeout', 'run ' .. id, now)
    end
  elseif now >= run.stoppedAt + forcedEndMs then
    redis.call('UNLINK', tasks, inputs)
    set('source', 'done')
    for stage = 1, stages do
      set('running' .. stage, 0)
    end
  end
end
local answer = reply(now)
if redis.call('EXISTS', outbox) == 1 then
  local _, left = claim_left(leftForMs, '0-0', MAX_LEFT)
  for _, entry in ipairs(left) do
    local of, stage, position = string.match(entry[2], '^i (%S+) (%d+) (%d+)')
    if of and (of ~= run_token() or redis.call('SISMEMBER', tasks, stage .. '.' .. position) == 0) then
      redis.call('XACK', outbox, 'forwarders', entry[1])
      redis.call('XDEL', outbox, entry[1])
    else
      table.insert(answer[2], entry)
    end
  end
  if redis.call('XLEN', outbox) == 0 then
    redis.call('DEL', outbox)
  end
end
local is_over = run.state == 'ended' and redis.call('EXISTS', outbox) == 0
local is_cancel_over = run.reason and number('endedAt') < number('stoppedAt') + forcedEndMs
answer[3] = is_over and { is_cancel_over and 1 or 0, run.queues, run.reduceQueue or '' } or false
return answer

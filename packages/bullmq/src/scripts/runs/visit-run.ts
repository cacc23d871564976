// Looks whether a pipeline run needs anything from the leader.
import { decodeRunChange, RUN_KEYS, RUN_STEPS, type RunChange } from '../includes/run-steps.ts'
import { GROUP } from '../outbox/claim-entries.ts'
import { defineScript } from '../script.ts'

/** How many entries that another process has left one visit returns. */
const MAX_LEFT = 100

/**
 * - ARGV: the run's id, the prefix of the channels, how long after it was stopped a run ends at the latest (ms), how long ago a process
 *   must have claimed an entry for it to count as left (ms).
 *
 * Stops the run if its total timeout has passed. Ends the run if it was stopped too long ago. The returned entries include those that
 * another process has left; there may be more of them if there are 100 or more entries. Returns undefined if there is no such run.
 */
export const visitRunScript = defineScript({
  name: 'visit-run',
  kind: 'frees',
  keys: RUN_KEYS,
  args: ['id', 'channels', 'forcedEndMs', 'leftForMs'],
  lua: `${RUN_STEPS}
if not run.state then return false end
local now = millis()
if run.state ~= 'ended' then
  local is_stopped = run.reason and run.reason ~= 'taken'
  if not is_stopped then
    if now >= number('timeoutAt') then stop('run_timeout', 'run ' .. id, now) end
  elseif now >= run.stoppedAt + forcedEndMs then
    redis.call('DEL', tasks)
    set('source', 'done')
    for stage = 1, stages do set('running' .. stage, 0) end
  end
end
local answer = reply(now)
if redis.call('EXISTS', outbox) == 1 then
  local left = redis.call('XAUTOCLAIM', outbox, '${GROUP}', 'forwarder', leftForMs, '0-0', 'COUNT', ${MAX_LEFT})
  for _, entry in ipairs(left[2]) do
    -- An entry that was deleted while it was claimed has no fields.
    if entry[2] then table.insert(answer[2], { entry[1], entry[2][2] }) end
  end
end
answer[3] = run.state
return answer
`,
  answer: (reply): RunChange<string> | undefined => (reply === null ? undefined : decodeRunChange(reply, String)),
})

// Detects whether Bullpen 0.1.0 wrote a queue.
import { defineScript } from '../script.ts'

/**
 * Version 0.1.0 did not store a schema version, so its data is recognised by keys that only that version wrote, or by one of its
 * jobs at either end of a place.
 *
 * - KEYS: two keys that only 0.1.0 wrote, then wait, active, prioritized, delayed, completed, failed.
 * - ARGV: the prefix of jobs, Bullpen's backoff type.
 *
 * Returns whether 0.1.0 wrote the queue. Examines at most twelve jobs.
 */
export const isLegacy = defineScript({
  name: 'is-legacy',
  kind: 'reads',
  keys: ['switches', 'cancelFeeds', 'wait', 'active', 'prioritized', 'delayed', 'completed', 'failed'],
  args: ['base', 'backoffType'],
  lua: `
if redis.call('EXISTS', switches, cancelFeeds) > 0 then return 1 end
local function is_legacy(id)
  local job = redis.call('HMGET', base .. id, 'data', 'opts')
  return job[1] and job[2] and string.sub(job[1], 1, 7) == '{"v":1,'
    and string.find(job[2], '"type":"' .. backoffType .. '"', 1, true)
end
for _, at in ipairs({ 0, -1 }) do
  for _, list in ipairs({ wait, active }) do
    local id = redis.call('LINDEX', list, at)
    if id and is_legacy(id) then return 1 end
  end
  for _, set in ipairs({ prioritized, delayed, completed, failed }) do
    local id = redis.call('ZRANGE', set, at, at)[1]
    if id and is_legacy(id) then return 1 end
  end
end
return 0
`,
  answer: (reply) => reply === 1,
})

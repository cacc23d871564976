// Renews the locks of running tasks. The renewal thread loads this file, so it imports only the module that defines scripts.
import { defineScript } from '../script.ts'

/**
 * Does the same as BullMQ's own extendLocks: renews the locks and removes the jobs from the set of jobs that may have lost their
 * process.
 *
 * - KEYS: stalled.
 * - ARGV: the prefix of jobs, the lock's duration in ms, then the id and token of each lock.
 *
 * Returns the positions, counted from 1, of the locks that this process no longer holds. The caller limits how many locks one
 * script renews.
 */
export const renewLockScript = defineScript({
  name: 'renew-locks',
  kind: 'frees',
  keys: ['stalled'],
  args: ['base', 'lockMs'],
  lua: `
local lost = {}
for i = 3, #ARGV, 2 do
  local id, token = ARGV[i], ARGV[i + 1]
  local lock = base .. id .. ':lock'
  if redis.call('GET', lock) == token then
    redis.call('SET', lock, token, 'PX', lockMs)
    redis.call('SREM', stalled, id)
  else
    lost[#lost + 1] = (i - 1) / 2
  end
end
return lost
`,
  answer: (reply) => reply as number[],
})

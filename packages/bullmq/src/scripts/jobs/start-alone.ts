// Stores that an attempt of a quarantined task is about to run alone in its worker's process.
import { defineScript } from '../script.ts'

/**
 * - KEYS: the job, its lock.
 * - ARGV: the lock's token, the fencing token of the attempt.
 *
 * Returns false if nothing was written because the lock is lost.
 */
export const startAlone = defineScript({
  name: 'start-alone',
  kind: 'frees',
  keys: ['job', 'lock'],
  args: ['token', 'fencingToken'],
  lua: `
if redis.call('GET', lock) ~= token then return 0 end
redis.call('HSET', job, 'alone', fencingToken)
return 1
`,
  answer: (reply) => reply === 1,
})

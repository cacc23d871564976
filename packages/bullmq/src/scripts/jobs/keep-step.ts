// Stores the result of a finished step of a running task.
import { defineScript } from '../script.ts'

/**
 * - KEYS: the job, its lock.
 * - ARGV: the lock's token, the fencing token of the attempt, the step's field in the job's hash, its result as JSON.
 *
 * Returns the step's stored result, which is the first one that was stored. Returns undefined if nothing was written because the
 * task now has another owner.
 *
 * The script runs even if Redis is full, because the step's side effect has already happened. Checking the lock's token is not
 * enough, because a plain BullMQ Worker may use the same token for the next attempt.
 */
export const keepStep = defineScript({
  name: 'keep-step',
  kind: 'frees',
  keys: ['job', 'lock'],
  args: ['token', 'fencingToken', 'field', 'result'],
  lua: `
if redis.call('GET', lock) ~= token or redis.call('HGET', job, 'ats') ~= fencingToken then return false end
redis.call('HSETNX', job, field, result)
return redis.call('HGET', job, field)
`,
  answer: (reply) => (reply as string | null) ?? undefined,
})

// Removes a worker that has closed from the fleet.
import { FORGET_WORKER } from '../includes/forget-worker.ts'
import { TIME } from '../includes/time.ts'
import { defineScript } from '../script.ts'

/**
 * - KEYS: heartbeats.
 * - ARGV: the prefix of the fleet's keys, the worker's id.
 *
 * Returns whether the worker was removed. If the worker has more pending commands than one script responds to, the caller runs
 * the script again.
 */
export const leave = defineScript({
  name: 'leave-fleet',
  kind: 'frees',
  keys: ['heartbeats'],
  args: ['base', 'id'],
  lua: `${TIME}${FORGET_WORKER}
return forget_worker(base, id, millis()) and 1 or 0
`,
  answer: (reply) => reply === 1,
})

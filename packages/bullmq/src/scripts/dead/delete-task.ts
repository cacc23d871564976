// Deletes one dead task.
import type { DeadTaskAnswer } from '@bullpen/engine/internal'
import { STATUS_INDEX } from '../../internals/status/status-index.ts'
import { REMOVE_ENDED } from '../includes/ended-tasks/remove-ended.ts'
import { defineScript } from '../script.ts'

/**
 * - KEYS: the job, the dead tasks.
 * - ARGV: the prefix of the queue's keys, the task's id.
 *
 * Returns what the script did.
 */
export const deleteTask = defineScript({
  name: 'delete-task',
  kind: 'frees',
  keys: ['job', 'dead'],
  args: ['base', 'id'],
  lua: `${STATUS_INDEX}${REMOVE_ENDED}
if redis.call('EXISTS', job) == 0 then return 'not_found' end
if not redis.call('ZSCORE', dead, id) then return 'not_dead' end
remove_ended_task(status_index(base), base, 'dead', id)
return 'done'
`,
  answer: (reply) => reply as DeadTaskAnswer,
})

// Removes completed tasks whose retention has passed.
import { statusIndex } from '../../internals/status/status-index.ts'
import { FENCE } from '../includes/fence.ts'
import { defineScript } from '../script.ts'

/**
 * KEYS: leader, completed. ARGV: the leader's fencing number, now in ms, how long completed tasks are kept in ms, the prefix of the
 * queue's keys, how many tasks to remove at most. Returns the number of tasks that were removed, which is 0 if there is a newer
 * leader. Each end of a task also removes up to two old tasks, so this script has to remove tasks only when few tasks
 * end.
 */
export const removeOldScript = defineScript({
  name: 'remove-old',
  kind: 'frees',
  keys: ['leader', 'completed'],
  args: ['fencing', 'now', 'keptMs', 'base', 'limit'],
  lua: `${FENCE}
local call = redis.call
${statusIndex(['DEL'])}
if is_deposed(leader, fencing) then return 0 end
local index = status_index(base)
local old = call('ZRANGEBYSCORE', completed, '-inf', string.format('(%.0f', now - keptMs), 'LIMIT', 0, limit)
for _, id in ipairs(old) do
  local job = base .. id
  index.watched.DEL(job, job .. ':logs', job .. ':dependencies', job .. ':processed', job .. ':failed', job .. ':unsuccessful')
  call('ZREM', completed, id)
end
return #old
`,
  answer: Number,
})

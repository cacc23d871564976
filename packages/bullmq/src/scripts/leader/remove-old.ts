// Removes ended tasks that are no longer kept.
import { STATUS_INDEX } from '../../internals/status/status-index.ts'
import { FENCE } from '../../store/scripts.ts'
import { REMOVE_ENDED } from '../includes/ended-tasks/remove-ended.ts'
import { defineScript } from '../script.ts'

/**
 * - KEYS: leader.
 * - ARGV: the leader's fencing number, the current time (ms since 1970), the queue's retention as JSON, the prefix of the queue's
 *   keys, the maximum number of tasks to remove.
 *
 * Returns the number of tasks that were removed, which is 0 if there is a newer leader. Some ends of attempts also remove old tasks
 * with the same status (ENDS_PER_REMOVAL), so this script has to remove tasks only when few attempts end, and when tasks end
 * without an attempt.
 */
export const removeOldScript = defineScript({
  name: 'remove-old',
  kind: 'frees',
  keys: ['leader'],
  args: ['fencing', 'now', 'retention', 'base', 'limit'],
  lua: `${FENCE}
${STATUS_INDEX}${REMOVE_ENDED}
if is_deposed(leader, fencing) then return 0 end
local index = status_index(base)
local removed = 0
for status, kept in pairs(cjson.decode(retention)) do
  local since = kept.ageMs and string.format('%.0f', now - kept.ageMs) or ''
  removed = removed + remove_ended(index, base, status, since, kept.count or '', limit - removed)
end
return removed
`,
  answer: Number,
})

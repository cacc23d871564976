// Cancels a group by request.
import { decodeChange, GROUP_KEYS, GROUP_STEPS } from '../includes/group-steps.ts'
import { defineScript } from '../script.ts'

/**
 * - KEYS: those of a group ({@link GROUP_KEYS}).
 * - ARGV: the group's id, the channel for groups that have ended, who cancels the group.
 *
 * Returns a {@link GroupChange}, without fields if there is no such group. A group that was cancelled or has ended stays as
 * it is.
 */
export const cancelGroupScript = defineScript({
  name: 'cancel-group',
  kind: 'frees',
  keys: GROUP_KEYS,
  args: ['id', 'channel', 'by'],
  lua: `${GROUP_STEPS}
local result
if redis.call('EXISTS', meta) == 1 then
  local now = millis()
  cancel_group(now, 'cancelled', by)
  result = end_if_complete(now)
end
return { redis.call('HGETALL', meta), result or '' }
`,
  answer: decodeChange,
})

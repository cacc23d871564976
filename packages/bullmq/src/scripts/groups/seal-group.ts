// Seals a group.
import { decodeChange, GROUP_KEYS, GROUP_STEPS } from '../includes/group-steps.ts'
import { defineScript } from '../script.ts'

/**
 * - KEYS: those of a group ({@link GROUP_KEYS}).
 * - ARGV: the group's id, the channel for groups that have ended.
 *
 * Returns a {@link GroupChange}, without fields if there is no such group.
 */
export const sealGroupScript = defineScript({
  name: 'seal-group',
  kind: 'frees',
  keys: GROUP_KEYS,
  args: ['id', 'channel'],
  lua: `${GROUP_STEPS}
local result
if redis.call('EXISTS', meta) == 1 then
  local now = millis()
  seal_group(now)
  result = end_if_complete(now)
end
return { redis.call('HGETALL', meta), result or '' }
`,
  answer: decodeChange,
})

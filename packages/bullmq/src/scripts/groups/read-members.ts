// Reads how some members of a group have ended, and to which queues they belong.
import { GROUP_KEYS } from '../includes/group-steps.ts'
import { defineScript } from '../script.ts'

export interface ReadMembers {
  /** The fields of the group's hash, which are none if there is no such group. */
  readonly fields: readonly string[]
  /** For each member, the code of its end (0 if it has not ended). */
  readonly ends: readonly number[]
  /** For each member, its queue's position. */
  readonly queues: readonly number[]
}

/**
 * - KEYS: those of a group ({@link GROUP_KEYS}).
 * - ARGV: the first member, and how many members to read at most.
 *
 * All values are as of the same moment.
 */
export const readMembersScript = defineScript({
  name: 'read-members',
  kind: 'reads',
  keys: GROUP_KEYS,
  args: ['from', 'limit'],
  lua: `
local ends, positions = {}, {}
local last = math.min(tonumber(redis.call('HGET', meta, 'count') or 0), from + limit) - 1
for member = from, last do
  local at = string.format('#%.0f', member)
  ends[#ends + 1] = redis.call('BITFIELD_RO', members, 'GET', 'u3', at)[1]
  positions[#positions + 1] = redis.call('BITFIELD_RO', queues, 'GET', 'u4', at)[1]
end
return { redis.call('HGETALL', meta), ends, positions }
`,
  answer(reply): ReadMembers {
    const [fields, ends, queues] = reply as [string[], number[], number[]]
    return { fields, ends, queues }
  },
})

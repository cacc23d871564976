// Records the ends of a group's members.
import type { GroupResult } from '@bullpen/contract'
import { GROUP_KEYS, GROUP_STEPS } from '../includes/group-steps.ts'
import { defineScript } from '../script.ts'

/** What the reports of some members' ends have changed. */
export interface EndedMembers {
  /** Whether something follows from a change of the group and has not been delivered yet. */
  readonly isOwed: boolean
  /** Set if this call has ended the group. */
  readonly result: GroupResult | undefined
}

/**
 * - KEYS: those of a group ({@link GROUP_KEYS}).
 * - ARGV: the group's id, the channel for groups that have ended; then, for each member, its number and the letter of its end.
 *
 * Only the first end of each member counts, so that the script can be repeated. If the group cancels its members on an error, the
 * first error cancels the group in the same step. Takes constant time for each member. Returns undefined if there is no such group.
 */
export const endMembersScript = defineScript({
  name: 'end-members',
  kind: 'frees',
  keys: GROUP_KEYS,
  args: ['id', 'channel'],
  lua: `${GROUP_STEPS}
local state, count, on_error = unpack(redis.call('HMGET', meta, 'state', 'count', 'onError'))
if not state then return false end
local result
if state ~= 'ended' then
  local now = millis()
  for i = 3, #ARGV, 2 do
    local member, letter = ARGV[i], ARGV[i + 1]
    if tonumber(member) < tonumber(count) and end_member(member, letter) and on_error == 'cancel' and (letter == 'd' or letter == 'e') then
      cancel_group(now, 'first_error', 'group ' .. id)
    end
  end
  result = end_if_complete(now)
end
return { tonumber(redis.call('HGET', meta, 'owed') or 0), result or '' }
`,
  answer(reply): EndedMembers | undefined {
    if (reply === null) return undefined
    const [owed, result] = reply as [number, GroupResult | '']
    return { isOwed: owed > 0, result: result === '' ? undefined : result }
  },
})

// Looks whether a group needs anything from the leader.
import type { GroupPhase, GroupResult } from '@bullpen/contract'
import { GROUP_KEYS, GROUP_STEPS } from '../includes/group-steps.ts'
import { defineScript } from '../script.ts'

export interface VisitedGroup {
  readonly state: GroupPhase
  /** When the total timeout passes, in ms since 1970. */
  readonly timeoutAt: number
  /** How many entries are in the group's outbox. */
  readonly entries: number
  /** Set if this call has ended the group. */
  readonly result: GroupResult | undefined
}

/**
 * - KEYS: those of a group ({@link GROUP_KEYS}).
 * - ARGV: the group's id, the channel for groups that have ended, how long after its cancellation a group ends at the latest (ms).
 *
 * Cancels the group if its total timeout has passed. Ends the group if it was cancelled too long ago; its remaining members then
 * count as removed. Returns undefined if there is no such group.
 */
export const visitGroupScript = defineScript({
  name: 'visit-group',
  kind: 'frees',
  keys: GROUP_KEYS,
  args: ['id', 'channel', 'forcedEndMs'],
  lua: `${GROUP_STEPS}
local state, timeout, cancelled, count, ended = unpack(redis.call('HMGET', meta, 'state', 'timeoutAt', 'cancelledAt', 'count', 'ended'))
if not state then return false end
local result
if state ~= 'ended' then
  local now = millis()
  if not cancelled then
    if now >= tonumber(timeout) then cancel_group(now, 'group_timeout', 'group ' .. id) end
  elseif now >= cancelled + forcedEndMs then
    redis.call('HINCRBY', meta, 'r', count - ended)
    redis.call('HSET', meta, 'ended', count)
  end
  result = end_if_complete(now)
end
return { redis.call('HGET', meta, 'state'), timeout, redis.call('XLEN', outbox), result or '' }
`,
  answer(reply): VisitedGroup | undefined {
    if (reply === null) return undefined
    const [state, timeoutAt, entries, result] = reply as [GroupPhase, string, number, GroupResult | '']
    return { state, timeoutAt: Number(timeoutAt), entries, result: result === '' ? undefined : result }
  },
})

// Deletes the entries of unique keys that no task has any more.

import { FENCE, TIME } from '../../store/scripts.ts'
import { KEY_OWNER } from '../includes/key-owner.ts'
import { defineScript } from '../script.ts'

interface KeyPage {
  /** Where the next page begins; '0' at the end. */
  readonly cursor: string
  /** The number of entries that the script has examined, and how many of them it has deleted. */
  readonly seen: number
  readonly removed: number
}

/**
 * - KEYS: the queue's fencing number, the entries of unique keys.
 * - ARGV: the leader's number, the prefix of the queue's keys, the cursor of HSCAN, the approximate number of entries to examine.
 *
 * Returns a {@link KeyPage}, or undefined if there is a newer leader. Examining 500 entries takes Redis about 1 ms. Outdated
 * entries do no harm except that they take memory.
 */
export const removeUniqueKeysScript = defineScript({
  name: 'remove-unique-keys',
  kind: 'frees',
  keys: ['leader', 'uniqueKeys'],
  args: ['fencing', 'base', 'cursor', 'limit'],
  lua: `${FENCE}${TIME}${KEY_OWNER}
if is_deposed(leader, fencing) then return false end
local now = millis()
local following, entries = unpack(redis.call('HSCAN', uniqueKeys, cursor, 'COUNT', limit))
local removed = 0
for i = 1, #entries, 2 do
  if not key_owner(base, entries[i + 1], now) then removed = removed + redis.call('HDEL', uniqueKeys, entries[i]) end
end
return { following, #entries / 2, removed }
`,
  answer(reply): KeyPage | undefined {
    if (reply === null) return undefined
    const [cursor, seen, removed] = reply as [string, number, number]
    return { cursor, seen, removed }
  },
})

// Removes the tasks from one fingerprint's set that are not dead any more.
import { FINGERPRINTS } from '../../internals/status/fingerprints.ts'
import { defineScript } from '../script.ts'

/**
 * - KEYS: the fingerprint's set, the dead tasks.
 * - ARGV: the prefix of the queue's keys, the fingerprint, the cursor ('0' for the first page), the approximate number of tasks to
 *   examine.
 *
 * Returns the next cursor ('0' after the last page).
 */
export const pruneFingerprint = defineScript({
  name: 'prune-fingerprint',
  kind: 'frees',
  keys: ['set', 'dead'],
  args: ['base', 'fingerprint', 'cursor', 'count'],
  lua: `
local call = redis.call
${FINGERPRINTS}
local page = call('ZSCAN', set, cursor, 'COUNT', count)
for i = 1, #page[2], 2 do
  local id = page[2][i]
  if call('ZSCORE', dead, id) ~= page[2][i + 1] then
    leave_fingerprint(base, id, fingerprint)
    call('HDEL', base .. id, 'fingerprint')
  end
end
if call('EXISTS', set) == 0 then call('HDEL', base .. 'fingerprints', fingerprint) end
return page[1]
`,
  answer: String,
})

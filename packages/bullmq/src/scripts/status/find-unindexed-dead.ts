// Finds the dead tasks in one page that are not in the index of fingerprints.
import { defineScript } from '../script.ts'

export interface UnindexedDead {
  readonly id: string
  /** What BullMQ stores as the reason of the failure. */
  readonly reason: string
  readonly stacktrace: string
}

/**
 * - KEYS: the dead tasks.
 * - ARGV: the prefix of the queue's keys, the cursor ('0' for the first page), the approximate number of tasks to examine.
 *
 * Returns the next cursor ('0' after the last page), and the tasks.
 */
export const findUnindexedDead = defineScript({
  name: 'find-unindexed-dead',
  kind: 'reads',
  keys: ['dead'],
  args: ['base', 'cursor', 'count'],
  lua: `
local page = redis.call('ZSCAN', dead, cursor, 'COUNT', count)
local found = { page[1] }
for i = 1, #page[2], 2 do
  local id = page[2][i]
  local fingerprint, reason, stacks = unpack(redis.call('HMGET', base .. id, 'fingerprint', 'failedReason', 'stacktrace'))
  if not fingerprint then
    local at = #found
    found[at + 1], found[at + 2], found[at + 3] = id, reason or '', stacks or ''
  end
end
return found
`,
  answer(reply): { readonly cursor: string; readonly tasks: readonly UnindexedDead[] } {
    const [cursor = '0', ...flat] = reply as string[]
    const tasks = Array.from({ length: flat.length / 3 }, (_, i) => {
      const [id = '', reason = '', stacktrace = ''] = flat.slice(i * 3, i * 3 + 3)
      return { id, reason, stacktrace }
    })
    return { cursor, tasks }
  },
})

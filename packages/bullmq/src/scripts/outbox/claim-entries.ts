// Claims entries of an outbox, so that one process at a time delivers each of them.
import { defineScript } from '../script.ts'

/** The consumer group of each outbox, and its only consumer. A claim is told apart by its age, not by its process. */
export const GROUP = 'forwarders'
const CONSUMER = 'forwarder'

export interface ClaimedPage {
  /** How many of the entries no process had claimed before. */
  readonly fresh: number
  /** Where to look next for entries that another process has left, or '0-0' if there are no more. */
  readonly cursor: string
  /** The entries' ids in the stream and their texts. */
  readonly entries: readonly (readonly [id: string, text: string])[]
}

/**
 * - KEYS: the outbox.
 * - ARGV: the maximum number of entries; `idleMs`, after which a claim counts as left, or '' to claim only fresh entries; the cursor
 *   of the previous page, or '0-0'.
 *
 * Returns a {@link ClaimedPage}, with at most twice as many entries as the maximum: fresh ones and ones that were left. O(entries).
 */
export const claimEntries = defineScript({
  name: 'claim-entries',
  kind: 'frees',
  keys: ['outbox'],
  args: ['limit', 'idleMs', 'cursor'],
  lua: `
if redis.call('EXISTS', outbox) == 0 then return { 0, '0-0', {} } end
local entries = {}
local function add(found)
  for _, entry in ipairs(found) do
    -- An entry that was deleted while it was claimed has no fields.
    if entry[2] then entries[#entries + 1] = { entry[1], entry[2][2] } end
  end
end
local function read()
  return redis.pcall('XREADGROUP', 'GROUP', '${GROUP}', '${CONSUMER}', 'COUNT', limit, 'STREAMS', outbox, '>')
end
local fresh = read()
-- The group is deleted together with an empty outbox.
if fresh and fresh.err then
  redis.call('XGROUP', 'CREATE', outbox, '${GROUP}', '0')
  fresh = read()
end
if fresh and fresh.err then return fresh end
if fresh then add(fresh[1][2]) end
local number = #entries
local next_cursor = '0-0'
if idleMs ~= '' then
  local left = redis.call('XAUTOCLAIM', outbox, '${GROUP}', '${CONSUMER}', idleMs, cursor, 'COUNT', limit)
  next_cursor = left[1]
  add(left[2])
end
return { number, next_cursor, entries }
`,
  answer: (reply): ClaimedPage => {
    const [fresh, cursor, entries] = reply as [number, string, [string, string][]]
    return { fresh, cursor, entries }
  },
})

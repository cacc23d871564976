// Deletes delivered entries of a group's outbox.
import { GROUP } from '../outbox/claim-entries.ts'
import { defineScript } from '../script.ts'

/**
 * - KEYS: the group's hash, its outbox.
 * - ARGV: the ids of the entries.
 *
 * An entry that was deleted before is skipped, so a script that is sent again does no harm. The empty outbox itself is deleted.
 */
export const deleteGroupEntriesScript = defineScript({
  name: 'delete-group-entries',
  kind: 'frees',
  keys: ['meta', 'outbox'],
  args: [],
  lua: `
for _, entry in ipairs(ARGV) do
  local stored = redis.call('XRANGE', outbox, entry, entry)[1]
  redis.call('XACK', outbox, '${GROUP}', entry)
  if stored and redis.call('XDEL', outbox, entry) == 1 and redis.call('EXISTS', meta) == 1 then
    local text = stored[2][2]
    redis.call('HINCRBY', meta, 'outboxBytes', -#text)
    if string.byte(text) ~= 109 then redis.call('HINCRBY', meta, 'owed', -1) end
  end
end
if redis.call('XLEN', outbox) == 0 then redis.call('DEL', outbox) end
`,
})

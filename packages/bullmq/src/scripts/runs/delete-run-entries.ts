// Deletes delivered entries of a pipeline run's outbox.
import { GROUP } from '../outbox/claim-entries.ts'
import { defineScript } from '../script.ts'

/**
 * - KEYS: the run's outbox.
 * - ARGV: the ids of the entries.
 *
 * An entry that was deleted before is skipped, so a script that is sent again does no harm. The empty outbox itself is deleted.
 */
export const deleteRunEntriesScript = defineScript({
  name: 'delete-run-entries',
  kind: 'frees',
  keys: ['outbox'],
  args: [],
  lua: `
for _, entry in ipairs(ARGV) do
  redis.call('XACK', outbox, '${GROUP}', entry)
  redis.call('XDEL', outbox, entry)
end
if redis.call('XLEN', outbox) == 0 then redis.call('DEL', outbox) end
`,
})

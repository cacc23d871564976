// Adds dead tasks to the index of fingerprints.
import { FINGERPRINTS } from '../../internals/status/fingerprints.ts'
import { defineScript } from '../script.ts'

/**
 * - KEYS: the dead tasks.
 * - ARGV: the prefix of the queue's keys; then, for each task, its id and its kind of error (internals/status/stored-kind.ts).
 *
 * A task that is not dead any more, or that another process has added, is skipped.
 */
export const indexDead = defineScript({
  name: 'index-dead',
  kind: 'frees',
  keys: ['dead'],
  args: ['base'],
  lua: `
local call = redis.call
${FINGERPRINTS}
for i = 2, #ARGV, 2 do
  local id = ARGV[i]
  local score = call('ZSCORE', dead, id)
  if score and call('HEXISTS', base .. id, 'name') == 1 and call('HEXISTS', base .. id, 'fingerprint') == 0 then
    enter_fingerprint(base, id, score, ARGV[i + 1])
  end
end
`,
})

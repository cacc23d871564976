// Creates a group.
import { GROUP_KEYS } from '../includes/group-steps.ts'
import { TIME } from '../includes/time.ts'
import { defineScript } from '../script.ts'

/**
 * - KEYS: the group's hash.
 * - ARGV: who creates the group, what happens on the first error, the total timeout (ms), how long the group is kept after its end
 *   (ms), for how long after its timeout an unfinished group is kept (ms), the lines of its follow-ups or '', and a digest of its
 *   settings.
 *
 * Returns the fields of the group's hash. If the group exists, the script changes nothing, and returns 'reused' if the group was
 * created with other settings.
 */
export const createGroupScript = defineScript({
  name: 'create-group',
  kind: 'adds',
  keys: [GROUP_KEYS[0]],
  args: ['by', 'onError', 'totalMs', 'keepMs', 'spareMs', 'lines', 'digest'],
  lua: `${TIME}
if redis.call('EXISTS', meta) == 0 then
  local now = millis()
  redis.call('HSET', meta, 'state', 'open', 'by', by, 'onError', onError, 'createdAt', whole(now), 'timeoutAt', whole(now + totalMs),
    'keepMs', keepMs, 'count', 0, 'ended', 0, 'digest', digest)
  if lines ~= '' then redis.call('HSET', meta, 'lines', lines) end
  redis.call('PEXPIRE', meta, whole(totalMs + spareMs))
else
  local known = redis.call('HGET', meta, 'digest')
  if known and known ~= digest then return 'reused' end
end
return redis.call('HGETALL', meta)
`,
  answer: (reply) => reply as string[] | 'reused',
})

// Stores a task that a handler has registered for the end of its own task: a compensation, or a follow-up of a failure or of any end.
import { FOLLOW_UP_LETTERS, MAX_FOLLOW_UP_BYTES, MAX_FOLLOW_UPS, NEXT_LETTER } from '@bullpen/contract/internal'
import type { RegisteredKind, Registration } from '@bullpen/engine/internal'
import { FOLLOWED_MARK } from '../../internals/status/task-charge.ts'
import { defineScript } from '../script.ts'

/** The first letter of a registration's line. Lines of compensations have a field of their own, and no letter. */
export const REGISTERED_LETTERS = {
  compensation: '',
  failure: FOLLOW_UP_LETTERS.failure,
  end: FOLLOW_UP_LETTERS.end,
} as const satisfies Record<RegisteredKind, string>

/**
 * - KEYS: the job, its lock, the queue's totals.
 * - ARGV: the lock's token, the fencing token of the attempt, the line's letter, the registration's identity, the template.
 *
 * Returns a {@link Registration}. A registration replaces an earlier one with the same letter and identity, in its place, so the script may
 * be sent again. If the task is itself a compensation, its field `followUps` also has lines for the compensations that run after it. These
 * lines do not count towards the limits. The script runs even if Redis is full, because running tasks must be able to end. A task has at
 * most 64 KiB of compensations and 64 KiB of follow-ups.
 */
export const registerTask = defineScript({
  name: 'register-task',
  kind: 'frees',
  keys: ['job', 'lock', 'totals'],
  args: ['token', 'fencingToken', 'letter', 'identity', 'template'],
  lua: `
if redis.call('GET', lock) ~= token or redis.call('HGET', job, 'ats') ~= fencingToken then return 'lock_lost' end
local field = letter == '' and 'compensations' or 'followUps'
local stored, at_end = unpack(redis.call('HMGET', job, field, 'atEnd'))
stored, at_end = stored or '', at_end or ''
local head = letter .. identity .. ' '
local own, lines, is_known, counted, bytes = head .. template, {}, false, 0, 0
local function add(line)
  lines[#lines + 1] = line
  if string.sub(line, 1, 2) ~= '${NEXT_LETTER}{' then
    counted, bytes = counted + 1, bytes + #line
  end
end
for line in string.gmatch(stored, '[^\\n]+') do
  local is_same = string.sub(line, 1, #head) == head
  add(is_same and own or line)
  is_known = is_known or is_same
end
if not is_known then add(own) end
if counted > ${MAX_FOLLOW_UPS} or bytes > ${MAX_FOLLOW_UP_BYTES} then return 'full' end
local text = table.concat(lines, '\\n')
redis.call('HSET', job, field, text, 'atEnd', '${FOLLOWED_MARK}' .. string.sub(at_end, 2))
redis.call('HINCRBY', totals, 'bytes', #text - #stored)
return 'stored'
`,
  answer: (reply) => reply as Registration,
})

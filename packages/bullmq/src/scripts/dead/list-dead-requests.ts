// Lists a queue's requests to retry or delete dead tasks by filter.
import { defineScript } from '../script.ts'
import { parseProgress } from './stored-progress.ts'

/**
 * - KEYS: the ids of the newest requests.
 * - ARGV: the prefix of the requests' progress, how many requests to list.
 *
 * Returns the newest requests first. Requests whose progress is no longer kept are left out.
 */
export const listDeadRequests = defineScript({
  name: 'list-dead-requests',
  kind: 'reads',
  keys: ['deadRequestIds'],
  args: ['prefix', 'limit'],
  lua: `
local found = {}
for _, id in ipairs(redis.call('LRANGE', deadRequestIds, 0, limit - 1)) do
  local fields = redis.call('HMGET', prefix .. id, 'request', 'changed', 'doneAt', 'stoppedBy')
  if fields[1] then found[#found + 1] = { fields[1], fields[2] or '0', fields[3] or '', fields[4] or '' } end
end
return found
`,
  answer: (reply) => (reply as unknown[]).map(parseProgress),
})

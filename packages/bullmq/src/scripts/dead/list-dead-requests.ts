// Lists a queue's requests to retry or delete dead tasks by filter.
import { defineScript } from '../script.ts'

export interface StoredProgress {
  /** The request as JSON. */
  readonly request: string
  readonly changed: string
  /** Undefined while there may be matching tasks left. */
  readonly doneAt: string | undefined
}

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
  local request, changed, doneAt = unpack(redis.call('HMGET', prefix .. id, 'request', 'changed', 'doneAt'))
  if request then found[#found + 1] = { request, changed or '0', doneAt or '' } end
end
return found
`,
  answer(reply): StoredProgress[] {
    return (reply as [string, string, string][]).map(([request, changed, doneAt]) => ({
      request,
      changed,
      doneAt: doneAt === '' ? undefined : doneAt,
    }))
  },
})

// Stores a request to retry or delete dead tasks by filter.
import { TIME } from '../includes/time.ts'
import { defineScript } from '../script.ts'

/** How many requests are listed at most. A listed request takes about 30 bytes, in addition to its progress. */
const LISTED = 1_000

/**
 * - KEYS: the requests that are not done, the progress of the new request, the ids of the newest requests.
 * - ARGV: the request's id, the request as JSON without its closing brace, how many requests the queue may then have.
 *
 * Returns the stored request, whose time is Redis's, or undefined if the queue has too many requests. A second call with the same
 * id stores nothing and returns the same request, even after the request is done.
 */
export const storeDeadRequest = defineScript({
  name: 'store-dead-request',
  kind: 'frees',
  keys: ['deadRequests', 'progress', 'deadRequestIds'],
  args: ['id', 'request', 'limit'],
  lua: `${TIME}
local stored = redis.call('HGET', progress, 'request')
if stored then return stored end
if redis.call('HLEN', deadRequests) >= tonumber(limit) then return false end
stored = request .. ',"at":' .. whole(millis()) .. '}'
redis.call('HSET', progress, 'request', stored)
redis.call('HSET', deadRequests, id, stored)
redis.call('LPUSH', deadRequestIds, id)
redis.call('LTRIM', deadRequestIds, 0, ${LISTED - 1})
return stored
`,
  answer: (reply) => (reply === null ? undefined : String(reply)),
})

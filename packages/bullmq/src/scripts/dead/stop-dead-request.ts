// Stops a request to retry or delete dead tasks by filter.
import { TIME } from '../includes/time.ts'
import { defineScript } from '../script.ts'
import { KEEP_PROGRESS_MS, parseProgress, type StoredProgress } from './stored-progress.ts'

/**
 * - KEYS: the requests that are not done, the request's progress.
 * - ARGV: the request's id, who stops it.
 *
 * Returns the request and its progress, or undefined if the request is unknown. The leader changes each page of tasks in one script,
 * which first looks for the request, so no task is changed after this script has run. A second call changes nothing.
 */
export const stopDeadRequest = defineScript({
  name: 'stop-dead-request',
  kind: 'frees',
  keys: ['deadRequests', 'progress'],
  args: ['id', 'by'],
  lua: `${TIME}
local fields = redis.call('HMGET', progress, 'request', 'changed', 'doneAt', 'stoppedBy')
if not fields[1] then return false end
if not fields[3] then
  redis.call('HDEL', deadRequests, id)
  fields[3], fields[4] = whole(millis()), by
  redis.call('HSET', progress, 'doneAt', fields[3], 'stoppedBy', by)
  redis.call('PEXPIRE', progress, ${KEEP_PROGRESS_MS})
end
return { fields[1], fields[2] or '0', fields[3], fields[4] or '' }
`,
  answer: (reply): StoredProgress | undefined => (reply === null ? undefined : parseProgress(reply)),
})

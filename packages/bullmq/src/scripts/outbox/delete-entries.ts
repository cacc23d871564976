// Deletes delivered entries of an outbox, and opens the queue that a full outbox has closed.
import { DELAYED_SCORE_STEP } from '../../internals/status/places.ts'
import { CLOSED_BY_OUTBOX, MAX_OUTBOX_BYTES, MAX_OUTBOX_ENTRIES } from '../../outbox/outbox-steps.ts'
import { defineScript } from '../script.ts'
import { GROUP } from './claim-entries.ts'

/**
 * - KEYS: the outbox, `totals`, `meta`, `marker`, `wait`, `prioritized`, `lanes`, `delayed`.
 * - ARGV: the ids of the entries, at most 200.
 *
 * Returns nothing. An entry that is deleted already is skipped, so a script that is sent again does no harm. The empty outbox itself
 * is deleted. The queue is opened when the outbox is at most half full, so that it is not closed again at the next end.
 */
export const deleteEntries = defineScript({
  name: 'delete-entries',
  kind: 'frees',
  keys: ['outbox', 'totals', 'meta', 'marker', 'wait', 'prioritized', 'lanes', 'delayed'],
  args: [],
  lua: `
local bytes = 0
for _, id in ipairs(ARGV) do
  local entry = redis.call('XRANGE', outbox, id, id)[1]
  if entry then
    bytes = bytes + #entry[2][2]
    redis.call('XACK', outbox, '${GROUP}', id)
    redis.call('XDEL', outbox, id)
  end
end
local left, left_bytes = redis.call('XLEN', outbox), 0
if left == 0 then
  redis.call('DEL', outbox)
  redis.call('HDEL', totals, 'outboxBytes')
else
  left_bytes = redis.call('HINCRBY', totals, 'outboxBytes', -bytes)
end
if left > ${MAX_OUTBOX_ENTRIES / 2} or left_bytes > ${MAX_OUTBOX_BYTES / 2} then return end
if redis.call('HGET', meta, 'paused') ~= '${CLOSED_BY_OUTBOX}' then return end
redis.call('HDEL', meta, 'paused')
if redis.call('LLEN', wait) + redis.call('EXISTS', prioritized, lanes) > 0 then
  redis.call('ZADD', marker, 0, '0')
else
  local due = redis.call('ZRANGE', delayed, 0, 0, 'WITHSCORES')
  if due[2] then redis.call('ZADD', marker, tonumber(due[2]) / ${DELAYED_SCORE_STEP}, '1') end
end
`,
})

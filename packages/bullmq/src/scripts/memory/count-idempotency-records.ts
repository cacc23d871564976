// Counts the records of a queue's idempotency keys.
import { defineScript } from '../script.ts'

/**
 * - KEYS: the counts, a hash that contains the number of records by the time (s since 1970) by which all of them have expired.
 * - ARGV: for records that are not counted yet: the time by which all of them have expired, and their number, in turns.
 *
 * Adds these records to the counts, deletes the counts of expired records, and returns the number of the other records. The hash expires
 * together with the last of these records, so that it does not outlive the queue's producers.
 */
export const countIdempotencyRecords = defineScript({
  name: 'count-idempotency-records',
  kind: 'frees',
  keys: ['counts'],
  args: [],
  lua: `
local now = tonumber(redis.call('TIME')[1])
for i = 1, #ARGV, 2 do redis.call('HINCRBY', counts, ARGV[i], ARGV[i + 1]) end
local flat, records, last = redis.call('HGETALL', counts), 0, 0
for i = 1, #flat, 2 do
  local expires_at = tonumber(flat[i])
  if expires_at <= now then
    redis.call('HDEL', counts, flat[i])
  else
    records = records + flat[i + 1]
    last = math.max(last, expires_at)
  end
end
if last > 0 then redis.call('EXPIREAT', counts, last) end
return records
`,
  answer: (reply) => Number(reply),
})

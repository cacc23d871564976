// Adds queues to a namespace's registry.
import { defineScript } from '../script.ts'

/**
 * - KEYS: schema, registry.
 * - ARGV: the caller's schema version; '1' to replace stored retentions, '' to store only missing ones; then for each queue its
 *   name and its retention as JSON ('' if the caller does not consume the queue).
 *
 * Returns whether the namespace has the caller's schema version. Otherwise nothing is written, because the namespace has to be
 * checked again. The script runs even if Redis is full, because a worker that starts will end tasks.
 */
export const registerQueuesScript = defineScript({
  name: 'register-queues',
  kind: 'frees',
  keys: ['schema', 'registry'],
  args: ['schemaVersion', 'replaces'],
  lua: `
if redis.call('GET', schema) ~= schemaVersion then return 0 end
for i = 3, #ARGV, 2 do
  local queue, retention = ARGV[i], ARGV[i + 1]
  local stored = redis.call('HGET', registry, queue)
  if not stored or retention ~= '' and (replaces == '1' or stored == '') then
    redis.call('HSET', registry, queue, retention)
  end
end
return 1
`,
  answer: (reply) => reply === 1,
})

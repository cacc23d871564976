// Adds queues to the registry of a namespace.
import { defineScript } from '../script.ts'

/**
 * KEYS: the registry. ARGV: the queues. Returns nothing. Also runs in a full Redis, because a worker that starts then ends tasks.
 */
export const registerQueuesScript = defineScript({
  name: 'register-queues',
  kind: 'frees',
  keys: ['queues'],
  args: [],
  lua: `redis.call('SADD', queues, unpack(ARGV))`,
})

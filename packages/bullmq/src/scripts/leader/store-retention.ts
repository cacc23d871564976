// Stores how long the leader keeps the completed tasks of a queue.
import { defineScript } from '../script.ts'

/**
 * KEYS: settings. ARGV: how long completed tasks are kept, in ms. Returns nothing. Also runs in a full Redis, because a worker
 * must be able to start then.
 */
export const storeRetention = defineScript({
  name: 'store-retention',
  kind: 'frees',
  keys: ['settings'],
  args: ['completedRetentionMs'],
  lua: `redis.call('HSET', settings, 'completedRetentionMs', completedRetentionMs)`,
})

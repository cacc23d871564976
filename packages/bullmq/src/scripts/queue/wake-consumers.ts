// Wakes the consumers that were refused a task because of the queue's concurrency limit.
import { defineScript } from '../script.ts'

/**
 * Adds BullMQ's wake marker if the queue has a concurrency limit, room below that limit, and waiting tasks.
 *
 * KEYS: meta, active, wait, prioritized, marker. Answers nothing.
 */
export const wakeConsumers = defineScript({
  name: 'wake-consumers',
  kind: 'frees',
  keys: ['meta', 'active', 'wait', 'prioritized', 'marker'],
  args: [],
  lua: `
local settings = redis.call('HMGET', meta, 'concurrency', 'paused')
local limit = tonumber(settings[1] or '0')
if limit == 0 or settings[2] or redis.call('LLEN', active) >= limit then return end
if redis.call('LLEN', wait) + redis.call('ZCARD', prioritized) > 0 then redis.call('ZADD', marker, 0, '0') end
`,
})

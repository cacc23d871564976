// What is left of a queue: the tasks that a light drain of its fleet waits for.
import type { Redis } from 'ioredis'
import type { QueueKeys } from '../keys.ts'

/** KEYS: wait, prioritized, active, delayed. A delayed job's due time is in its score above twelve bits. */
const REMAINING = `
local time = redis.call('TIME')
local due = (time[1] * 1000 + math.floor(time[2] / 1000) + 1) * 0x1000
return redis.call('LLEN', KEYS[1]) + redis.call('ZCARD', KEYS[2]) + redis.call('LLEN', KEYS[3])
  + redis.call('ZCOUNT', KEYS[4], '-inf', '(' .. string.format('%.0f', due))
`

/** Tasks that are waiting, active, or due by Redis's clock. One round trip. */
export async function countRemaining(redis: Redis, keys: QueueKeys): Promise<number> {
  const names = [keys.wait, keys.prioritized, keys.active, keys.delayed]
  return (await redis.eval(REMAINING, names.length, ...names)) as number
}

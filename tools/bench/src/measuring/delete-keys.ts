// Deletes what a benchmark has stored.
import type { Redis } from 'ioredis'

export async function deleteKeys(redis: Redis, pattern: string): Promise<void> {
  for await (const keys of redis.scanStream({ match: pattern, count: 1_000 })) {
    if (keys.length > 0) await redis.del(keys)
  }
}

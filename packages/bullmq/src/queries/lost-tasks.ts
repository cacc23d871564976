// Reads which acknowledged tasks Redis is known to have lost.
import type { LostTasksFacts } from '@bullpen/engine/internal'
import type { QueueKeys } from '../keys.ts'
import type { Commander } from '../scripts/script.ts'
import { readTogether } from './read-together.ts'

/** Takes one round trip. Returns undefined if Redis has lost none within the last day. */
export async function readLostTasks(redis: Commander, { lostTasks }: QueueKeys): Promise<LostTasksFacts | undefined> {
  const replies = await readTogether(redis, (reads) => reads.hlen(lostTasks).hget(lostTasks, 'newest'))
  const [fields, newest] = replies as [number, string | null]
  if (newest === null) return undefined
  const [newestId = '', noticedAt] = newest.split(' ')
  // One of the fields is `newest`.
  return { tasks: fields - 1, newestId, noticedAt: Number(noticedAt) }
}

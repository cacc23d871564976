// Reads the head of a queue: the oldest waiting task, and whether and why waiting tasks do not start.
import type { QueueHead } from '@bullpen/engine/internal'
import type { QueueKeys } from '../keys.ts'
import { readHead } from '../scripts/queue/read-head.ts'
import { type Commander, runScript } from '../scripts/script.ts'

/** Takes constant time and one round trip. */
export async function readQueueHead(redis: Commander, keys: QueueKeys): Promise<QueueHead> {
  return runScript(redis, readHead, keys, keys)
}

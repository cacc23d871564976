// Reads the head of a queue: the oldest waiting task, and whether and why waiting tasks do not start.
import type { QueueHead } from '@bullpen/engine/internal'
import { THROTTLE_MARK } from '../internals/throttle.ts'
import type { QueueKeys } from '../keys.ts'
import { decodeUnattached } from '../leader/unattached-workers.ts'
import { CLOSED_BY_OUTBOX } from '../outbox/outbox-bounds.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import { readHeadScript } from '../store/scripts.ts'

/** Takes constant time and one round trip. */
export async function readQueueHead(redis: Commander, keys: QueueKeys): Promise<QueueHead> {
  const reply = await runScript(redis, readHeadScript, keys, { base: keys.base, mark: THROTTLE_MARK })
  const [paused, draining, blockedTasks, nextReadyAt, oldest, [blockedId, blockedReadyAt], unattached] = reply
  const [id, task = '', enqueuedAt, readyAt] = oldest
  return {
    oldest: id === undefined ? undefined : { id, task, enqueuedAt: Number(enqueuedAt), readyAt: Number(readyAt) },
    nextReadyAt: nextReadyAt === '' ? undefined : Number(nextReadyAt),
    blockedTasks,
    oldestBlocked: blockedId === undefined ? undefined : { id: blockedId, readyAt: Number(blockedReadyAt) },
    isPaused: paused !== null && paused !== CLOSED_BY_OUTBOX,
    isDraining: draining === 1,
    unattached: decodeUnattached(unattached),
  }
}

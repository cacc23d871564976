// Reads the head of a queue: the oldest waiting task, the one that starts next, how many are blocked and the oldest of
// them, and whether a command holds the queue.
import type { QueueHead } from '@bullpen/engine/internal'
import { READY_AT } from '../../internals/ready-at.ts'
import { BLOCKED_TASKS } from '../../internals/turns/blocked-tasks.ts'
import { OLDEST_TASKS } from '../../internals/turns/oldest-task.ts'
import { CLOSED_BY_OUTBOX } from '../../outbox/outbox-steps.ts'
import { TIME } from '../../store/scripts.ts'
import { defineScript } from '../script.ts'

/**
 * - KEYS: BullMQ's `meta`, the settings of the queue.
 * - ARGV: the prefix of the queue's keys.
 *
 * The time does not depend on the number of tasks or lanes. Everything is read at the same moment. Otherwise, if workers
 * take tasks quickly, the task would have started before its times are read, and would seem to have been ready only
 * since then.
 */
export const readHead = defineScript({
  name: 'read-head',
  kind: 'reads',
  keys: ['meta', 'settings'],
  args: ['base'],
  lua: `${TIME}${BLOCKED_TASKS}${READY_AT}${OLDEST_TASKS}
local now = millis()
local limits = limits_at(base, now)
local starts_next = next_startable(base, limits)
local next_since = starts_next and ready_at(base, starts_next)
local oldest, since, blocked, blocked_since = oldest_tasks(base, limits)
local name, enqueued_at = unpack(oldest and redis.call('HMGET', base .. oldest, 'name', 'timestamp') or {})
return {
  redis.call('HGET', meta, 'paused'), redis.call('HEXISTS', settings, 'drain'), count_blocked(base, limits), next_since and whole(next_since) or '',
  oldest and { oldest, name, enqueued_at, whole(since) } or {}, blocked and { blocked, whole(blocked_since) } or {},
}
`,
  answer(reply): QueueHead {
    const [paused, draining, blockedTasks, nextReadyAt, oldest, [blockedId, blockedReadyAt]] = reply as Reply
    return {
      oldest: oldest.length === 0 ? undefined : decodeOldest(oldest),
      nextReadyAt: nextReadyAt === '' ? undefined : Number(nextReadyAt),
      blockedTasks,
      oldestBlocked: blockedId === undefined ? undefined : { id: blockedId, readyAt: Number(blockedReadyAt) },
      isPaused: paused !== null && paused !== CLOSED_BY_OUTBOX,
      isDraining: draining === 1,
    }
  },
})

type Oldest = [id: string, task: string, enqueuedAt: string, readyAt: string]
type OldestBlocked = [id: string, readyAt: string]
type Reply = [
  paused: string | null,
  draining: 0 | 1,
  blockedTasks: number,
  nextReadyAt: string,
  oldest: [] | Oldest,
  oldestBlocked: [] | OldestBlocked,
]

function decodeOldest([id, task, enqueuedAt, readyAt]: Oldest): QueueHead['oldest'] {
  return { id, task, enqueuedAt: Number(enqueuedAt), readyAt: Number(readyAt) }
}

// Reports each worker that has fallen silent without leaving the fleet, for example because it was killed. Its tasks are recovered by
// the queues' own checks (./lost-tasks.ts).
//
// After an outage of Redis, or a time in which it refused writes, every worker has been silent for as long as that lasted. After a
// restore, all heartbeats are as old as the backup. A leader therefore reports a worker only once regular visits of its own have found the
// same last heartbeat for as long as a worker may be silent.
import { FORGOTTEN_AFTER_MS, HEARTBEAT_INTERVAL_MS, SILENT_AFTER_MS } from '@bullpen/engine/internal'
import { decodeStatus } from '../fleet/status-codec.ts'
import { type FleetKeys, fleetKeys } from '../keys.ts'
import { pairsOf } from '../scripts/pairs.ts'
import type { Commander } from '../scripts/script.ts'
import type { VisitDue } from './visit-registry.ts'

/** The maximum number of tasks that a report names. */
const MAX_IDS = 10
/** One heartbeat more than the fleet allows, because a connection that became silent delays a live worker's heartbeats by up to 6.5 s. */
const LOST_AFTER_MS = SILENT_AFTER_MS + HEARTBEAT_INTERVAL_MS
/** A longer time between two visits may have been an outage, in ms. The leader's rounds are 1.5 s apart. */
const MAX_GAP_MS = SILENT_AFTER_MS / 2

export interface LostWorker {
  readonly worker: string
  readonly host: string
  /** How many tasks it ran when it sent its last heartbeat, in all and in each of its queues, and the ids of some of them. */
  readonly tasks: number
  readonly queues: Readonly<Record<string, number>>
  readonly ids: readonly string[]
  readonly silentMs: number
}

export interface LostWorkersOptions {
  readonly redis: Commander
  readonly namespace: string
  /** In ms since 1970, by Redis's clock. */
  readonly now: () => number
  readonly onLost: (lost: LostWorker) => void
}

/**
 * Returns the leader's duty that reports lost workers. A report is noted at the worker, so that the next leader does not repeat it. A
 * worker that comes back and is lost again is reported again. Takes one round trip if no worker is silent.
 */
export function reportLostWorkers({ redis, namespace, now, onLost }: LostWorkersOptions): VisitDue {
  const keys = fleetKeys(namespace)
  let visitedAt = Number.NEGATIVE_INFINITY
  /** When this leader's regular visits first found a heartbeat to be the last one of its worker. */
  let foundAt: ReadonlyMap<string, number> = new Map()
  return async (isOver) => {
    const at = now()
    const [from, until] = [at - FORGOTTEN_AFTER_MS, at - HEARTBEAT_INTERVAL_MS]
    const late = pairsOf(await redis.zrangebyscore(keys.heartbeats, from, `(${until}`, 'WITHSCORES'))
    const before = at - visitedAt > MAX_GAP_MS ? undefined : foundAt
    visitedAt = at
    foundAt = new Map(late.map(([id, seenAt]) => [`${seenAt} ${id}`, before?.get(`${seenAt} ${id}`) ?? at]))
    for (const [id, seenAt] of late) {
      const watchedMs = at - (foundAt.get(`${seenAt} ${id}`) ?? at)
      if (isOver() || watchedMs < SILENT_AFTER_MS || at - Number(seenAt) <= LOST_AFTER_MS) continue
      const lost = await noteLost(redis, keys, { id, seenAt, at })
      if (lost !== undefined) onLost(lost)
    }
  }
}

async function noteLost(
  redis: Commander,
  keys: FleetKeys,
  { id, seenAt, at }: { readonly id: string; readonly seenAt: string; readonly at: number },
): Promise<LostWorker | undefined> {
  const key = keys.worker(id)
  const [status, slots, reported] = await redis.hmget(key, 'status', 'slots', 'lostAfter')
  // Its record expires before other workers' heartbeats remove its name.
  if (!status || reported === seenAt) return undefined
  // The heartbeat that was the last one tells one loss from the next. The record may have expired in the meantime.
  await redis.multi().hset(key, 'lostAfter', seenAt).pexpire(key, FORGOTTEN_AFTER_MS).exec()
  const { worker, host, pools } = decodeStatus(status, slots || undefined)
  const ids = pools.flatMap(({ slots: all }) => all.flatMap(({ task }) => task?.id ?? []))
  const queues = pools.map((pool) => [pool.queue, pool.slots.filter(({ task }) => task !== undefined).length] as const)
  const silentMs = at - Number(seenAt)
  return { worker, host, tasks: ids.length, queues: Object.fromEntries(queues), ids: ids.slice(0, MAX_IDS), silentMs }
}

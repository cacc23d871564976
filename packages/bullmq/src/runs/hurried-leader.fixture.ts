// Lets the leader find what a dead process has left of a run sooner than it usually does.
import type { RunId } from '@bullpen/contract'
import type { Redis } from 'ioredis'
import { queueKeys, runKeys, runsKey } from '../keys.ts'
import { ageClaims } from '../outbox/age-claims.fixture.ts'

export interface HurriedRuns {
  readonly redis: Redis
  readonly namespace: string
  readonly queues: readonly string[]
  readonly ids: readonly RunId[]
}

/** After this time, in ms, an entry counts as left. Living processes deliver their entries sooner. */
const LEFT_MS = 500
const EVERY_MS = 100

/** Lets the leader visit the runs at once, and take over entries that a process has claimed and not delivered. */
export async function hurryLeader({ redis, namespace, queues, ids }: HurriedRuns, leftMs = LEFT_MS): Promise<void> {
  for (const id of ids) await redis.zadd(runsKey(namespace), 'XX', 0, id)
  const outboxes = [...ids.map((id) => runKeys(namespace, id)), ...queues.map((queue) => queueKeys(namespace, queue))]
  await ageClaims(
    redis,
    outboxes.map(({ outbox }) => outbox),
    leftMs,
  )
}

/** Calls {@link hurryLeader} again and again until the returned function is called. */
export function keepHurrying(runs: HurriedRuns): () => void {
  const timer = setInterval(() => void hurryLeader(runs).catch(() => {}), EVERY_MS)
  return () => clearInterval(timer)
}

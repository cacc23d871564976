// Reads what a waiting task in a lane waits for.
import type { LaneWait, TaskId } from '@bullpen/contract'
import { MAX_AHEAD } from '@bullpen/contract/internal'
import { parseLimiter } from '@bullpen/engine/internal'
import type { QueueKeys } from '../keys.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import { readTurnScript } from '../store/scripts.ts'

/** Returns undefined if the task is not in a lane. Takes one round trip. */
export async function readLaneWait(redis: Commander, keys: QueueKeys, id: TaskId): Promise<LaneWait | undefined> {
  const args = { base: keys.base, id, max: MAX_AHEAD }
  const reply = await runScript(redis, readTurnScript, { job: keys.job(id) }, args)
  if (reply === null) return undefined
  const [ahead, kind, stored = '', time] = reply
  const until = time == null ? undefined : Number(time)
  if (kind === 'rate') return { kind, ahead, until: until ?? 0 }
  if (kind !== 'limiter') return { kind, ahead }
  const [, service] = /^service:(.*)$/.exec(stored) ?? []
  if (service !== undefined) return { kind: 'breaker', service, ahead, ...(until !== undefined && { until }) }
  const limiter = parseLimiter(stored)
  return limiter === undefined ? { kind: 'turn', ahead } : { kind: limiter.kind, limiter: limiter.name, ahead }
}

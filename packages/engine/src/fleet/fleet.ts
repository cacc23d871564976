// The rules of the fleet: which workers are alive, which of them a command concerns, and what its answers add up to.
import type { CommandOutcome } from '@bullpen/contract'
import type { CommandSpec } from '@bullpen/contract/internal'
import type { CommandAnswer, RegisteredWorker } from '../ports/fleet.ts'

export const HEARTBEAT_INTERVAL_MS = 2_000
/** A worker that misses three heartbeats is silent. */
export const SILENT_AFTER_MS = 3 * HEARTBEAT_INTERVAL_MS
/** A silent worker is removed from the fleet view after this time. */
export const FORGOTTEN_AFTER_MS = 60_000

/** `now`: by the store's clock. */
export function isAlive({ seenAt }: RegisteredWorker, now: number): boolean {
  return now - seenAt <= SILENT_AFTER_MS
}

/**
 * The workers that a command is for: the one that it names, or every live one with a pool on its queue. A resize of all
 * workers also goes to silent ones: no setting of the queue repeats it to a worker that comes back.
 */
export function recipients(spec: CommandSpec, workers: readonly RegisteredWorker[], now: number): readonly string[] {
  // The limits of the whole fleet are settings of the queue: no worker has to act.
  if (spec.action === 'limit') return []
  const { queue, worker } = spec
  return workers
    .filter((each) => isAlive(each, now) || (spec.action === 'resize' && worker === undefined))
    .filter((each) => worker === undefined || each.worker === worker)
    .filter((each) => worker !== undefined || each.pools.some((pool) => pool.queue === queue))
    .map((each) => each.worker)
}

/** Done without any answers: then the command only changed the settings of its queue. */
export function outcomeOf(answers: readonly CommandAnswer[]): CommandOutcome {
  if (answers.some(({ outcome }) => outcome === 'pending')) return 'pending'
  const done = answers.filter(({ outcome }) => outcome === 'done').length
  if (done === answers.length) return 'done'
  return done > 0 ? 'partly' : 'refused'
}

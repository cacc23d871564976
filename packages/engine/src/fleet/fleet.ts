// The rules of the fleet: which workers are alive, which of them receive a command, and how their answers combine to an outcome.
import type { CommandOutcome } from '@bullpen/contract'
import type { CommandSpec } from '@bullpen/contract/internal'
import type { CommandAnswer, RegisteredWorker } from '../ports/fleet.ts'

export const HEARTBEAT_INTERVAL_MS = 2_000
/** A worker that misses three heartbeats is considered silent. */
export const SILENT_AFTER_MS = 3 * HEARTBEAT_INTERVAL_MS
/** A silent worker is removed from the fleet view after this time. */
export const FORGOTTEN_AFTER_MS = 60_000

/** `now` is the time of the store's clock. */
export function isAlive({ seenAt }: RegisteredWorker, now: number): boolean {
  return now - seenAt <= SILENT_AFTER_MS
}

/**
 * Returns the workers that receive a command: the worker that the command names, or every live worker with a pool on its queue.
 * A resize of all workers also goes to silent workers, because the queue has no setting that would tell a worker that comes back.
 */
export function recipients(spec: CommandSpec, workers: readonly RegisteredWorker[], now: number): readonly string[] {
  // The limits of the whole fleet are settings of the queue, so no worker has to act.
  if (spec.action === 'limit') return []
  const { queue, worker } = spec
  return workers
    .filter((each) => isAlive(each, now) || (spec.action === 'resize' && worker === undefined))
    .filter((each) => worker === undefined || each.worker === worker)
    .filter((each) => worker !== undefined || each.pools.some((pool) => pool.queue === queue))
    .map((each) => each.worker)
}

/** Without any answers, the outcome is `done`, because the command only changed the settings of its queue. */
export function outcomeOf(answers: readonly CommandAnswer[]): CommandOutcome {
  if (answers.some(({ outcome }) => outcome === 'pending')) return 'pending'
  const done = answers.filter(({ outcome }) => outcome === 'done').length
  if (done === answers.length) return 'done'
  return done > 0 ? 'partly' : 'refused'
}

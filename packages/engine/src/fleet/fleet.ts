// Defines the fleet's rules: which workers are alive, and how their responses to a command combine into its outcome.
import type { CommandOutcome } from '@bullpen/contract'
import type { CommandResponse, RegisteredWorker } from '../ports/fleet.ts'

export const HEARTBEAT_INTERVAL_MS = 2_000
/** A worker that misses three heartbeats is considered silent. */
export const SILENT_AFTER_MS = 3 * HEARTBEAT_INTERVAL_MS
/** A silent worker is removed from the fleet view after this time. */
export const FORGOTTEN_AFTER_MS = 60_000

/** Returns whether the worker is alive. `now` is the time on the store's clock. */
export function isAlive({ seenAt }: Pick<RegisteredWorker, 'seenAt'>, now: number): boolean {
  return now - seenAt <= SILENT_AFTER_MS
}

/**
 * Returns a command's outcome. If no worker has to respond, the outcome is `done`, because the command has only changed its
 * queue's settings.
 */
export function outcomeOf(responses: readonly CommandResponse[]): CommandOutcome {
  if (responses.some(({ outcome }) => outcome === 'pending')) return 'pending'
  const done = responses.filter(({ outcome }) => outcome === 'done').length
  if (done === responses.length) return 'done'
  return done > 0 ? 'partly' : 'refused'
}

// Requeues the tasks whose worker was lost, with BullMQ's own script. The leader runs that script for every queue, so that
// BullMQ's Workers do not need their own check (`skipStalledCheck`).
import { MAX_LOSSES } from '@bullpen/engine/internal'
import type { QueueKeys } from '../keys.ts'
import type { Commander } from '../scripts/script.ts'
import { commandsOf } from './composition/backend.ts'
import { COMPOSED } from './composition/composed-scripts.ts'

const NAME = 'moveStalledJobsToWait'

export interface StalledCheck {
  /** The leader's fencing number. If there is a newer leader, nothing is written. */
  readonly fencing: number
  /** In ms since 1970. */
  readonly now: number
}

/**
 * Requeues lost tasks, which takes two checks. The first check marks the active tasks, and renewing a task's lock removes its
 * mark. The second check returns the tasks that are still marked and have no lock to the head of their queue, and stores the
 * record of each lost attempt. A task that has lost its worker more than `MAX_LOSSES` times is flagged so that the next worker
 * fails it. A check is atomic, takes one round trip, and costs Redis O(active tasks).
 */
export async function requeueLostTasks(
  redis: Commander,
  keys: QueueKeys,
  { fencing, now }: StalledCheck,
): Promise<void> {
  const script = COMPOSED.get(NAME)
  if (script === undefined) throw new Error(`BullMQ has no script ${NAME}`)
  const { stalled, wait, active, leaderCheck, meta, paused, marker, events, repeat, base } = keys
  const names = [stalled, wait, active, leaderCheck, meta, paused, marker, events, repeat]
  const checkMs = 1
  const extras: Readonly<Record<string, number>> = { at: now, fencing }
  const args = [MAX_LOSSES, base, now, checkMs, ...script.extra.map((name) => extras[name] ?? ''), base]
  await commandsOf(redis).runCommand(script.name, [...names, ...args])
}

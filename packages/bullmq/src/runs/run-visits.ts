// Lets the leader look at a pipeline run: stops it when its total timeout has passed, delivers the outbox entries that other processes
// have left, and reports tasks that no longer exist (./missing-tasks.ts). Every step may be repeated, so a former leader does no harm.
import type { RunId } from '@bullpen/contract'
import { readRunId } from '@bullpen/contract/internal'
import { FORCED_RUN_END_MS } from '@bullpen/engine/internal'
import { runChannels, runKeys } from '../keys.ts'
import { VISIT_EVERY_MS, type VisitRegistry } from '../leader/visit-registry.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import { visitRunScript } from '../store/scripts.ts'
import { type MissingTask, missingTasks } from './missing-tasks.ts'
import { expireRunCancels } from './run-cancels.ts'
import { runChange } from './run-change.ts'
import type { RunDeliveries } from './run-deliveries.ts'

export interface RunVisitOptions {
  readonly redis: Commander
  readonly namespace: string
  readonly registry: Pick<VisitRegistry<RunId>, 'register' | 'reschedule' | 'forget'>
  /** The time in ms since 1970, by Redis's clock. */
  readonly now: () => number
  readonly deliveries: Pick<RunDeliveries, 'deliver' | 'reportRemoved' | 'templatesOf'>
  /** Called for each task that no longer exists although it had not ended. */
  readonly onMissing: (run: RunId, task: MissingTask) => void
}

/**
 * How often the leader looks at an unfinished run, in ms. An entry that a dead process has left waits for at most this time
 * plus the next.
 */
export const VISIT_RUN_EVERY_MS = 5_000
/** After this time, in ms, the leader takes over a claimed entry, because the process that claimed it has died or could not deliver it. */
const CLAIM_MS = 5_000

/** Returns a function that looks at one run. Takes two or three round trips, and more if something was left or may be missing. */
export function runVisit(options: RunVisitOptions): (id: RunId) => Promise<void> {
  const { redis, namespace, registry, now, deliveries, onMissing } = options
  const channels = runChannels(namespace)
  const tasks = missingTasks({ redis, namespace, now, templatesOf: deliveries.templatesOf })

  async function reportMissing(id: RunId): Promise<void> {
    const found = await tasks.search(id)
    if (found === undefined || found.missing.length === 0) return
    for (const task of found.missing) onMissing(id, task)
    await deliveries.reportRemoved(found.run, found.missing)
  }

  return async (id) => {
    await registry.reschedule(id, now() + VISIT_RUN_EVERY_MS)
    const args = { id, channels, forcedEndMs: FORCED_RUN_END_MS, leftForMs: CLAIM_MS }
    const keys = runKeys(namespace, id)
    const reply = await runScript(redis, visitRunScript, keys, args)
    if (reply === null) {
      // The process that starts the run may have registered it just now.
      const createdAt = readRunId(id)?.createdAt ?? 0
      if (createdAt + VISIT_EVERY_MS < now()) await registry.forget(id)
      return
    }
    const change = runChange(reply)
    await deliveries.deliver(id, change)
    const [, , finished] = reply
    if (finished === null) return reportMissing(id)
    tasks.forget(id)
    const [isCancelOver, queues, reduceQueue] = finished
    if (isCancelOver === 1) {
      const used = { queues: queues.split(' '), reduceQueue: reduceQueue || undefined }
      await expireRunCancels(redis, namespace, { id, incarnation: change.incarnation }, used)
    }
    await registry.forget(id)
    // Since the script was called, the run may have been deleted, and its id used again.
    const incarnation = await redis.hget(keys.meta, 'incarnation')
    if (incarnation !== null && incarnation !== change.incarnation) {
      await registry.register(id, now() + VISIT_RUN_EVERY_MS)
    }
  }
}

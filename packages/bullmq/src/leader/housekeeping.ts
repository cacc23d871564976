// What the leader does for one queue: it surveys the queue, and then does the duties that the survey names.
import type { TaskId } from '@bullpen/contract'
import { repeatCancels } from '../cancel/by-id.ts'
import { requeueLostTasks } from '../internals/stalled-check.ts'
import { THROTTLE_MARK } from '../internals/throttle.ts'
import { queueKeys } from '../keys.ts'
import { expireTasks } from '../maintenance/expirer.ts'
import { type Duty, surveyQueueScript } from '../scripts/leader/survey-queue.ts'
import { type Commander, runScript } from '../scripts/script.ts'

export interface HousekeepingOptions {
  readonly redis: Commander
  readonly namespace: string
  /** The time in ms since 1970, by Redis's clock. */
  readonly now: () => number
  /** The name of this process, for the records of the tasks that it ends. */
  readonly process: string
  /** Called for each task that this process has expired. The callback must not throw or block. */
  readonly onExpired: (expired: { readonly queue: string; readonly id: TaskId; readonly task: string }) => void
}

/** Returns whether the queue accepts this leader, and otherwise the number of the newer one. */
export type Housekeeping = (queue: string, fencing: number) => Promise<Round>

export type Round = { readonly deposedBy: number } | { readonly deposedBy: undefined }

/**
 * Every script is fenced, except those that repeat a cancel, which is a request that anybody may make. Losing the leader may delay
 * these duties, and having two for a moment does nothing twice.
 */
export function createHousekeeping(options: HousekeepingOptions): Housekeeping {
  const { redis, namespace, now, process, onExpired } = options
  return async (queue, fencing) => {
    const keys = queueKeys(namespace, queue)
    const perform = {
      requeueLost: () => requeueLostTasks(redis, keys, { fencing, now: now() }),
      expire: async () => {
        const expired = await expireTasks(redis, keys, { fencing, now: now(), process })
        for (const each of expired) onExpired({ queue, ...each })
      },
      repeatCancels: () => repeatCancels(redis, keys, now(), process),
    } satisfies Record<Duty, () => Promise<void>>
    const survey = await runScript(redis, surveyQueueScript, keys, { fencing, now: now(), mark: THROTTLE_MARK })
    if (survey.fencing > fencing) return { deposedBy: survey.fencing }
    for (const duty of survey.duties) await perform[duty]()
    return { deposedBy: undefined }
  }
}

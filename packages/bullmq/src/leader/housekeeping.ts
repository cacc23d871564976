// Does the leader's work for one queue: surveys the queue, and then does the duties that the survey names.
//
// Every script is fenced (scripts/includes/fence.ts), except where doing something twice is harmless: a repeated cancellation is
// a request that any process may make, and the script that repairs an entry compares it again first. Losing the leader may
// therefore delay these duties, but if there are briefly two leaders, they do not do anything twice.
import { randomUUID } from 'node:crypto'
import type { TaskId } from '@bullpen/contract'
import { type BulkCanceller, createBulkCanceller, type Term } from '../cancel/bulk-canceller.ts'
import { repeatCancels } from '../cancel/by-id.ts'
import { requeueLostTasks } from '../internals/stalled-check.ts'
import { repairIndex } from '../internals/status/index-repair.ts'
import { THROTTLE_MARK } from '../internals/throttle.ts'
import { queueKeys } from '../keys.ts'
import { removeOldScript } from '../scripts/leader/remove-old.ts'
import { type Duty, surveyQueueScript } from '../scripts/leader/survey-queue.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import { expireTasks } from './expirer.ts'
import type { RegisteredQueue } from './queue-registry.ts'

type OnEnded = (ended: { readonly queue: string; readonly id: TaskId; readonly task: string }) => void

export interface HousekeepingOptions {
  readonly redis: Commander
  readonly namespace: string
  /** The time in ms since 1970, by Redis's clock. */
  readonly now: () => number
  /** The name of this process, for the records of the tasks that it ends. */
  readonly process: string
  /** Called for each task that this process expired. The callback must not throw or block. */
  readonly onExpired: OnEnded
  /** Called for each waiting task that this process ended because of a cancellation. The callback must not throw or block. */
  readonly onCancelled: OnEnded
  /** Called with the number of entries in a queue's status index that were repaired. */
  readonly onRepaired: (queue: string, entries: number) => void
  /** Called when a long duty has failed. */
  readonly onFailed: (error: unknown) => void
  /** How often a queue's status index is compared entry by entry, in ms. Defaults to 600,000. Tests set this. */
  readonly compareEveryMs?: number
}

/**
 * Does the housekeeping of a queue once. Resolves to a newer leader's fencing number if one has worked on the queue, and
 * otherwise to undefined. Long duties may still be running by then, and are not started again until they have ended.
 */
export type Housekeeping = (queue: RegisteredQueue, term: Term) => Promise<number | undefined>

/** Duties that may take longer than a round. Lost tasks must still be found in the meantime. */
const LONG: ReadonlySet<Duty> = new Set<Duty>(['cancelByRules', 'removeOld', 'repairIndex'])

/**
 * How often a queue's index is compared entry by entry, in ms. A survey compares only sizes, and a part that lacks one task and
 * has another one too many still has the right size.
 */
const COMPARE_EVERY_MS = 600_000

/** The maximum number of tasks that one script removes. */
const REMOVE_AT_ONCE = 100

export function createHousekeeping(options: HousekeepingOptions): Housekeeping {
  const { redis, namespace, now, process, onExpired, onCancelled, onRepaired, onFailed } = options
  const { compareEveryMs = COMPARE_EVERY_MS } = options
  const caller = randomUUID()
  /** When the index of each queue is compared next, on the monotonic clock. */
  const compareAt = new Map<string, number>()
  const bulkCancellers = new Map<string, BulkCanceller>()
  const underWay = new Set<string>()

  const bulkCanceller = (queue: string): BulkCanceller => {
    const onEnded = (ended: { readonly id: TaskId; readonly task: string }): void => onCancelled({ queue, ...ended })
    const found =
      bulkCancellers.get(queue) ?? createBulkCanceller({ redis, keys: queueKeys(namespace, queue), caller, onEnded })
    bulkCancellers.set(queue, found)
    return found
  }

  const perform = (registered: RegisteredQueue, duty: Duty, term: Term): Promise<void> => {
    const { name: queue, completedRetentionMs: keptMs } = registered
    const keys = queueKeys(namespace, queue)
    const { fencing } = term
    const duties = {
      requeueLost: () => requeueLostTasks(redis, keys, { fencing, now: now() }),
      expire: () =>
        expireTasks(redis, keys, {
          fencing,
          now: now(),
          process,
          caller,
          onExpired: (expired) => onExpired({ queue, ...expired }),
        }),
      repeatCancels: () =>
        repeatCancels(redis, keys, { now: now(), process, onEnded: (ended) => onCancelled({ queue, ...ended }) }),
      cancelByRules: () => bulkCanceller(queue)(term),
      async removeOld() {
        if (keptMs === undefined) return
        const args = { fencing, keptMs, base: keys.base, limit: REMOVE_AT_ONCE }
        let removed = REMOVE_AT_ONCE
        while (removed === REMOVE_AT_ONCE && !term.isOver()) {
          removed = await runScript(redis, removeOldScript, keys, { ...args, now: now() })
        }
      },
      async repairIndex() {
        onRepaired(queue, await repairIndex(redis, keys))
      },
    } satisfies Record<Duty, () => Promise<void>>
    return duties[duty]()
  }

  const performAside = (queue: RegisteredQueue, duty: Duty, term: Term): void => {
    const name = `${duty} ${queue.name}`
    if (underWay.has(name)) return
    underWay.add(name)
    perform(queue, duty, term)
      .catch(onFailed)
      .finally(() => underWay.delete(name))
  }

  const isToCompare = (queue: string): boolean => {
    const at = performance.now()
    const due = compareAt.get(queue)
    if (due !== undefined && at < due) return false
    compareAt.set(queue, at + compareEveryMs)
    return due !== undefined
  }

  return async (queue, term) => {
    const { name, completedRetentionMs: keptMs = '' } = queue
    const args = { fencing: term.fencing, now: now(), mark: THROTTLE_MARK, keptMs }
    const { fencing, duties } = await runScript(redis, surveyQueueScript, queueKeys(namespace, name), args)
    if (fencing > term.fencing) return fencing
    for (const duty of duties) {
      if (LONG.has(duty)) performAside(queue, duty, term)
      else await perform(queue, duty, term)
    }
    if (isToCompare(name)) performAside(queue, 'repairIndex', term)
    return undefined
  }
}

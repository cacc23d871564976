// Does the leader's work for one queue: surveys the queue, and then does the duties that the survey names.
//
// A queue's duties run independently of each other. A duty that fails or takes long therefore does not delay any other
// duty, on its own queue or on another. For example, lost tasks are found within a round even while a backlog is being
// expired.
//
// Every script is fenced (store/lua/includes/fence.lua), except where doing something twice is harmless: any process may
// repeat a cancellation or forward an entry of an outbox, and the script that repairs an entry compares the entry again
// first. If the leader is lost, these duties may therefore be delayed. If there are briefly two leaders, no harm is
// done.
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { TaskId } from '@bullpen/contract'
import { createBulkCanceller, type Term } from '../cancel/bulk-canceller.ts'
import { repeatCancels } from '../cancel/by-id.ts'
import { cancelDrained } from '../cancel/drained-queue.ts'
import { repairIndex } from '../internals/status/index-repair.ts'
import { queueKeys } from '../keys.ts'
import { type Forwarder, queueOutbox } from '../outbox/forwarder.ts'
import { pauseAfterPage } from '../scripts/pause-after-page.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import { countActiveScript, removeOldScript } from '../store/scripts.ts'
import { changeDeadTasks } from './dead-task-changer.ts'
import { expireTasks } from './expirer.ts'
import { type NewFingerprint, reportFingerprints } from './fingerprint-reporter.ts'
import { requeueAsLocksExpire } from './lost-tasks.ts'
import { encodeRetention, type RegisteredQueue } from './queue-registry.ts'
import { type Duty, SCHEDULE_HORIZON_MS, type Survey, surveyQueue } from './survey.ts'
import { createUnattachedWatch, type UnattachedWatchOptions } from './unattached-workers.ts'
import { createKeyRemover } from './unique-key-remover.ts'
import type { VisitDue } from './visit-registry.ts'

type OnEnded = (ended: { readonly queue: string; readonly id: TaskId; readonly task: string }) => void

export interface HousekeepingOptions {
  readonly redis: Commander
  readonly namespace: string
  /** The time in ms since 1970, by Redis's clock. */
  readonly now: () => number
  /** This process's name, for the records of the tasks that the process ends. */
  readonly process: string
  /** Called for each task that this process expired. The callback must not throw or block. */
  readonly onExpired: OnEnded
  /**
   * Called for each waiting task that this process ended because of a cancellation. The callback must not throw or
   * block.
   */
  readonly onCancelled: OnEnded
  /**
   * Called with the number of entries that were repaired in a queue's status index, or in the counts of its concurrency
   * keys.
   */
  readonly onRepaired: (queue: string, entries: number) => void
  /**
   * Called for each kind of error that has appeared among a queue's dead tasks. The callback must not throw or block.
   */
  readonly onNewFingerprint: (queue: string, found: NewFingerprint) => void
  /**
   * Takes one step for each schedule of a queue that is due, and returns how long to wait for the next one, in ms.
   * Returns undefined if nothing is due within `withinMs`.
   */
  readonly runDueSchedules: (queue: string, withinMs: number) => Promise<number | undefined>
  /** Examines the schedules of a queue if that is due, and reports those that are in trouble. */
  readonly watchSchedules: (queue: string, term: Term) => Promise<void>
  /** Looks at the groups and the runs of pipelines that are due, and at the workers. */
  readonly visits: Readonly<Record<VisitDuty, VisitDue>>
  /** Called when BullMQ Workers that were not attached begin to use a queue, and when they have gone. Must not throw or block. */
  readonly unattached: Pick<UnattachedWatchOptions, 'onFound' | 'onGone'>
  /** Forwards what follows from the ends of tasks. */
  readonly forwarder: Pick<Forwarder, 'forwardLeft'>
  /** Called when a survey or a duty has failed. The callback must not throw or block. */
  readonly onFailed: (failure: HousekeepingFailure) => void
  /** How often a queue's status index is compared entry by entry, in ms. Defaults to 600,000. Tests set this. */
  readonly compareEveryMs?: number
}

/** The duties that concern the groups, runs and workers of the namespace, and no queue. */
const VISIT_DUTIES = ['groups', 'runs', 'workers'] as const

type VisitDuty = (typeof VISIT_DUTIES)[number]

export interface HousekeepingFailure {
  readonly queue: string
  readonly duty: Duty | 'survey' | VisitDuty
  readonly error: unknown
}

export interface Housekeeping {
  /**
   * Surveys a queue, and starts each duty that the queue needs and that is not already in progress. If a newer leader
   * has worked on the queue, resolves to that leader's fencing number, and otherwise to undefined. Never rejects.
   */
  visit(queue: RegisteredQueue, term: Term): Promise<number | undefined>
  /** Looks at the groups and runs of the namespace that are due, unless that is already in progress. */
  visitDue(term: Term): void
  /**
   * Resolves when no duty is in progress. Never rejects. Duties stop after their current page once their term is over.
   */
  settled(): Promise<void>
}

/**
 * How often a queue's index is compared entry by entry, in ms, whichever process leads. A survey compares only sizes,
 * and therefore does not notice a part that lacks one task but holds another by mistake.
 */
const COMPARE_EVERY_MS = 600_000

/**
 * How long the leader waits at most before it looks for due schedules again, in ms, because a request may have changed
 * them. It is also how soon the wait ends when the leader is closed.
 */
const SCHEDULE_WAIT_MS = 250

/** The maximum number of tasks that one script removes. 100 tasks take Redis about 1 ms. */
const REMOVE_AT_ONCE = 100

export function createHousekeeping(options: HousekeepingOptions): Housekeeping {
  const { redis, namespace, now, process, onExpired, onCancelled, onRepaired, onNewFingerprint, onFailed } = options
  const { compareEveryMs = COMPARE_EVERY_MS } = options
  const caller = randomUUID()
  /** What remembers something of a queue between two duties. */
  const kept = new Map<string, ReturnType<typeof createKept>>()
  const unattached = createUnattachedWatch({ redis, namespace, now, ...options.unattached })
  /** The duties in progress, by duty and queue. The index of only one queue is repaired at a time. */
  const underWay = new Map<string, Promise<void>>()

  const createKept = (queue: string) => {
    const keys = queueKeys(namespace, queue)
    const onEnded = (ended: { readonly id: TaskId; readonly task: string }): void => onCancelled({ queue, ...ended })
    return {
      cancel: createBulkCanceller({ redis, keys, caller, onEnded }),
      removeUniqueKeys: createKeyRemover(redis, keys),
    }
  }
  const keptOf = (queue: string): ReturnType<typeof createKept> => {
    const found = kept.get(queue) ?? createKept(queue)
    kept.set(queue, found)
    return found
  }

  const perform = (registered: RegisteredQueue, duty: Duty, term: Term): Promise<void> => {
    const { name: queue, retention } = registered
    const keys = queueKeys(namespace, queue)
    const { fencing, isOver } = term
    const duties = {
      requeueLost: () =>
        requeueAsLocksExpire(redis, keys, {
          ...{ ...term, now },
          onUnattached(held) {
            unattached.note(queue, held)
            if (held.size > 0) start(registered, 'reportUnattached', term)
          },
        }),
      async reportUnattached() {
        if (await unattached.look(queue)) start(registered, 'repairIndex', term)
      },
      expire: () =>
        expireTasks(redis, keys, {
          fencing,
          now,
          process,
          caller,
          isOver,
          onExpired: (expired) => onExpired({ queue, ...expired }),
        }),
      async runSchedules() {
        for (;;) {
          const waitMs = await options.runDueSchedules(queue, SCHEDULE_HORIZON_MS)
          if (waitMs === undefined || waitMs > SCHEDULE_HORIZON_MS || isOver()) return
          if (waitMs > 0) await sleep(Math.min(waitMs, SCHEDULE_WAIT_MS), undefined, { ref: false })
          if (isOver()) return
        }
      },
      watchSchedules: () => options.watchSchedules(queue, term),
      repeatCancels: () =>
        repeatCancels(redis, keys, {
          now: now(),
          process,
          isOver,
          onEnded: (ended) => onCancelled({ queue, ...ended }),
        }),
      async cancelDrained() {
        await cancelDrained(redis, keys, queue)
        start(registered, 'cancelByRules', term)
      },
      cancelByRules: () => keptOf(queue).cancel(term),
      async removeOld() {
        if (retention === undefined) return
        const args = { fencing, retention: encodeRetention(retention), base: keys.base, limit: REMOVE_AT_ONCE }
        for (;;) {
          const sentAt = performance.now()
          const removed = await runScript(redis, removeOldScript, keys, { ...args, now: now() })
          if (removed < REMOVE_AT_ONCE || isOver()) return
          await pauseAfterPage(sentAt)
        }
      },
      removeUniqueKeys: () => keptOf(queue).removeUniqueKeys(term),
      forwardOutbox: () => options.forwarder.forwardLeft(queueOutbox(redis, keys), isOver),
      changeDead: () => changeDeadTasks(redis, keys, term),
      reportFingerprints: () => reportFingerprints(redis, keys, (found) => onNewFingerprint(queue, found)),
      async countActive() {
        onRepaired(queue, await runScript(redis, countActiveScript, keys, { fencing, base: keys.base }))
      },
      async repairIndex() {
        onRepaired(queue, await repairIndex(redis, keys, isOver))
      },
    } satisfies Record<Duty, () => Promise<void>>
    return duties[duty]()
  }

  const start = (queue: RegisteredQueue, duty: Duty, term: Term): void => {
    // Queues that were registered together are due for a comparison together. If all were compared at once, the pages
    // of all of them would be in line at Redis, and calls would wait. A comparison remains due until it is complete, so
    // a later visit starts it.
    const name = duty === 'repairIndex' ? duty : `${duty} ${queue.name}`
    if (underWay.has(name)) return
    const done = perform(queue, duty, term)
      .catch((error: unknown) => onFailed({ queue: queue.name, duty, error }))
      .finally(() => underWay.delete(name))
    underWay.set(name, done)
  }

  const survey = async (registered: RegisteredQueue, { fencing }: Term): Promise<Survey | undefined> => {
    const { name: queue, retention, eventsAgeMs } = registered
    const at = now()
    const eventsSince = eventsAgeMs === undefined ? undefined : Math.floor(at - eventsAgeMs)
    const options = { fencing, now: at, retention: encodeRetention(retention), compareEveryMs, eventsSince }
    try {
      return await surveyQueue(redis, queueKeys(namespace, queue), options)
    } catch (error) {
      onFailed({ queue, duty: 'survey', error })
      return undefined
    }
  }

  return {
    async visit(queue, term) {
      const found = await survey(queue, term)
      if (found === undefined) return undefined
      if (found.fencing > term.fencing) return found.fencing
      for (const duty of found.duties) start(queue, duty, term)
      return undefined
    },
    visitDue({ isOver }) {
      for (const duty of VISIT_DUTIES) {
        if (underWay.has(duty)) continue
        const done = options.visits[duty](isOver)
          .catch((error: unknown) => onFailed({ queue: duty, duty, error }))
          .finally(() => underWay.delete(duty))
        underWay.set(duty, done)
      }
    },
    async settled() {
      // A duty may start another one.
      while (underWay.size > 0) await Promise.all(underWay.values())
    },
  }
}

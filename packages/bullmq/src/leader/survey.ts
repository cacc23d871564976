// Surveys one queue for the leader, with one script.
import { THROTTLE_MARK } from '../internals/throttle.ts'
import type { QueueKeys } from '../keys.ts'
import { CLOSED_BY_OUTBOX } from '../outbox/outbox-bounds.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import { surveyQueueScript } from '../store/scripts.ts'

/** What a queue may need from its leader (housekeeping.ts). An idle queue does not need anything. */
export type Duty =
  | 'requeueLost'
  | 'expire'
  | 'runSchedules'
  | 'watchSchedules'
  | 'repeatCancels'
  | 'cancelDrained'
  | 'cancelByRules'
  | 'removeOld'
  | 'removeUniqueKeys'
  | 'reportFingerprints'
  | 'changeDead'
  | 'forwardOutbox'
  | 'reportUnattached'
  | 'countActive'
  | 'repairIndex'

/** How early the leader begins to wait for a schedule that will be due, in ms. Must be longer than a round of the leader. */
export const SCHEDULE_HORIZON_MS = 2_000

const SETTINGS = {
  scheduleHorizonMs: SCHEDULE_HORIZON_MS,
  /** How often the active tasks are counted, by concurrency key and by what they hold of limiters. */
  countEveryMs: 30_000,
  throttleMark: THROTTLE_MARK,
  outboxMark: CLOSED_BY_OUTBOX,
}

interface SurveyOptions {
  /** The leader's fencing number. */
  readonly fencing: number
  /** In ms since 1970. */
  readonly now: number
  /** As JSON; '' if no consumer has registered one. */
  readonly retention: string
  /** The time before which events are dropped, in ms since 1970. */
  readonly eventsSince: number | undefined
  /** How often the index is compared with the tasks, entry by entry. */
  readonly compareEveryMs: number
}

export interface Survey {
  /** The highest fencing number of any leader that has worked on the queue. If it is above the caller's, nothing was written. */
  readonly fencing: number
  readonly duties: readonly Duty[]
}

/** Does the housekeeping that takes only a few commands, and returns which other work is due. Takes one round trip. */
export async function surveyQueue(redis: Commander, keys: QueueKeys, options: SurveyOptions): Promise<Survey> {
  const args = { ...SETTINGS, ...options, eventsSince: options.eventsSince ?? '', base: keys.base }
  const [fencing, duties] = await runScript(redis, surveyQueueScript, keys, args)
  return { fencing, duties }
}

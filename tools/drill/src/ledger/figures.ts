// Computes a drill's figures from a ledger that is written outside the system under test.
import type { Effect } from './effects.ts'
import { type AttemptCounts, type AttemptEnd, miscounted } from './worker-metrics.ts'

/** How a task ended, according to the system. */
export interface End {
  readonly status: string
  readonly attemptsMade: number
  readonly attempts?: readonly AttemptEnd[]
  /** Unix time in ms. */
  readonly enqueuedAt?: number
  readonly output?: unknown
  /** Who retried the task after it was dead. */
  readonly retries?: readonly { readonly by: string }[]
}

/** An attempt that was interrupted, and the time of the interruption, from which its task waits for the next attempt. */
export interface Interruption {
  readonly id: string
  readonly worker: string
  /** Unix time in ms. */
  readonly at: number
}

/** The exit of a worker that was asked to shut down. */
export interface Exit {
  readonly worker: string
  /** Null if the worker did not exit in time and was killed. */
  readonly code: number | null
  /** Unix time in ms. */
  readonly at: number
  /** Time since the signal. */
  readonly tookMs: number
}

export interface Ledger {
  readonly accepted: readonly string[]
  /** The accepted tasks that have ended. */
  readonly ends: ReadonlyMap<string, End>
  /** How often each task was recorded as completed. */
  readonly completions: ReadonlyMap<string, number>
  readonly effects: readonly Effect[]
  readonly interruptions: readonly Interruption[]
  readonly exits: readonly Exit[]
  /** How long each attempt that had to be signalled waited for its signal, in ms. Infinite if it did not get one. */
  readonly signals?: readonly number[]
  /** The counters of each worker that was not killed. */
  readonly counts?: ReadonlyMap<string, AttemptCounts> | undefined
}

export interface Figures {
  readonly accepted: number
  /** Accepted tasks that have not ended. */
  readonly lost: number
  /** Tasks that were recorded as completed more than once. */
  readonly duplicated: number
  /** Completed tasks without a completion event. If there are any, `duplicated` is unknown. */
  readonly eventsMissed: number
  /** Tasks that ended in a status other than completed. */
  readonly failed: number
  /** Tasks whose side effect happened more than once. For receipts, every repeated delivery is counted. */
  readonly effectsRepeated: number
  /** Deliveries that the endpoint had accepted before, while workers were asked to shut down, and while they were killed. */
  readonly repeatedBySigterm?: number
  readonly repeatedBySigkill?: number
  /** Receipts that were retried less often or sooner than their policy requires. */
  readonly offPolicy?: number
  /** The longest time by which a retry exceeded its policy's longest backoff. */
  readonly retryLateMs?: number | undefined
  readonly cancelledDelivered?: number
  /** Attempts beyond each task's first attempt, not including retries of failed attempts. */
  readonly restarted: number
  /** Counted attempts beyond each task's first attempt. In `exactness`, requested retries are not counted. */
  readonly attemptsUsed: number
  readonly interrupted: number
  /**
   * Time from an interruption to the task's next attempt. Infinite if there was none. Undefined if nothing was
   * interrupted.
   */
  readonly recoveryP99Ms: number | undefined
  /** Undefined if no worker was asked to shut down. */
  readonly exitSlowestMs: number | undefined
  readonly exitsNotZero: number
  /** The attempts by which the workers' metrics differ from the ledger. Undefined if there are no metrics. */
  readonly miscounted?: number | undefined
  /** Undefined if no attempt had to be signalled. */
  readonly signalSlowestMs?: number | undefined
  /** Time from the request to the signal, at the median and the 99th percentile. Infinite if no signal came. */
  readonly signalP50Ms?: number | undefined
  readonly signalP99Ms?: number | undefined
  /** Tasks that passed their queue timeout and did not expire, or expired more than once. */
  readonly unexpired?: number
  readonly expiredTwice?: number
  /** The longest time from a queue timeout to the end of its task. */
  readonly expiryLateMaxMs?: number | undefined
  /** The ticks of a schedule, and how many of them have no task, more than one, or one that was enqueued too early. */
  readonly ticks?: number
  readonly ticksMissed?: number
  readonly ticksDoubled?: number
  readonly ticksEarly?: number
  /** Time from a tick to its enqueue, by Redis's clock. */
  readonly tickLateP50Ms?: number | undefined
  readonly tickLateP99Ms?: number | undefined
  /** 1 if no process with a wrong clock has led. */
  readonly skewedNeverLed?: number
  /** Leader faults after which no other process took over. */
  readonly notTakenOver?: number
  /** Attempts beyond the first attempt of tasks that were not affected by a fault. */
  readonly restartedUnaffected?: number
  /** Tasks whose record contains the result of an attempt that had lost its lock. */
  readonly staleResultsStored?: number
  /** The largest difference between the time when a task was due and its start. Undefined if nothing was due. */
  readonly dueErrorMaxMs?: number | undefined
  readonly startedEarly?: number
  /** Workers whose clock was off but whose log does not report it. */
  readonly skewsUnreported?: number
  /** Accepted responses to calls with an idempotency key, and how many of these differ from the key's first response. */
  readonly responses?: number
  readonly differentResponses?: number
  /** Responses beyond each key's first one that are not marked as repeated. */
  readonly firstResponsesRepeated?: number
  /** Callers that gave up without an accepted response. */
  readonly unanswered?: number
  /** Requests after which the caller did not know whether the task was stored. */
  readonly unknownOutcomes?: number
  /**
   * Faults of an API process that had no pending request, or that stored no task while it got no replies, and faults of a worker that ran
   * no task or, in `exactness`, none that held a place of a limit without free places.
   */
  readonly faultsWithoutEffect?: number
  /** The highest number of tasks that were waiting or scheduled at the same time. */
  readonly mostTasks?: number
  /** Tasks that were rejected or dropped because the queue was full. */
  readonly refused?: number
  /** Stored tasks whose callers did not learn whether they are stored. */
  readonly storedUnknown?: number
  /** Stored tasks whose callers had a response that says something else. */
  readonly storedUnexplained?: number
  /** Stored tasks whose callers had a response that leaves open whether they are stored, and does not name their id. */
  readonly storedUnnamed?: number
  /** Callers whose task was stored after that of a caller who had come later to the same process. */
  readonly overtaken?: number
  /** Time from the request that made room to the response to the next caller whose task was stored. Infinite if none was stored in time. */
  readonly roomP50Ms?: number | undefined
  readonly roomP99Ms?: number | undefined
  /** The largest share of `maxmemory` that Redis has used before something other than Bullpen filled it, in percent. */
  readonly memoryPercent?: number
  /** Bullpen's commands that Redis refused because it was full. */
  readonly refusedByRedis?: number
  /** Time from the moment when Redis's memory was freed until every accepted task had ended. */
  readonly doneAfterRoomMs?: number
  /** Calls that a provider got, and those of them that failed because it was down. */
  readonly calls?: number
  readonly callsWhileDown?: number
  /** The highest number of attempts of one task. */
  readonly mostAttempts?: number
  /** Time from the provider's recovery until every task had ended. */
  readonly drainedMs?: number
  /** Tasks that killed their process, and how many of these are dead as poison. */
  readonly pills?: number
  readonly poisoned?: number
  /** Tasks that killed their process and are dead neither as poison nor by their own timeout. */
  readonly pillsOutlived?: number
  /** How long it takes to count the dead tasks by kind of error, and to retry those of one kind. */
  readonly countMs?: number
  readonly retryMs?: number
  /** How many tasks a retry by filter retried in a second, at the median of the seconds in which it retried any. */
  readonly retriedPerSecond?: number | undefined
  /** Tasks that a retry by filter selects, but whose history does not name one retry by its requester. */
  readonly historiesWrong?: number
  /** Dead tasks that a retry by filter does not select, but that were changed or are miscounted by kind of error. */
  readonly othersChanged?: number
  /** By how many tasks the audit line and the progress of a retry by filter differ from the number of selected tasks. */
  readonly auditOff?: number
  /** Time from the first error of a group to the last start of one of its members, and to the end of the group. */
  readonly lastStartMs?: number | undefined
  readonly groupEndedMs?: number | undefined
  /** The same time to the last start in a worker that was cut off from Redis. */
  readonly lastStartCutOffMs?: number
  /** Events that a reader has received, has not received, and has received more than once. */
  readonly events?: number
  readonly eventsLost?: number
  readonly eventsRepeated?: number
  /** By how many members the counts of a group that has ended differ from the ends of its members. */
  readonly groupMiscounted?: number
  /** Keys and entries that are left in Redis and belong to nothing. Undefined if the drill has not looked for them. */
  readonly orphans?: number | undefined
  /** Tasks that the queue's totals do not account for, and repairs of its status index. */
  readonly unaccounted?: number
  /** Follow-up tasks that have run, and entries that are left in the outboxes. */
  readonly followUps?: number
  readonly outboxLeft?: number
  /** Tasks that were compensated. */
  readonly compensated?: number
  /** Tasks that should have been compensated and were not, and compensations beyond one for each of these tasks. */
  readonly compensationsWrong?: number
  /** Tasks whose worker was killed at another step than intended. */
  readonly stepsMissed?: number
  /** Lines of the outputs of pipelines that `md5sum` has not printed. */
  readonly linesWrong?: number
  /** Results of ordered pipelines that came after the result of a later item. */
  readonly misordered?: number
  /** By how many items the counts of pipelines' runs differ from the number of files. */
  readonly runsMiscounted?: number
  /** Files of which the ledger has no digest. */
  readonly undigested?: number
  /** Keys of runs that have ended, except for their records, and records that do not expire. */
  readonly runKeysLeft?: number
  /** Tasks of runs that have ended. */
  readonly tasksLeft?: number
  /** Results of attempts that had lost their lock. */
  readonly lateResultsRefused?: number
  /** What Redis stores for runs, without the results that are kept for a reduction: the peaks over time, and the range. */
  readonly memoryKiB?: readonly number[]
  readonly memoryMinKiB?: number
  readonly memoryMedianKiB?: number
  readonly memoryMaxKiB?: number
  /** By how much the peak of the last third of a run's results exceeds that of the first third, without the first run. */
  readonly memoryGrowthKiB?: number
  /** The most that Redis takes for a run, including these results and the buffers of connections. */
  readonly usedMemoryMaxKiB?: number
  /** The most items that waited for a stage. */
  readonly waitingMost?: number
  /** How long it takes to compute all digests: `md5sum`, a pipeline in one process, and the fleet without and with faults. */
  readonly md5sumMs?: number
  readonly oneProcessMs?: number
  readonly undisturbedMs?: number
  readonly disturbedMs?: number
  /** The highest and the last number of workers that an autoscaler asked for. */
  readonly mostWorkers?: number
  readonly lastWorkers?: number
  /** By how many workers the last number differs from what the load needs. */
  readonly workersOff?: number
  /** How often an autoscaler turned from adding workers to removing them, or back. */
  readonly directionChanges?: number
  /** Steps of an autoscaler that exceed the limits of its manifest. */
  readonly stepsBeyondLimits?: number
  /** Time from the beginning of a burst until workers were added. Undefined if none were. */
  readonly scaledUpMs?: number | undefined
  /** Time from the end of a burst until the last of the added workers was told to end. Undefined if none was. */
  readonly scaledDownMs?: number | undefined
  /** Time from the enqueue of a task to its first start. In `fairness`, only the tasks of the other keys are counted. */
  readonly waitP50Ms?: number | undefined
  readonly waitP99Ms?: number | undefined
  /** The same 99th percentile behind a tenth of a backlog, and by how much it is longer behind the whole backlog. */
  readonly waitP99TenthMs?: number | undefined
  readonly waitGrowthMs?: number | undefined
  /**
   * The most tasks of a noisy concurrency key that started between the enqueue and the start of a task of another key, and the tasks of other
   * keys that started when the noisy key had no task waiting. Undefined if the order of the starts is not known.
   */
  readonly noisyStartsMost?: number | undefined
  readonly unopposed?: number | undefined
  /** The most places of a limit that tasks held at once beyond those that the limit has. */
  readonly aboveLimit?: number
  /**
   * The attempts that a frozen worker still ran after their locks had expired, when other tasks may have their places, and the most places beyond
   * a limit if these attempts are counted as well.
   */
  readonly ranUnlocked?: number
  readonly aboveLimitWithUnlocked?: number
  /** Limits whose places were never all held at once. */
  readonly limitsNotReached?: number
  /** Attempts that started after the one that completed their task. */
  readonly ranAfterEnd?: number
  /** Places that are still held when all tasks have ended. */
  readonly placesHeld?: number
  /** What leaders have repaired of a queue's status index, totals and counts of active tasks. */
  readonly repairs?: number
  /** Ways in which a queue was made stuck, those that the diagnosis or the alerts did not show, and those whose sign others show as well. */
  readonly causes?: number
  readonly causesUnseen?: number
  readonly causesConfused?: number
  /** Handlers that blocked an event loop but are not named by any log line. */
  readonly stallsUnattributed?: number
  /** By how many tasks the totals that Prometheus has scraped differ from the ledger. */
  readonly enqueuedMiscounted?: number
  readonly completedMiscounted?: number
  /** By how much the mean of Prometheus's rates over the load differs from that of the ledger, for tasks enqueued and completed. */
  readonly rateInErrorPercent?: number
  readonly rateOutErrorPercent?: number
}

/** The figures that are one number. */
export type FigureName = {
  [Name in keyof Figures]-?: number extends Figures[Name] ? Name : never
}[keyof Figures]

export function figuresOf(ledger: Ledger): Figures {
  const { accepted, ends, completions, effects, interruptions, exits, counts, signals = [] } = ledger
  const starts = effects.filter(({ what }) => what === 'start')
  const timesEnded = countBy(effects.filter(({ what }) => what === 'end'))
  const completed = accepted.filter((id) => ends.get(id)?.status === 'completed')
  return {
    accepted: accepted.length,
    lost: accepted.filter((id) => !ends.has(id)).length,
    duplicated: count(completions.values(), (times) => times > 1),
    eventsMissed: completed.filter((id) => !completions.has(id)).length,
    failed: count(ends.values(), ({ status }) => status !== 'completed'),
    effectsRepeated: count(timesEnded.values(), (times) => times > 1),
    restarted: restartsOf(starts),
    attemptsUsed: [...ends.values()].reduce((sum, { attemptsMade }) => sum + Math.max(0, attemptsMade - 1), 0),
    interrupted: interruptions.length,
    recoveryP99Ms: p99(recoveries(interruptions, starts)),
    exitSlowestMs: exits.length === 0 ? undefined : Math.max(...exits.map(({ tookMs }) => tookMs)),
    exitsNotZero: count(exits, ({ code }) => code !== 0),
    miscounted: counts === undefined || counts.size === 0 ? undefined : miscounted(counts, effects, ends),
    signalSlowestMs: signals.length === 0 ? undefined : Math.max(...signals),
  }
}

/** Counts the starts beyond each task's first start. An attempt whose handler never started is not in the ledger. */
export function restartsOf(effects: readonly Effect[]): number {
  const starts = effects.filter(({ what }) => what === 'start')
  return starts.length - countBy(starts).size
}

/** Returns the attempts that a worker had started, but neither ended nor signalled, when it died at `at`. */
export function interruptedBy(effects: readonly Effect[], worker: string, at: number): readonly Interruption[] {
  return openAttempts(effects, worker).map(({ id }) => ({ id, worker, at }))
}

/**
 * Returns the time from `at` to the signal of each attempt that the worker was then running, except for those that ended within
 * `endsMs`.
 */
export function signalsAfter(
  effects: readonly Effect[],
  worker: string,
  at: number,
  endsMs: number,
): readonly number[] {
  const open = openAttempts(
    effects.filter((effect) => effect.at <= at),
    worker,
  )
  return open.flatMap(({ id, fencingToken }) => {
    const later = effects.filter(
      (each) => each.id === id && each.fencingToken === fencingToken && each.worker === worker,
    )
    const signal = later.find(({ what }) => what === 'signal')
    if (signal !== undefined) return [Math.max(0, signal.at - at)]
    const end = later.find(({ what }) => what === 'end')
    return end !== undefined && end.at - at <= endsMs ? [] : [Number.POSITIVE_INFINITY]
  })
}

/** Returns the tasks that a worker ran at any time during this span. */
export function runningWithin(
  effects: readonly Effect[],
  worker: string,
  from: number,
  to: number,
): ReadonlySet<string> {
  const open = openAttempts(
    effects.filter(({ at }) => at < from),
    worker,
  )
  const within = effects.filter((each) => each.worker === worker && each.at >= from && each.at <= to)
  return new Set([...open, ...within].map(({ id }) => id))
}

function openAttempts(effects: readonly Effect[], worker: string): readonly Effect[] {
  const open = new Map<string, Effect>()
  for (const effect of effects) {
    if (effect.worker !== worker) continue
    const key = `${effect.id} ${effect.fencingToken}`
    if (effect.what === 'start') open.set(key, effect)
    else if (effect.what !== 'stop' && effect.what !== 'pass') open.delete(key)
  }
  return [...open.values()]
}

/** Returns the attempts that ended with a requeue, each with the worker that had started it. */
export function interruptedByRequeue(
  requeues: readonly { readonly id: string; readonly at: number }[],
  effects: readonly Effect[],
): readonly Interruption[] {
  const starts = Map.groupBy(
    effects.filter(({ what }) => what === 'start'),
    ({ id }) => id,
  )
  return requeues.flatMap(({ id, at }) => {
    // A start in the same millisecond belongs to the next attempt, because an attempt that is requeued has run for longer than
    // that.
    const last = starts.get(id)?.findLast((start) => start.at < at)
    return last === undefined ? [] : [{ id, worker: last.worker, at }]
  })
}

export function p99(values: readonly number[]): number | undefined {
  return rank(values, 0.99)
}

/** Uses the nearest-rank method: returns the smallest value that this share of the values does not exceed. */
export function rank(values: readonly number[], share: number): number | undefined {
  return values.toSorted((a, b) => a - b)[Math.ceil(values.length * share) - 1]
}

function recoveries(interruptions: readonly Interruption[], starts: readonly Effect[]): readonly number[] {
  const byTask = Map.groupBy(starts, ({ id }) => id)
  return interruptions.map(({ id, worker, at }) => {
    // A worker that is no longer blocked or cut off may run the task again. An attempt that it starts in the same millisecond as the
    // interruption may be the interrupted one.
    const later = (byTask.get(id) ?? []).filter((start) => (start.worker === worker ? start.at > at : start.at >= at))
    return Math.min(...later.map((start) => start.at - at), Number.POSITIVE_INFINITY)
  })
}

function countBy(effects: readonly Effect[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const { id } of effects) counts.set(id, (counts.get(id) ?? 0) + 1)
  return counts
}

function count<T>(values: Iterable<T>, matches: (value: T) => boolean): number {
  let found = 0
  for (const value of values) if (matches(value)) found++
  return found
}

// What a ledger says of a drill: lost, duplicated, repeated, recovered, counted from what was written down outside the system.
import type { Effect } from './effects.ts'

/** How the system says that a task ended. */
export interface End {
  readonly status: string
  readonly attemptsMade: number
  readonly output?: unknown
}

/** A start that was cut short, and when: from then on its task waits for the next one. */
export interface Interruption {
  readonly id: string
  readonly process: string
  /** Unix time in ms. */
  readonly at: number
}

/** The end of a process that was told to end. */
export interface Exit {
  readonly process: string
  /** Null: it did not end in time, and was killed. */
  readonly code: number | null
  /** Unix time in ms. */
  readonly at: number
  /** From the signal. */
  readonly tookMs: number
}

export interface Ledger {
  readonly accepted: readonly string[]
  /** Accepted tasks that have ended; one that is missing has not. */
  readonly ends: ReadonlyMap<string, End>
  /** How often each task was recorded as completed. */
  readonly completions: ReadonlyMap<string, number>
  readonly effects: readonly Effect[]
  readonly interruptions: readonly Interruption[]
  readonly exits: readonly Exit[]
  /** How long each attempt that should have been signalled waited for it, in ms; infinite for one that never was. */
  readonly signals?: readonly number[]
}

export interface Figures {
  readonly accepted: number
  /** Accepted, and without an end. */
  readonly lost: number
  /** Recorded as completed more than once. */
  readonly duplicated: number
  /** Completed by their record, and not seen to complete: with any of these `duplicated` is not known. */
  readonly unseen: number
  /** Ended otherwise than completed. */
  readonly failed: number
  /** Tasks whose effect ended more than once; of receipts, every repetition. */
  readonly effectsRepeated: number
  /** Deliveries of what the endpoint had taken before, while processes were told to end, and while they were killed. */
  readonly repeatedBySigterm?: number
  readonly repeatedBySigkill?: number
  /** Deliveries whose failures were not retried as their policy says: how often, and no sooner. */
  readonly offPolicy?: number
  /** The most that a retry came later than its policy's longest wait. */
  readonly retryLateMs?: number | undefined
  readonly cancelledDelivered?: number
  /** Starts beyond each task's first, those that an attempt's failure asked for not counted. */
  readonly restarted: number
  /** Attempts beyond each task's first. */
  readonly attemptsUsed: number
  readonly interrupted: number
  /** From the interruption to the next start elsewhere; infinite when one did not come. Undefined when nothing was interrupted. */
  readonly recoveryP99Ms: number | undefined
  /** Undefined when no process was told to end. */
  readonly exitSlowestMs: number | undefined
  readonly exitsNotZero: number
  /** Undefined when no attempt had to be signalled. */
  readonly signalSlowestMs?: number | undefined
  /** From the request to the signal, at the median and the 99th percentile; infinite where there was none. */
  readonly signalP50Ms?: number | undefined
  readonly signalP99Ms?: number | undefined
  /** Starts beyond the first of tasks that nothing had come upon. */
  readonly restartedOthers?: number
  /** Tasks whose record holds the result of a start that had lost its lock. */
  readonly resultsKept?: number
  /** From when a task was due to its start, at the most, early or late. Undefined when nothing was due. */
  readonly dueErrorMaxMs?: number | undefined
  readonly startedEarly?: number
  /** Processes whose clock was off and whose log does not say so. */
  readonly skewsUntold?: number
  /** Handlers that held an event loop and that no line of the log names. */
  readonly blockersUnnamed?: number
}

export function figuresOf(ledger: Ledger): Figures {
  const { accepted, ends, completions, effects, interruptions, exits, signals = [] } = ledger
  const starts = effects.filter(({ what }) => what === 'start')
  const timesEnded = countBy(effects.filter(({ what }) => what === 'end'))
  const completed = accepted.filter((id) => ends.get(id)?.status === 'completed')
  return {
    accepted: accepted.length,
    lost: accepted.filter((id) => !ends.has(id)).length,
    duplicated: count(completions.values(), (times) => times > 1),
    unseen: completed.filter((id) => !completions.has(id)).length,
    failed: count(ends.values(), ({ status }) => status !== 'completed'),
    effectsRepeated: count(timesEnded.values(), (times) => times > 1),
    restarted: restartsIn(starts),
    attemptsUsed: [...ends.values()].reduce((sum, { attemptsMade }) => sum + Math.max(0, attemptsMade - 1), 0),
    interrupted: interruptions.length,
    recoveryP99Ms: p99(recoveries(interruptions, starts)),
    exitSlowestMs: exits.length === 0 ? undefined : Math.max(...exits.map(({ tookMs }) => tookMs)),
    exitsNotZero: count(exits, ({ code }) => code !== 0),
    signalSlowestMs: signals.length === 0 ? undefined : Math.max(...signals),
  }
}

/** Starts beyond each task's first that was written down: one that was taken and never begun is none. */
export function restartsIn(effects: readonly Effect[]): number {
  const starts = effects.filter(({ what }) => what === 'start')
  return starts.length - countBy(starts).size
}

/** The starts of a process that it neither ended nor told to end: with its death at `at` they were cut short. */
export function cutShort(effects: readonly Effect[], process: string, at: number): readonly Interruption[] {
  return openStarts(effects, process).map(({ id }) => ({ id, process, at }))
}

/** From `at` to the signal of each start of a process that was open then, unless it came to its end within `endsMs`. */
export function signalsAfter(
  effects: readonly Effect[],
  process: string,
  at: number,
  endsMs: number,
): readonly number[] {
  const open = openStarts(
    effects.filter((effect) => effect.at <= at),
    process,
  )
  return open.flatMap(({ id, start }) => {
    const later = effects.filter((each) => each.id === id && each.start === start && each.process === process)
    const signal = later.find(({ what }) => what === 'signal')
    if (signal !== undefined) return [Math.max(0, signal.at - at)]
    const end = later.find(({ what }) => what === 'end')
    return end !== undefined && end.at - at <= endsMs ? [] : [Number.POSITIVE_INFINITY]
  })
}

/** The tasks that a process ran at any moment of this span. */
export function runningWithin(
  effects: readonly Effect[],
  process: string,
  from: number,
  to: number,
): ReadonlySet<string> {
  const open = openStarts(
    effects.filter(({ at }) => at < from),
    process,
  )
  const within = effects.filter((each) => each.process === process && each.at >= from && each.at <= to)
  return new Set([...open, ...within].map(({ id }) => id))
}

function openStarts(effects: readonly Effect[], process: string): readonly Effect[] {
  const open = new Map<string, Effect>()
  for (const effect of effects) {
    if (effect.process !== process) continue
    const key = `${effect.id} ${effect.start}`
    if (effect.what === 'start') open.set(key, effect)
    else open.delete(key)
  }
  return [...open.values()]
}

/** Tasks that went back to their queue, each from the process that had started it last before. */
export function requeued(
  handBacks: readonly { readonly id: string; readonly at: number }[],
  effects: readonly Effect[],
): readonly Interruption[] {
  const starts = Map.groupBy(
    effects.filter(({ what }) => what === 'start'),
    ({ id }) => id,
  )
  return handBacks.flatMap(({ id, at }) => {
    // One of the very same millisecond is the next: what is handed back has run for longer than that.
    const last = starts.get(id)?.findLast((start) => start.at < at)
    return last === undefined ? [] : [{ id, process: last.process, at }]
  })
}

export function p99(values: readonly number[]): number | undefined {
  return rank(values, 0.99)
}

/** By nearest rank: the smallest value that this part of all do not exceed. */
export function rank(values: readonly number[], part: number): number | undefined {
  return values.toSorted((a, b) => a - b)[Math.ceil(values.length * part) - 1]
}

function recoveries(interruptions: readonly Interruption[], starts: readonly Effect[]): readonly number[] {
  const byTask = Map.groupBy(starts, ({ id }) => id)
  return interruptions.map(({ id, process, at }) => {
    const later = (byTask.get(id) ?? []).filter((start) => start.process !== process && start.at >= at)
    return Math.min(...later.map((start) => start.at - at), Number.POSITIVE_INFINITY)
  })
}

function countBy(effects: readonly Effect[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const { id } of effects) counts.set(id, (counts.get(id) ?? 0) + 1)
  return counts
}

function count<T>(values: Iterable<T>, are: (value: T) => boolean): number {
  let found = 0
  for (const value of values) if (are(value)) found++
  return found
}

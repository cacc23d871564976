// What a ledger says of a drill: lost, duplicated, repeated, recovered, counted from what was written down outside the system.
import type { Effect } from './effects.ts'

/** How the system says that a task ended. */
export interface End {
  readonly status: string
  readonly attempts: number
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
}

export function figuresOf(ledger: Ledger): Figures {
  const { accepted, ends, completions, effects, interruptions, exits } = ledger
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
    restarted: starts.length - countBy(starts).size,
    attemptsUsed: [...ends.values()].reduce((sum, { attempts }) => sum + Math.max(0, attempts - 1), 0),
    interrupted: interruptions.length,
    recoveryP99Ms: p99(recoveries(interruptions, starts)),
    exitSlowestMs: exits.length === 0 ? undefined : Math.max(...exits.map(({ tookMs }) => tookMs)),
    exitsNotZero: count(exits, ({ code }) => code !== 0),
  }
}

/** The starts of a process that it did not end: with its death at `at` they were cut short. */
export function cutShort(effects: readonly Effect[], process: string, at: number): readonly Interruption[] {
  const open = new Map<string, Interruption>()
  for (const { what, id, start, process: by } of effects) {
    if (by !== process) continue
    if (what === 'start') open.set(`${id} ${start}`, { id, process, at })
    else open.delete(`${id} ${start}`)
  }
  return [...open.values()]
}

/** Tasks that went back to their queue, each from the process that had started it last before. */
export function handedBack(
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

/** By nearest rank: the smallest value that 99 % of all do not exceed. */
export function p99(values: readonly number[]): number | undefined {
  return values.toSorted((a, b) => a - b)[Math.ceil(values.length * 0.99) - 1]
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

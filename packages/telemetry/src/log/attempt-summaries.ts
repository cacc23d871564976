// Summarises the attempts of short tasks in the log, because their own lines are written only at level debug.
import type { Log, TaskEvent } from '@bullpen/contract'
import type { EventSink } from '@bullpen/engine'
import type { Clock } from '@bullpen/engine/internal'
import type { LogField } from './log-fields.ts'

type Ended = Extract<TaskEvent, { readonly event: 'attempt.ended' }>

export interface AttemptSummaries {
  /** Counts the attempts of short tasks. A call costs two look-ups, and never throws. */
  readonly sink: EventSink
  /** Writes what has not been written yet. */
  close(): void
}

interface Tally {
  readonly queue: string
  readonly task: string
  readonly verdicts: Partial<Record<Ended['verdict'], number>>
  attempts: number
  totalMs: number
  maxMs: number
}

/**
 * Writes one line at level info for each queue and task whose short attempts have ended in an interval. The interval begins with the first
 * end after the previous lines, so an idle process writes nothing and has no timer.
 */
export function summarizeAttempts(
  log: Pick<Log, 'info'>,
  clock: Pick<Clock, 'monotonic' | 'after'>,
  intervalMs: number,
): AttemptSummaries {
  const tallies = new Map<string, Map<string, Tally>>()
  let beganAt = 0
  let cancelTimer = (): void => {}

  const write = (): void => {
    cancelTimer()
    const overMs = Math.round(clock.monotonic() - beganAt)
    for (const ofQueue of tallies.values()) {
      for (const { queue, task, verdicts, attempts, totalMs, maxMs } of ofQueue.values()) {
        const times = { meanMs: hundredths(totalMs / attempts), maxMs: hundredths(maxMs) }
        const fields = { queue, task, verdicts, ...times, overMs } satisfies Partial<Record<LogField, unknown>>
        log.info(fields, 'attempts of a short task ended')
      }
    }
    tallies.clear()
  }

  const tallyOf = (queue: string, task: string): Tally => {
    if (tallies.size === 0) {
      beganAt = clock.monotonic()
      cancelTimer = clock.after(intervalMs, write)
    }
    const ofQueue = tallies.get(queue) ?? new Map<string, Tally>()
    const tally = { queue, task, verdicts: {}, attempts: 0, totalMs: 0, maxMs: 0 }
    tallies.set(queue, ofQueue.set(task, tally))
    return tally
  }

  return {
    sink(event) {
      if (event.event !== 'attempt.ended' || event.kind !== 'short') return
      const { queue, task, verdict, durationMs } = event
      const tally = tallies.get(queue)?.get(task) ?? tallyOf(queue, task)
      tally.verdicts[verdict] = (tally.verdicts[verdict] ?? 0) + 1
      tally.attempts++
      tally.totalMs += durationMs
      tally.maxMs = Math.max(tally.maxMs, durationMs)
    },
    close: write,
  }
}

/** Rounds to hundredths, because most short attempts take less than a millisecond. */
function hundredths(ms: number): number {
  return Math.round(ms * 100) / 100
}

// Decides whether a schedule is in trouble. Pure.
import { formatDuration, isFinal, type ScheduleTrouble } from '@bullpen/contract'
import type { ScheduleState } from '../ports/broker/schedules.ts'
import { failedRuns } from './next-step.ts'

export interface Trouble {
  readonly kind: ScheduleTrouble
  /** In ms since 1970. */
  readonly since: number
  readonly detail: string
}

/** How long every tick has to find the previous run unfinished, in ms. */
const OVERLAPPING_MS = 3_600_000
/** How long a missed tick is reported, in ms. */
const MISSED_MS = 86_400_000

/** Returns everything that is wrong with a schedule, which is nothing for most schedules. */
export function troublesOf({ record, lastStatus, now }: ScheduleState): readonly Trouble[] {
  const { overlappingSince, missedAt, overlap, waiting, unreadableInput } = record
  const isBusy = waiting.length > 0 || (lastStatus !== undefined && !isFinal(lastStatus))
  const failed = failedRuns(record, lastStatus)
  const troubles: Trouble[] = []
  if (failed !== undefined) {
    const runs = failed.runs === 1 ? 'the last run' : `the last ${failed.runs} runs`
    troubles.push({ kind: 'failing', since: failed.since, detail: `${runs} ended as dead or expired` })
  }
  if (isBusy && overlappingSince !== undefined && now - overlappingSince >= OVERLAPPING_MS) {
    const minutes = Math.floor((now - overlappingSince) / 60_000)
    const detail = `every tick of the last ${formatDuration(minutes * 60_000)} found the previous run unfinished; overlap is '${overlap}'`
    troubles.push({ kind: 'overlapping', since: overlappingSince, detail })
  }
  if (missedAt !== undefined && now - missedAt < MISSED_MS) {
    troubles.push({ kind: 'missed', since: missedAt, detail: 'a tick was missed, and no task was enqueued for it' })
  }
  if (unreadableInput !== undefined) {
    const detail = `the input cannot be decoded, so no task is enqueued: ${unreadableInput.reason}`
    troubles.push({ kind: 'unreadable', since: record.changedAt, detail })
  }
  return troubles
}

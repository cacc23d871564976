// Compares what is wrong with a schedule with what has been reported, so that the beginning and the end of each trouble are reported
// once. Pure.
import type { ScheduleTrouble } from '@bullpen/contract'
import { SCHEDULE_TROUBLES } from '@bullpen/contract/internal'
import type { Trouble } from './trouble.ts'

export type ReportedTrouble = Pick<Trouble, 'kind' | 'since'>

export interface TroubleChanges {
  readonly begun: readonly Trouble[]
  readonly ended: readonly ReportedTrouble[]
  /** The troubles that are reported after these changes. */
  readonly reported: readonly ReportedTrouble[]
}

/** `troubles` are the schedule's current troubles, which are none if the schedule was deleted. A schedule has at most one of a kind. */
export function troubleChanges(troubles: readonly Trouble[], reported: readonly ReportedTrouble[]): TroubleChanges {
  const begun = troubles.filter(({ kind }) => !has(reported, kind))
  const ended = reported.filter(({ kind }) => !has(troubles, kind))
  const left = reported.filter(({ kind }) => has(troubles, kind))
  return { begun, ended, reported: [...left, ...begun.map(({ kind, since }) => ({ kind, since }))] }
}

function has(troubles: readonly ReportedTrouble[], kind: ScheduleTrouble): boolean {
  return troubles.some((each) => each.kind === kind)
}

/** How many schedules have each kind of trouble. */
export type TroubleCounts = Readonly<Record<ScheduleTrouble, number>>

/** Counts the troubles of several schedules by their kinds. */
export function countTroubles(troubles: readonly ReportedTrouble[]): TroubleCounts {
  const counts = SCHEDULE_TROUBLES.map((kind) => [kind, troubles.filter((each) => each.kind === kind).length])
  return Object.fromEntries(counts) as TroubleCounts
}

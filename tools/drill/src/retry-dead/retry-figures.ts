// Computes the figures of the drill `retry-dead` from the tasks' records, the audit lines and the counts by kind of error.

import type { AuditLine } from '../environment/drill-api.ts'
import type { Figures } from '../figures/figures.ts'
import type { End } from '../ledger/ledger.ts'

export interface RetryLedger {
  /** The tasks that the request selects, and the other dead tasks. */
  readonly selected: readonly string[]
  readonly others: readonly string[]
  readonly ends: ReadonlyMap<string, End>
  /** The request as the API last showed it. */
  readonly request: { readonly id: string; readonly by: string; readonly changed: number }
  readonly audit: readonly AuditLine[]
  /** How many of the other tasks there are of each kind of error, and how many dead tasks were counted at the end. */
  readonly expected: ReadonlyMap<string, number>
  readonly counted: ReadonlyMap<string, number>
}

type RetryFigures = Required<Pick<Figures, 'historiesWrong' | 'othersChanged' | 'auditOff'>>

export function retryFigures(ledger: RetryLedger): RetryFigures {
  const { selected, others, ends, request, audit, expected, counted } = ledger
  const retriesOf = (id: string) => ends.get(id)?.retries ?? []
  const lines = audit.filter(({ deadTaskRequest }) => deadTaskRequest === request.id)
  const audited = lines.reduce((sum, { by, matching }) => sum + (by === request.by ? matching : 0), 0)
  const touched = others.filter((id) => ends.get(id)?.status !== 'dead' || retriesOf(id).length > 0)
  return {
    historiesWrong: selected.filter((id) => retriesOf(id).length !== 1 || retriesOf(id)[0]?.by !== request.by).length,
    othersChanged: touched.length + difference(expected, counted),
    auditOff: Math.abs(audited - selected.length) + Math.abs(request.changed - selected.length),
  }
}

/** Returns by how many tasks the counts differ. */
function difference(a: ReadonlyMap<string, number>, b: ReadonlyMap<string, number>): number {
  const codes = new Set([...a.keys(), ...b.keys()])
  return [...codes].reduce((sum, code) => sum + Math.abs((a.get(code) ?? 0) - (b.get(code) ?? 0)), 0)
}

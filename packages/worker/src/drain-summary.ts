// What the drain of a whole process came to, over all its pools, and the log of it.
import type { Log } from '@bullpen/contract'
import type { DrainReport } from '@bullpen/engine'

/** Empty `abandoned` and `unconfirmed`: all ended well. */
export type DrainSummary = Omit<DrainReport, 'queue'>

export function summarizeDrain(reports: readonly DrainReport[]): DrainSummary {
  const sum = (of: (report: DrainReport) => number): number => reports.reduce((total, each) => total + of(each), 0)
  return {
    finished: sum(({ finished }) => finished),
    requeued: sum(({ requeued }) => requeued),
    failed: sum(({ failed }) => failed),
    abandoned: reports.flatMap(({ abandoned }) => abandoned),
    unconfirmed: reports.flatMap(({ unconfirmed }) => unconfirmed),
    slowestTaskMs: Math.max(0, ...reports.map(({ slowestTaskMs }) => slowestTaskMs)),
  }
}

/** One line for each task that others must recover, and one for all. `about`: of the last. */
export function logDrainSummary(log: Log, end: DrainSummary, about: object = {}): void {
  for (const { id, task } of end.abandoned) log.error({ id, task }, 'abandoned: still running at the end of the drain')
  for (const { id, task } of end.unconfirmed) {
    log.error({ id, task }, 'unconfirmed: it has ended, but Redis has not confirmed that; it may be started again')
  }
  const { finished, requeued, failed, slowestTaskMs } = end
  const numbers = { finished, requeued, failed, abandoned: end.abandoned.length, unconfirmed: end.unconfirmed.length }
  log.info({ ...about, ...numbers, slowestTaskMs }, 'drained')
}

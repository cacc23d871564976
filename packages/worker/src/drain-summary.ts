// Combines the drain reports from all of a worker's pools into one summary, and logs it.
import type { Log } from '@bullpen/contract'
import type { DrainReport } from '@bullpen/engine'

/** The result of a drain. If `abandoned` and `unconfirmed` are empty, every task finished or was requeued. */
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

/** Logs one line for each task that another worker must recover, and one line with the totals and the fields of `about`. */
export function logDrainSummary(log: Log, end: DrainSummary, about: object = {}): void {
  for (const { id, task } of end.abandoned) log.error({ id, task }, 'task abandoned: another worker recovers it')
  for (const { id, task } of end.unconfirmed) {
    log.error({ id, task }, 'task unconfirmed: Redis has not confirmed the result; the task may run again')
  }
  const { finished, requeued, failed, slowestTaskMs } = end
  const numbers = { finished, requeued, failed, abandoned: end.abandoned.length, unconfirmed: end.unconfirmed.length }
  log.info({ ...about, ...numbers, slowestTaskMs }, 'drained')
}

// What the drain of a whole process came to, over all its pools, and the log of it.
import type { Log } from '@bullpen/contract'
import type { DrainReport } from '@bullpen/engine'

/** Empty `abandoned` and `unrecorded`: all ended well. */
export type DrainEnd = Omit<DrainReport, 'queue'>

export function drainEnd(reports: readonly DrainReport[]): DrainEnd {
  const sum = (of: (report: DrainReport) => number): number => reports.reduce((total, each) => total + of(each), 0)
  return {
    finished: sum(({ finished }) => finished),
    handedBack: sum(({ handedBack }) => handedBack),
    failed: sum(({ failed }) => failed),
    abandoned: reports.flatMap(({ abandoned }) => abandoned),
    unrecorded: reports.flatMap(({ unrecorded }) => unrecorded),
    longestMs: Math.max(0, ...reports.map(({ longestMs }) => longestMs)),
  }
}

/** One line for each task that others must recover, and one for all. `about`: of the last. */
export function tellDrainEnd(log: Log, end: DrainEnd, about: object = {}): void {
  for (const { id, task } of end.abandoned) log.error({ id, task }, 'abandoned: still running at the end of the drain')
  for (const { id, task } of end.unrecorded) {
    log.error({ id, task }, 'unrecorded: it has ended, but Redis has not confirmed that; it may be started again')
  }
  const { finished, handedBack, failed, longestMs } = end
  const numbers = { finished, handedBack, failed, abandoned: end.abandoned.length, unrecorded: end.unrecorded.length }
  log.info({ ...about, ...numbers, longestMs }, 'drained')
}

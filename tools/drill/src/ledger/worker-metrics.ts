// Compares the counters that each worker published last with the ledger. A worker that was killed has published nothing at its end.
import type { Effect } from './effects.ts'

/** The attempts that a worker has counted, summed over all tasks. */
export interface AttemptCounts {
  readonly started: number
  readonly ended: number
  readonly refused: number
}

/** How an attempt ended, according to the task's record. */
export interface AttemptEnd {
  readonly fencingToken: number
  readonly reason?: string | undefined
}

/** Reads the counters from a worker's metrics, in the text format of Prometheus. */
export function readCounts(exposition: string): AttemptCounts {
  const sum = (counter: string): number => {
    const lines = exposition.split('\n').filter((line) => line.startsWith(`${counter}{`))
    return lines.reduce((total, line) => total + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
  }
  return {
    started: sum('bullpen_attempts_started_total'),
    ended: sum('bullpen_attempts_ended_total'),
    refused: sum('bullpen_commits_refused_total'),
  }
}

/**
 * Returns by how many attempts the counters differ from the ledger. The ledger's counts of a worker are the handlers that it has
 * started, those of them whose end is in their task's record, and those whose end is not, or that are recorded as lost.
 */
export function miscounted(
  counts: ReadonlyMap<string, AttemptCounts>,
  effects: readonly Effect[],
  ends: ReadonlyMap<string, { readonly attempts?: readonly AttemptEnd[] }>,
): number {
  const starts = Map.groupBy(
    effects.filter(({ what }) => what === 'start'),
    ({ worker }) => worker,
  )
  let off = 0
  for (const [worker, { started, ended, refused }] of counts) {
    const own = starts.get(worker) ?? []
    const recorded = own.filter(({ id, fencingToken }) =>
      ends.get(id)?.attempts?.some((end) => end.fencingToken === fencingToken && end.reason !== 'process_lost'),
    )
    off += Math.abs(started - own.length)
    off += Math.abs(ended - recorded.length)
    off += Math.abs(refused - (own.length - recorded.length))
  }
  return off
}

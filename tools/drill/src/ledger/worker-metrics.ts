// Compares the counters that each worker last published with the ledger. A worker that was killed did not publish its final
// counters.
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
 * Returns by how many attempts the counters differ from the ledger. For each worker, the ledger's counts are the handlers that it
 * started, the started handlers whose end is in their task's record, and the started handlers whose end is missing from the
 * record or recorded as lost.
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

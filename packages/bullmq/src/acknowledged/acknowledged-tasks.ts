// Remembers which tasks a process has acknowledged to their callers in the last minute or two, so that the process notices if Redis has
// lost them (./loss-watch.ts).
import type { Enqueued } from '@bullpen/contract'
import { readTaskId } from '@bullpen/contract/internal'
import type { NewTask } from '@bullpen/engine'

/** For how long every task is remembered, in ms. It is forgotten within twice this time. */
const REMEMBER_MS = 60_000
/** If more tasks are acknowledged in that time, only the newest are remembered: at least this many, at most twice as many (about 10 MB). */
const MOST = 50_000

export interface AcknowledgedTasks {
  /** Remembers that the caller who wanted to enqueue `task` has been given the id of a stored task. */
  note(enqueued: Enqueued, task: NewTask): void
  /** Returns the tasks by queue: the id of each and, after a blank, the token of its caller, if it has one. */
  byQueue(): ReadonlyMap<string, readonly string[]>
}

/** `now` is a monotonic clock, in ms. */
export function createAcknowledgedTasks(
  now: () => number,
  { rememberMs = REMEMBER_MS, most = MOST } = {},
): AcknowledgedTasks {
  let newer: string[] = []
  let older: string[] = []
  let newerSince = now()

  return {
    note({ id }, { id: ownId, caller }) {
      if (newer.length >= most || now() - newerSince >= rememberMs) {
        older = newer
        newer = []
        newerSince = now()
      }
      newer.push(typeof caller === 'object' && id === ownId ? `${id} ${caller.token}` : id)
    },
    byQueue: () => Map.groupBy([...older, ...newer], (task) => readTaskId(task.split(' ', 1)[0] ?? '')?.queue ?? ''),
  }
}

// Defines what an online pool runs, and tracks which of its given tasks have not ended yet.
import { isFinal, type TaskId, type TaskRecord } from '@bullpen/contract'
import type { Clock } from '../ports/clock.ts'
import { settlesWithin } from '../time/with-timeout.ts'

/** Works like the broker's method of the same name. */
export type WaitUntilFinished = (id: TaskId, signal: AbortSignal) => Promise<TaskRecord | undefined>

/** What an online pool runs: a set of tasks, or a group. */
export interface OnlineWork {
  /** Returns whether everything had ended when it was last looked up. */
  isDone(): boolean
  /** Resolves when everything has ended, or when the signal aborts. Never rejects. */
  ended(signal: AbortSignal): Promise<void>
  /** Looks up once what has not ended. What cannot be looked up has not ended. Never rejects. */
  recheck(): Promise<void>
}

/** A given set of tasks. `ended` also resolves if the remaining tasks do not exist. */
export interface OnlineSet extends OnlineWork {
  /** Returns the unfinished tasks in the order in which they were given, without duplicates. */
  unfinished(): readonly TaskId[]
}

/** The delay between two lookups of a task when the store does not respond, in ms. */
const RETRY_MS = 1_000

export function createOnlineSet(
  tasks: readonly TaskId[],
  waitUntilFinished: WaitUntilFinished,
  clock: Clock,
): OnlineSet {
  const unfinished = new Set(tasks)
  const check = async (id: TaskId, signal: AbortSignal): Promise<void> => {
    const record = await waitUntilFinished(id, signal)
    if (record !== undefined && isFinal(record.status)) unfinished.delete(id)
  }
  const untilEnded = async (id: TaskId, signal: AbortSignal): Promise<void> => {
    while (!signal.aborted) {
      try {
        return await check(id, signal)
      } catch {
        await settlesWithin(clock, new Promise(() => {}), RETRY_MS, signal)
      }
    }
  }
  return {
    unfinished: () => [...unfinished],
    isDone: () => unfinished.size === 0,
    async ended(signal) {
      await Promise.all([...unfinished].map((id) => untilEnded(id, signal)))
    },
    async recheck() {
      await Promise.allSettled([...unfinished].map((id) => check(id, AbortSignal.abort())))
    },
  }
}

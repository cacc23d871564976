// Tracks which of an online pool's given tasks have not ended yet.
import { isFinal, type TaskId, type TaskRecord } from '@bullpen/contract'
import type { Clock } from '../ports/clock.ts'
import { settlesWithin } from '../time/with-timeout.ts'

/** Works like the broker's method of the same name. */
export type WaitUntilFinished = (id: TaskId, signal: AbortSignal) => Promise<TaskRecord | undefined>

export interface OnlineSet {
  /** Returns the unfinished tasks in the order in which they were given, without duplicates. */
  unfinished(): readonly TaskId[]
  /** Resolves when every task has ended or does not exist, or when the signal aborts. */
  ended(signal: AbortSignal): Promise<void>
  /** Looks up the unfinished tasks once. A task that cannot be looked up stays unfinished. Never rejects. */
  recheck(): Promise<void>
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
    async ended(signal) {
      await Promise.all([...unfinished].map((id) => untilEnded(id, signal)))
    },
    async recheck() {
      await Promise.allSettled([...unfinished].map((id) => check(id, AbortSignal.abort())))
    },
  }
}

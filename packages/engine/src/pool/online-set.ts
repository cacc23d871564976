// The given tasks of an online pool: which of them have not ended yet.
import { isFinal, type TaskId, type TaskRecord } from '@bullpen/contract'
import type { Clock } from '../ports/clock.ts'
import { settlesWithin } from '../time/with-timeout.ts'

/** As the broker's `settled`. */
export type WaitUntilFinished = (id: TaskId, signal: AbortSignal) => Promise<TaskRecord | undefined>

export interface OnlineSet {
  /** In the order in which they were given, each once. */
  unfinished(): readonly TaskId[]
  /** Resolves when each has ended or is not there at all; at once when the signal aborts. */
  ended(signal: AbortSignal): Promise<void>
  /** Looks once at those that are left. One that can't be asked about stays. Never rejects. */
  recheck(): Promise<void>
}

/** Between two questions about a task while the store does not answer. */
const ASK_AGAIN_MS = 1_000

export function onlineSet(tasks: readonly TaskId[], settled: WaitUntilFinished, clock: Clock): OnlineSet {
  const left = new Set(tasks)
  const ask = async (id: TaskId, signal: AbortSignal): Promise<void> => {
    const record = await settled(id, signal)
    if (record !== undefined && isFinal(record.status)) left.delete(id)
  }
  const untilEnded = async (id: TaskId, signal: AbortSignal): Promise<void> => {
    while (!signal.aborted) {
      try {
        return await ask(id, signal)
      } catch {
        await settlesWithin(clock, new Promise(() => {}), ASK_AGAIN_MS, signal)
      }
    }
  }
  return {
    unfinished: () => [...left],
    async ended(signal) {
      await Promise.all([...left].map((id) => untilEnded(id, signal)))
    },
    async recheck() {
      await Promise.allSettled([...left].map((id) => ask(id, AbortSignal.abort())))
    },
  }
}

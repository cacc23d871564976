// The port to what brings a pool its tasks, and carries out what is decided about them.

import type { AttemptResult } from '../attempt/runner.ts'
import type { NamedTask } from '../pool/drain-report.ts'
import type { FetchedTask } from './ports.ts'

/**
 * What a feed calls for every task that it has taken: runs it, and then lets the feed obey the verdict, while the slot
 * still holds the task. `refuse` instead, when no slot may take it: it is to go back as if it had not been taken.
 */
export type RunTask = <T>(
  task: FetchedTask,
  obey: (conclusion: AttemptResult) => T | Promise<T>,
  refuse: () => T | Promise<T>,
) => Promise<T>

export interface Consumer {
  /** Waits for the store, as long as it takes. */
  open(): Promise<void>
  /** Fetches until it is stopped. Rejects when that fails for good; then it may be opened and run again. */
  run(): Promise<void>
  /** How many tasks may be taken at once; 0 pauses. */
  resize(slots: number): void
  /** Undefined: the store is there. Otherwise what is missing, for people. */
  notReady(): string | undefined
  /** Fetches nothing more. Resolves when all that was taken has ended and is acknowledged; that may be never. */
  stop(): Promise<void>
  /** Taken, and the store has not confirmed yet what became of them. */
  unconfirmed(): readonly NamedTask[]
  /** Lets go of the store at once. */
  close(): void
}

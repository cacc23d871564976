// Represents an attempt that runs in an isolate. The attempt is waiting for an isolate, running in one, or over.
import type { IsolateCalls, IsolatedRun, IsolatedTask, Outcome } from '@bullpen/engine/internal'
import type { AttemptRef } from '../protocol/messages.ts'

/** What controls a run: the pool while the run waits for an isolate, and the isolate from then on. */
export interface RunOwner {
  signal(run: Run, reason: Error): void
  kill(run: Run): void
}

export class Run implements IsolatedRun {
  readonly task: IsolatedTask
  readonly calls: IsolateCalls
  readonly of: AttemptRef
  readonly outcome: Promise<Outcome>
  over = false
  /** The reason of the first signal, if there was one. */
  aborted: Error | undefined
  owner: RunOwner
  readonly #resolve: (outcome: Outcome) => void

  constructor(task: IsolatedTask, calls: IsolateCalls, owner: RunOwner) {
    this.task = task
    this.calls = calls
    this.owner = owner
    this.of = { id: task.id, task: task.task, fencingToken: task.fencingToken, attempt: task.attempt }
    const { promise, resolve } = Promise.withResolvers<Outcome>()
    this.outcome = promise
    this.#resolve = resolve
  }

  signal(reason: Error): void {
    if (this.over || this.aborted !== undefined) return
    this.aborted = reason
    this.owner.signal(this, reason)
  }

  kill(): void {
    if (!this.over) this.owner.kill(this)
  }

  end(outcome: Outcome): void {
    this.over = true
    this.#resolve(outcome)
  }

  panic(reason: 'isolate_died' | 'out_of_memory', message: string, cause?: Error): void {
    this.end({ kind: 'panicked', reason, error: new Error(message, cause && { cause }) })
  }
}

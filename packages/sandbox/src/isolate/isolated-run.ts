// One task on its way through an isolate: waiting for one, at work in it, or over.
import type { IsolateCalls, IsolatedRun, IsolatedTask, Outcome } from '@bullpen/engine/internal'
import type { StartOf } from '../protocol/messages.ts'

/** What a run asks of the place where it is: of the pool while it waits, of its isolate from then on. */
export interface Place {
  signal(run: Run, reason: Error): void
  kill(run: Run): void
}

export class Run implements IsolatedRun {
  readonly task: IsolatedTask
  readonly calls: IsolateCalls
  readonly of: StartOf
  readonly outcome: Promise<Outcome>
  over = false
  /** The first signal that came. */
  aborted: Error | undefined
  place: Place
  readonly #resolve: (outcome: Outcome) => void

  constructor(task: IsolatedTask, calls: IsolateCalls, place: Place) {
    this.task = task
    this.calls = calls
    this.place = place
    this.of = { id: task.id, task: task.task, fencingToken: task.fencingToken, attempt: task.attempt }
    const { promise, resolve } = Promise.withResolvers<Outcome>()
    this.outcome = promise
    this.#resolve = resolve
  }

  signal(reason: Error): void {
    if (this.over || this.aborted !== undefined) return
    this.aborted = reason
    this.place.signal(this, reason)
  }

  kill(): void {
    if (!this.over) this.place.kill(this)
  }

  end(outcome: Outcome): void {
    this.over = true
    this.#resolve(outcome)
  }

  panic(reason: 'isolate_died' | 'out_of_memory', message: string, cause?: Error): void {
    this.end({ kind: 'panicked', reason, error: new Error(message, cause && { cause }) })
  }
}

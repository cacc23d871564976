// Runs attempts one after another, like a slot whose store confirms every commit, and exposes the attempt that can currently be
// interrupted.
import type { AttemptResult, CloseReason } from '../ports/attempt-result.ts'
import type { FetchedTask } from '../ports/consumer.ts'
import { ReusableTimer } from '../time/reusable-timer.ts'
import { emitSettled } from './finish.ts'
import { InterruptibleRun } from './interruptible-run.ts'
import { type RunnerHost, runAttempt } from './runner.ts'

export class RunSlot {
  /** The current attempt, if it can be interrupted. */
  interruption: InterruptibleRun | undefined
  /** Handlers that are still running after their attempt has ended. */
  readonly stuckHandlers = new Set<Promise<unknown>>()
  /** Why the context is closed before the next attempt starts. */
  closedBy: CloseReason | undefined
  readonly #host: RunnerHost

  constructor(host: Omit<RunnerHost, 'slot' | 'timer' | 'onStuckHandler'>) {
    const timer = new ReusableTimer(host.clock)
    this.#host = {
      ...host,
      slot: 1,
      timer: (onFire) => timer.lend(onFire),
      onStuckHandler: (returned) => {
        this.stuckHandlers.add(returned)
        void returned.then(() => this.stuckHandlers.delete(returned))
      },
    }
  }

  run(task: FetchedTask): AttemptResult | Promise<AttemptResult> {
    const running = runAttempt(task, this.#host, this.closedBy)
    if (!(running instanceof InterruptibleRun)) {
      return running instanceof Promise ? running.then((result) => this.#settle(result)) : this.#settle(running)
    }
    this.interruption = running
    return running.result.then((result) => {
      if (this.interruption === running) this.interruption = undefined
      return this.#settle(result)
    })
  }

  #settle(result: AttemptResult): AttemptResult {
    emitSettled(result, undefined, this.#host.sink)
    return result
  }
}

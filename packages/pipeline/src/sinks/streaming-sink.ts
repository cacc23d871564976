// The end of a run whose results are iterated: requests an item whenever the consumer asks for one.
import type { Upstream } from '../nodes/node.ts'
import type { RunState } from '../run.ts'
import type { Sink } from './sink.ts'

export interface StreamingSink extends Sink {
  /** Resolves with the next item, or as done when the run has ended. Rejects once, with the error of a run that has failed. */
  pull(): Promise<IteratorResult<unknown, undefined>>
  /** Stops the run. Resolves when it has ended, and rejects if it has failed while it was stopped. */
  close(): Promise<void>
}

export function createStreamingSink(run: RunState): StreamingSink {
  const waiting: PromiseWithResolvers<IteratorResult<unknown, undefined>>[] = []
  let up: Upstream | undefined
  let settled = false
  let reported = false

  /** Ends the calls of `pull` that wait. The first one of a failed run rejects. */
  const endWaiting = (): void => {
    for (const each of waiting.splice(0)) {
      const failure = reported ? undefined : run.failure()
      reported = true
      if (failure === undefined) each.resolve({ done: true, value: undefined })
      else each.reject(failure)
    }
  }
  void run.settled.then(() => {
    settled = true
    endWaiting()
  })

  return {
    connect(upstream) {
      up = upstream
    },
    pull() {
      const pulled = Promise.withResolvers<IteratorResult<unknown, undefined>>()
      waiting.push(pulled)
      if (settled) {
        endWaiting()
        return pulled.promise
      }
      run.begin()
      up?.request(1)
      run.end()
      return pulled.promise
    },
    async close() {
      const failed = run.failure() !== undefined
      if (!settled) run.stop()
      await run.settled
      const failure = run.failure()
      if (!failed && !reported && failure !== undefined) throw failure
    },
    next(value) {
      waiting.shift()?.resolve({ done: false, value })
    },
    end(sourceError) {
      if (sourceError === undefined) run.complete()
      else run.fail(sourceError)
    },
  }
}

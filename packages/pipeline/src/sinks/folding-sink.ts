// The end of a run that combines all results into a state, one at a time.
import type { FoldFunction } from '@bullpen/contract'
import type { FoldStage } from '@bullpen/contract/internal'
import type { Position, Upstream } from '../nodes/node.ts'
import { promiseOf } from '../promise-of.ts'
import type { RunState } from '../run.ts'
import type { OutputSink } from './sink.ts'

export function createFoldingSink({ run: given, name, initial }: FoldStage, run: RunState): OutputSink {
  const fold = given as FoldFunction<unknown, unknown>
  const context = run.context(name)
  let state: unknown = structuredClone(initial)
  let up: Upstream | undefined
  let busy = false
  let ended = false

  const endIfIdle = (): void => {
    if (ended && !busy) run.complete()
  }

  const failed = (position: Position, cause: unknown): void => {
    run.failStage(name, position, cause)
  }

  return {
    connect(upstream) {
      up = upstream
    },
    start() {
      up?.request(1)
    },
    next(item, position) {
      let result: unknown
      try {
        result = fold(state, item, context)
      } catch (cause) {
        return failed(position, cause)
      }
      const promise = promiseOf(result)
      if (promise === undefined) {
        state = result
        up?.request(1)
        return
      }
      busy = true
      run.begin()
      promise.then(
        (value) => {
          busy = false
          state = value
          if (!context.signal.aborted) up?.request(1)
          endIfIdle()
          run.end()
        },
        (cause) => {
          busy = false
          failed(position, cause)
          run.end()
        },
      )
    },
    end(sourceError) {
      ended = true
      if (sourceError !== undefined) run.fail(sourceError)
      else endIfIdle()
    },
    output: () => state,
  }
}

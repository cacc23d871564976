// The end of a run that returns all results, or what `reduce` makes of them.
import type { ReduceFunction } from '@bullpen/contract'
import type { ReduceStage } from '@bullpen/contract/internal'
import type { Upstream } from '../nodes/node.ts'
import type { RunState } from '../run.ts'
import type { OutputSink } from './sink.ts'

export function createCollectingSink(stage: ReduceStage | undefined, run: RunState): OutputSink {
  const items: unknown[] = []
  let up: Upstream | undefined
  let output: unknown = items

  const reduce = async ({ run: given, name }: ReduceStage): Promise<void> => {
    run.begin()
    try {
      output = await (given as ReduceFunction<unknown, unknown>)(items, run.context(name))
      run.complete()
    } catch (cause) {
      run.failStage(name, undefined, cause)
    } finally {
      run.end()
    }
  }

  return {
    connect(upstream) {
      up = upstream
    },
    start() {
      up?.request(Number.POSITIVE_INFINITY)
    },
    next(item) {
      items.push(item)
    },
    end(sourceError) {
      if (sourceError !== undefined) run.fail(sourceError)
      else if (stage === undefined) run.complete()
      else void reduce(stage)
    },
    output: () => output,
  }
}

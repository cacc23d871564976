// Runs a pipeline in this process and returns its results one by one.
import type { Pipeline } from '@bullpen/contract'
import { assemble } from './assembly.ts'
import { cancelOnAbort } from './cancellation.ts'
import { createRun } from './run.ts'
import type { RunArguments } from './run-pipeline.ts'
import { createStreamingSink } from './sinks/streaming-sink.ts'

/**
 * Returns the results of a pipeline as they are available. The run starts when the first result is requested, and the stages run ahead
 * of the consumer only as far as their buffers allow. To stop the run, leave the loop: `break` aborts the signals of all functions,
 * closes the source, and continues after the loop when every function has returned.
 *
 * The pipeline cannot collect errors, because the consumer would not see them. The same errors are thrown as by `runPipeline`.
 *
 * @example
 * for await (const square of streamPipeline(squares, [2, 3])) console.log(square)
 */
export function streamPipeline<Input, Item>(
  pipeline: Pipeline<Input, Item>,
  ...[input, { signal } = {}]: RunArguments<Input>
): AsyncIterableIterator<Item, undefined> & AsyncDisposable {
  const start = (): ReturnType<typeof createStreamingSink> => {
    const run = createRun(pipeline)
    const created = createStreamingSink(run)
    assemble(pipeline, input, run, created)
    const cancellation = cancelOnAbort(signal, run)
    void run.settled.then(() => cancellation[Symbol.dispose]())
    return created
  }
  let sink: ReturnType<typeof createStreamingSink> | undefined
  let returned = false
  return {
    async next() {
      if (returned) return { done: true, value: undefined }
      sink ??= start()
      return (await sink.pull()) as IteratorResult<Item, undefined>
    },
    async return() {
      returned = true
      await sink?.close()
      return { done: true, value: undefined }
    },
    async [Symbol.asyncDispose]() {
      returned = true
      await sink?.close()
    },
    [Symbol.asyncIterator]() {
      return this
    },
  }
}

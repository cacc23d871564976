// Runs a pipeline in this process and returns its results one by one.
import type { FleetPipeline, FleetPipelineDefinition, Pipeline, PipelineDefinition } from '@bullpen/contract'
import { assemble } from './assembly.ts'
import { cancelOnAbort } from './cancellation.ts'
import { createRun } from './run.ts'
import type { RunArguments, RunOptions } from './run-options.ts'
import { createStreamingSink, type StreamingSink } from './sinks/streaming-sink.ts'
import type { AnyTaskRunOptions, StageHandlers, TaskRunOptions } from './tasks/task-run-options.ts'

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
  ...given: RunArguments<Input>
): AsyncIterableIterator<Item, undefined> & AsyncDisposable
/** Streams the results of a pipeline of tasks that has no reduction. See {@link runPipeline} for what applies to its tasks. */
export function streamPipeline<Input, Item, H extends StageHandlers>(
  pipeline: FleetPipeline<Input, Item, 'cancel'>,
  input: Input,
  options: TaskRunOptions<H>,
): AsyncIterableIterator<Item, undefined> & AsyncDisposable
export function streamPipeline(
  pipeline: PipelineDefinition | FleetPipelineDefinition,
  input?: unknown,
  options: RunOptions = {},
): AsyncIterableIterator<unknown, undefined> & AsyncDisposable {
  const open = async (): Promise<StreamingSink> => {
    if (!('source' in pipeline)) return start(pipeline, input, options)
    const { functionsOf } = await import('./tasks/task-pipeline.ts')
    return start(functionsOf(pipeline, input, options as AnyTaskRunOptions), undefined, options)
  }
  let opened: Promise<StreamingSink> | undefined
  let returned = false
  const close = async (): Promise<void> => {
    returned = true
    // If the run could not start, `next` has reported why.
    const sink = await opened?.catch(() => undefined)
    await sink?.close()
  }
  return {
    async next() {
      if (returned) return { done: true, value: undefined }
      opened ??= open()
      return (await opened).pull()
    },
    async return() {
      await close()
      return { done: true, value: undefined }
    },
    [Symbol.asyncDispose]: close,
    [Symbol.asyncIterator]() {
      return this
    },
  }
}

function start(pipeline: PipelineDefinition, input: unknown, { signal }: RunOptions): StreamingSink {
  const run = createRun(pipeline)
  const sink = createStreamingSink(run)
  assemble(pipeline, input, run, sink)
  const cancellation = cancelOnAbort(signal, run)
  void run.settled.then(() => cancellation[Symbol.dispose]())
  return sink
}

// Runs a pipeline in this process and returns its output.
import type { PipelineDefinition } from '@bullpen/contract'
import { assemble, isEnd } from './assembly.ts'
import { cancelOnAbort } from './cancellation.ts'
import { createRun } from './run.ts'
import { createCollectingSink } from './sinks/collecting-sink.ts'
import { createFoldingSink } from './sinks/folding-sink.ts'

export interface RunOptions {
  /** Cancels the run when it aborts. */
  readonly signal?: AbortSignal | undefined
}

/** The input can be omitted if the source does not use it. */
export type RunArguments<Input> = undefined extends Input
  ? [input?: Input, options?: RunOptions]
  : [input: Input, options?: RunOptions]

/**
 * Runs the pipeline. Resolves with the output of its `reduce` or `fold`, and otherwise with an array of its results. If the pipeline
 * collects errors, resolves with the output and the errors.
 *
 * The source is read only as fast as the stages take items. If a stage fails or the signal aborts, the signals of all functions abort,
 * no further function is called, and the source is closed. The promise settles when every function has returned and every iterator
 * is closed, so a function that ignores its signal delays the end of the run.
 *
 * @example
 * const squares = definePipeline('squares')
 *   .source((numbers: number[]) => numbers)
 *   .map((n) => n * n)
 * await runPipeline(squares, [2, 3]) // [4, 9]
 * @throws PipelineError `stage_failed`; `source_failed`, which is reported only after all items before have been processed; or
 * `pipeline_cancelled`.
 */
export async function runPipeline<Input, Result>(
  pipeline: PipelineDefinition<Input, Result>,
  ...[input, { signal } = {}]: RunArguments<Input>
): Promise<Result> {
  const run = createRun(pipeline)
  const end = pipeline.stages.find(isEnd)
  const sink = end?.kind === 'fold' ? createFoldingSink(end, run) : createCollectingSink(end, run)
  assemble(pipeline, input, run, sink)
  using _ = cancelOnAbort(signal, run)
  if (run.failure() === undefined) sink.start()
  await run.settled
  const failure = run.failure()
  if (failure !== undefined) throw failure
  const output = sink.output()
  if (pipeline.onError === 'cancel') return output as Result
  return { output, errors: run.errors, errorCount: run.errorCount() } as Result
}

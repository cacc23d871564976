// Runs a pipeline in this process and returns its output.
import type { FleetPipeline, FleetPipelineDefinition, PipelineDefinition, RunOnError } from '@bullpen/contract'
import { assemble, isEnd } from './assembly.ts'
import { cancelOnAbort } from './cancellation.ts'
import { createRun } from './run.ts'
import type { RunArguments, RunOptions, TaskRunResult } from './run-options.ts'
import { createCollectingSink } from './sinks/collecting-sink.ts'
import { createFoldingSink } from './sinks/folding-sink.ts'
import type { AnyTaskRunOptions, StageHandlers, TaskRunOptions } from './tasks/task-run-options.ts'

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
export function runPipeline<Input, Result>(
  pipeline: PipelineDefinition<Input, Result>,
  ...given: RunArguments<Input>
): Promise<Result>
/**
 * Runs a pipeline of tasks within this process, with the handlers that a worker has. Resolves with the output of the pipeline's `reduce`,
 * and otherwise with an array of its results. Inputs and outputs are checked, and timeouts, retries and backoffs apply, as in a worker.
 * Nothing is stored, so the run is lost with its process. What a handler cannot do without a fleet, such as `ctx.enqueue`, fails its task.
 *
 * @example
 * const paths = await runPipeline(digestTree, { directory: '/srv' }, { handlers })
 * @throws BullpenError `invalid_input`, `invalid_handler` if a task of the pipeline has no handler, or `invalid_definition`.
 * @throws PipelineError as for other pipelines. Its `cause` is the error of the task's last attempt.
 */
export function runPipeline<Input, Item, OnError extends RunOnError, H extends StageHandlers>(
  pipeline: FleetPipeline<Input, Item, OnError>,
  input: Input,
  options: TaskRunOptions<H>,
): Promise<TaskRunResult<OnError, Item[]>>
export function runPipeline<Input, Output, OnError extends RunOnError, H extends StageHandlers>(
  pipeline: FleetPipelineDefinition<Input, Output, OnError>,
  input: Input,
  options: TaskRunOptions<H>,
): Promise<TaskRunResult<OnError, Output>>
export async function runPipeline(
  pipeline: PipelineDefinition | FleetPipelineDefinition,
  input?: unknown,
  options: RunOptions = {},
): Promise<unknown> {
  if (!('source' in pipeline)) return runStages(pipeline, input, options)
  const { functionsOf } = await import('./tasks/task-pipeline.ts')
  return runStages(functionsOf(pipeline, input, options as AnyTaskRunOptions), undefined, options)
}

async function runStages(pipeline: PipelineDefinition, input: unknown, { signal }: RunOptions): Promise<unknown> {
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
  return pipeline.onError === 'cancel' ? output : { output, errors: run.errors, errorCount: run.errorCount() }
}

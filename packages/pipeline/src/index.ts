// The public surface: pipelines that run within one process.

export {
  type AnyIterable,
  type Collected,
  definePipeline,
  type MapOptions,
  type Pipeline,
  type PipelineDefinition,
  PipelineError,
  type PipelineErrorCode,
  type PipelineOptions,
  type StageContext,
} from '@bullpen/contract'
export { merge } from './merge.ts'
export type { RunOptions } from './run-options.ts'
export { runPipeline } from './run-pipeline.ts'
export { streamPipeline } from './stream-pipeline.ts'
export type { StageHandlers, TaskRunOptions } from './tasks/task-run-options.ts'

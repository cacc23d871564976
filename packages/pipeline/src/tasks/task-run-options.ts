// Defines what a run of a pipeline of tasks within one process needs in addition to the pipeline.
import type { Log, Resources, TaskDefinition } from '@bullpen/contract'
import type { RunOptions } from '../run-options.ts'

/** What `defineHandler`, `defineSourceHandler` or `defineReduceHandler` has returned, for any task. */
interface StageHandler {
  readonly task: TaskDefinition
  readonly module: string
  readonly handle: (context: never) => unknown
}

/** Handlers by the name of their task, such as a worker's `handlers`. */
export type StageHandlers = Readonly<Record<string, StageHandler>>

/** The resources that all of these handlers together need. */
type ResourcesOf<H extends StageHandlers> = {
  [Name in keyof H]: (needed: Parameters<H[Name]['handle']>[0]['resources']) => void
}[keyof H] extends (needed: infer R) => void
  ? R
  : Resources

interface CommonOptions<H extends StageHandlers> extends RunOptions {
  /** The handlers of the pipeline's tasks. Others are ignored, so pass the same record as to a worker. */
  readonly handlers: H
  /** Where handlers write their log lines. By default, these are dropped. */
  readonly log?: Log
}

/** The options of a run whose handlers are not known. */
export interface AnyTaskRunOptions extends CommonOptions<StageHandlers> {
  readonly resources?: Resources
}

/** Resources are required if a handler needs any. */
export type TaskRunOptions<H extends StageHandlers> = CommonOptions<H> &
  (Resources extends ResourcesOf<H> ? { readonly resources?: Resources } : { readonly resources: ResourcesOf<H> })

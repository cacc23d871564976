// Defines the tasks that begin and end a pipeline: a source, which yields items, and a reduction, which gets all results.
import type { z } from 'zod'
import { defineHandler, type Handler, type Resources, type TaskContext } from '../definition/handler.ts'
import {
  defineTask,
  type ParsedInputOf,
  type ReturnOf,
  type TaskDefinition,
  type TaskOptions,
} from '../definition/task-definition.ts'
import type { TaskName } from '../definition/task-name.ts'
import type { At } from './cursor.ts'

/** The definition of a source. `item` is the schema of what it yields. */
export type SourceDefinition<
  Name extends TaskName = TaskName,
  Input extends z.ZodType = z.ZodType,
  Item extends z.ZodType = z.ZodType,
> = TaskDefinition<Name, Input, z.ZodVoid> & { readonly item: Item }

/** The definition of a reduction. `item` is the schema of the results that it gets, and its input is that of the pipeline. */
export type ReducerDefinition<
  Name extends TaskName = TaskName,
  Input extends z.ZodType = z.ZodType,
  Item extends z.ZodType = z.ZodType,
  Output extends z.ZodType = z.ZodType,
> = TaskDefinition<Name, Input, Output> & { readonly item: Item }

type LongTask<Name extends TaskName, Input extends z.ZodType, Output extends z.ZodType> = Omit<
  Extract<TaskOptions<Name, Input, Output>, { readonly kind?: 'long' }>,
  'kind' | 'isolation' | 'memoryLimit' | 'output'
>

/**
 * Defines the source of pipelines: a task that yields items. Its handler is defined with {@link defineSourceHandler}. A source has no
 * timeout unless the definition sets one, because it waits for the stages after it.
 *
 * @example
 * export const walk = defineSource({
 *   name: 'files.walk',
 *   queue: 'io',
 *   input: z.object({ directory: z.string() }),
 *   item: z.object({ path: z.string() }),
 * })
 * @throws BullpenError like {@link defineTask}.
 */
export function defineSource<const Name extends TaskName, Input extends z.ZodType, Item extends z.ZodType>({
  item,
  ...options
}: LongTask<Name, Input, z.ZodVoid> & { readonly item: Item }): SourceDefinition<Name, Input, Item> {
  const task = defineTask<Name, Input>({ timeout: 'none', ...options } as TaskOptions<Name, Input, z.ZodVoid>)
  return Object.freeze({ ...task, item })
}

/**
 * Defines the end of pipelines: a task that gets all results, and returns the pipeline's output. Its handler is defined with
 * {@link defineReduceHandler}.
 *
 * @throws BullpenError like {@link defineTask}.
 */
export function defineReducer<
  const Name extends TaskName,
  Input extends z.ZodType,
  Item extends z.ZodType,
  Output extends z.ZodType,
>({
  item,
  output,
  ...options
}: LongTask<Name, Input, Output> & { readonly item: Item; readonly output: Output }): ReducerDefinition<
  Name,
  Input,
  Item,
  Output
> {
  const task = defineTask<Name, Input, Output>({ ...options, output } as TaskOptions<Name, Input, Output>)
  return Object.freeze({ ...task, item })
}

/** What a source yields. Items are JSON. */
type Yielded<D extends SourceDefinition> = z.input<D['item']> | At<z.input<D['item']>>

/**
 * Returns the items for an input. `cursor` is undefined at the first call. The source runs again if its process has died or if it has
 * waited for too long. If it yields items with {@link at}, `cursor` is then the cursor of the last item that Bullpen has received, and the
 * source has to skip all items up to and including that one. Without cursors, Bullpen skips the items that it has already received, so the
 * source has to yield the same items again. In both cases, the run fails with `source_changed` if the source does not.
 */
export type SourceFunction<D extends SourceDefinition, R extends Resources = object> = (
  input: ParsedInputOf<D>,
  context: TaskContext<D, R>,
  cursor: unknown,
) => Iterable<Yielded<D>> | AsyncIterable<Yielded<D>>

/** Returns the output of a pipeline. Use `context.input` for the pipeline's own input. */
export type ReducerFunction<D extends ReducerDefinition, R extends Resources = object> = (
  items: readonly z.output<D['item']>[],
  context: TaskContext<D, R>,
) => ReturnOf<D> | Promise<ReturnOf<D>>

/** The handler of a source or of a reduction. */
export interface PipelineHandler<D extends TaskDefinition, R extends Resources, Run> extends Handler<D, R> {
  readonly pipeline: { readonly kind: 'source' | 'reduce'; readonly run: Run }
}

/**
 * Defines the handler of a source. Pass the `import.meta.url` of the module that exports it.
 *
 * @example
 * export default defineSourceHandler(walk, import.meta.url, async function* ({ directory }) {
 *   for await (const path of filesBelow(directory)) yield { path }
 * })
 * @throws BullpenError `invalid_handler` if an argument is invalid.
 */
export function defineSourceHandler<D extends SourceDefinition, R extends Resources = object>(
  source: D,
  module: string,
  run: SourceFunction<D, R>,
): PipelineHandler<D, R, SourceFunction<D, R>> {
  return pipelineHandler('source', source, module, run)
}

/** Defines the handler of a reduction. @throws BullpenError `invalid_handler` if an argument is invalid. */
export function defineReduceHandler<D extends ReducerDefinition, R extends Resources = object>(
  reducer: D,
  module: string,
  run: ReducerFunction<D, R>,
): PipelineHandler<D, R, ReducerFunction<D, R>> {
  return pipelineHandler('reduce', reducer, module, run)
}

function pipelineHandler<D extends TaskDefinition, R extends Resources, Run extends (...args: never[]) => unknown>(
  kind: 'source' | 'reduce',
  task: D,
  module: string,
  run: Run,
): PipelineHandler<D, R, Run> {
  // The worker calls `run` itself, so that it can take the items one by one.
  const handler = defineHandler<D, R>(task, module, run as unknown as Handler<D, R>['handle'])
  return Object.freeze({ ...handler, pipeline: Object.freeze({ kind, run }) })
}

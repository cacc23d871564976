// Defines pipelines: a source and typed stages, each of which takes what the previous one returns.
import type { z } from 'zod'
import { suggestion } from '../definition/nearest.ts'
import type { InputOf } from '../definition/task-definition.ts'
import { BullpenError } from '../errors/errors.ts'
import { type FleetPipeline, fleetPipeline } from './fleet-pipeline.ts'
import { described, EXPECTED_ITERABLE, isIterable } from './iterable.ts'
import {
  type Collected,
  type FoldFunction,
  type MapFunction,
  type MapOptions,
  PIPELINE_ON_ERROR,
  type PipelineDefinition,
  type PipelineOnError,
  type PipelineOptions,
  type ReduceFunction,
  type Source,
  type SourceStage,
  type Stage,
} from './pipeline-definition.ts'
import type { SourceDefinition } from './stage-definitions.ts'

/** What a run returns: the output, and the errors of failed items if the pipeline collects them. */
type RunResult<OnError extends PipelineOnError, Output> = OnError extends 'collect' ? Collected<Output> : Output

/** What reaches the next stage: whatever the function returns, except undefined. */
// biome-ignore lint/suspicious/noConfusingVoidType: the output of a function without a return type.
type Passed<Output> = Exclude<Output, undefined | void>

/**
 * A pipeline to which stages can be added. Each method returns a new pipeline. A run returns an array of the results, unless the
 * pipeline ends with `reduce` or `fold`.
 */
export interface Pipeline<Input, Item, OnError extends PipelineOnError = 'cancel'>
  extends PipelineDefinition<Input, RunResult<OnError, Item[]>> {
  /** Calls the function for each item, and passes on what it returns. An item for which it returns undefined is dropped. */
  map<Output>(run: MapFunction<Item, Output>, options?: MapOptions): Pipeline<Input, Passed<Output>, OnError>
  /** Calls the function for each item, and passes on each element of the arrays that it returns: `map`, followed by `flat`. */
  flatMap<Element>(
    run: MapFunction<Item, readonly Element[] | undefined>,
    options?: MapOptions,
  ): Pipeline<Input, Element, OnError>
  /** Passes on arrays of `size` items. The last array can be shorter, but is never empty. */
  batch(size: number): Pipeline<Input, Item[], OnError>
  /** Passes on each element of the arrays that it receives. */
  flat<Element>(this: Pipeline<Input, readonly Element[], OnError>): Pipeline<Input, Element, OnError>
  /** Passes on the first `count` items, and then stops all stages before it: their signal aborts, and the source is closed. */
  take(count: number): Pipeline<Input, Item, OnError>
  /** Ends the pipeline with a function of all results, which are kept in memory until then. */
  reduce<Output>(run: ReduceFunction<Item, Output>): PipelineDefinition<Input, RunResult<OnError, Awaited<Output>>>
  /**
   * Ends the pipeline with a function that combines a state with one result at a time, so that only the state is kept. Every run
   * begins with a copy of `initial`.
   */
  fold<State>(run: FoldFunction<State, Item>, initial: State): PipelineDefinition<Input, RunResult<OnError, State>>
}

export interface PipelineStart<OnError extends PipelineOnError = 'cancel'> {
  /**
   * Begins with a task that yields the items, the result of `defineSource`. All stages are then tasks, which run on any worker: pass the
   * pipeline and its tasks to `defineCatalogue`, and start it with a client. `runPipeline` runs the same pipeline within one process.
   */
  source<S extends SourceDefinition>(source: S): FleetPipeline<InputOf<S>, z.output<S['item']>, OnError>
  /**
   * Sets where the items come from: an iterable, or a function that returns one for the input of a run. An iterable that can be
   * iterated only once, such as a generator object, makes a pipeline that can be run only once.
   */
  source<Item, Input = unknown>(from: Source<Input, Item>): Pipeline<Input, Item, OnError>
}

const NAME = /^(?=.{1,80}$)[a-z][a-z0-9-]*(\.[a-z][a-z0-9-]*)*$/
const NAME_RULE =
  'expected words of lower-case letters, digits and hyphens, each starting with a letter and joined by dots, at most 80 characters'
const MAX_KEPT_ERRORS = 10_000
const SETTINGS: readonly string[] = ['onError', 'maxErrors', 'ordered'] satisfies readonly (keyof PipelineOptions)[]

/**
 * Defines a pipeline. This function is pure: it does not start or register anything.
 *
 * @example
 * const squares = definePipeline('squares')
 *   .source([2, 3])
 *   .map((n) => n * n)
 * @throws BullpenError `invalid_definition`; the same applies to the methods of the pipeline.
 */
export function definePipeline<OnError extends PipelineOnError = 'cancel'>(
  name: string,
  options: PipelineOptions<OnError> = {},
): PipelineStart<OnError> {
  const { onError = 'cancel', maxErrors = 1_000, ordered = true } = options
  const fail = failing(name)
  if (typeof name !== 'string' || !NAME.test(name)) fail(`invalid name; ${NAME_RULE}`)
  const unknown = Object.keys(options).find((setting) => !SETTINGS.includes(setting))
  if (unknown !== undefined) fail(`${unknown} is not a setting of a pipeline${suggestion(unknown, SETTINGS)}`)
  if (!PIPELINE_ON_ERROR.includes(onError)) {
    fail(`onError is ${JSON.stringify(onError)}; expected 'cancel' or 'collect'`)
  }
  if (!isCount(maxErrors, 1) || maxErrors > MAX_KEPT_ERRORS) {
    fail(`maxErrors is ${JSON.stringify(maxErrors)}; expected an integer from 1 to 10,000`)
  }
  if (typeof ordered !== 'boolean') fail(`ordered is ${JSON.stringify(ordered)}; expected true or false`)
  const start = {
    source<Item, Input>(from: Source<Input, Item> | SourceDefinition) {
      if (isSourceDefinition(from))
        return fleetPipeline<SourceDefinition, PipelineOnError>(name, { onError, maxErrors, ordered }, from)
      if (typeof from !== 'function' && !isIterable(from)) {
        fail(`source is ${described(from)}; ${EXPECTED_ITERABLE}, or a function that returns one`)
      }
      const stage: SourceStage = { kind: 'source', name: nameOf(from, 'source'), from: from as Source<never, unknown> }
      return pipeline<Input, Item, OnError>({
        kind: 'pipeline',
        name,
        onError,
        maxErrors,
        ordered,
        stages: Object.freeze([Object.freeze(stage)] as const),
      })
    },
  }
  // The overloads define which source makes which pipeline.
  return Object.freeze(start) as PipelineStart<OnError>
}

function isSourceDefinition(from: unknown): from is SourceDefinition {
  return typeof from === 'object' && from !== null && 'item' in from && 'queue' in from
}

/** Returns the pipeline with the methods that add stages to it. */
function pipeline<Input, Item, OnError extends PipelineOnError>(
  definition: PipelineDefinition,
): Pipeline<Input, Item, OnError> {
  const fail = failing(definition.name)
  const followedBy = (stage: Stage): PipelineDefinition => ({
    ...definition,
    stages: Object.freeze([...definition.stages, Object.freeze(stage)] as const),
  })
  const ended = <Result>(stage: Stage) => Object.freeze(followedBy(stage)) as PipelineDefinition<Input, Result>
  return Object.freeze({
    ...(definition as PipelineDefinition<Input, RunResult<OnError, Item[]>>),

    map<Output>(run: MapFunction<Item, Output>, { concurrency = 1, buffer = concurrency }: MapOptions = {}) {
      checkFunction('map', run, fail)
      if (concurrency !== Number.POSITIVE_INFINITY && !isCount(concurrency, 1)) {
        fail(`concurrency is ${String(concurrency)}; expected a positive integer, or Infinity`)
      }
      if (buffer !== Number.POSITIVE_INFINITY && !isCount(buffer, 0)) {
        fail(`buffer is ${String(buffer)}; expected 0, a positive integer, or Infinity`)
      }
      return pipeline<Input, Passed<Output>, OnError>(
        followedBy({ kind: 'map', name: nameOf(run, 'map'), run, concurrency, buffer }),
      )
    },

    flatMap<Element>(run: MapFunction<Item, readonly Element[] | undefined>, options?: MapOptions) {
      return this.map(run, options).flat<Element>()
    },

    batch(size: number) {
      if (!isCount(size, 1)) fail(`the size of a batch is ${String(size)}; expected a positive integer`)
      return pipeline<Input, Item[], OnError>(followedBy({ kind: 'batch', name: 'batch', size }))
    },

    flat<Element>() {
      return pipeline<Input, Element, OnError>(followedBy({ kind: 'flat', name: 'flat' }))
    },

    take(count: number) {
      if (!isCount(count, 1)) fail(`the count of take is ${String(count)}; expected a positive integer`)
      return pipeline<Input, Item, OnError>(followedBy({ kind: 'take', name: 'take', count }))
    },

    reduce<Output>(run: ReduceFunction<Item, Output>) {
      checkFunction('reduce', run, fail)
      return ended<RunResult<OnError, Awaited<Output>>>({ kind: 'reduce', name: nameOf(run, 'reduce'), run })
    },

    fold<State>(run: FoldFunction<State, Item>, initial: State) {
      checkFunction('fold', run, fail)
      try {
        structuredClone(initial)
      } catch (cause) {
        fail('the initial state of fold cannot be copied with structuredClone', cause)
      }
      return ended<RunResult<OnError, State>>({ kind: 'fold', name: nameOf(run, 'fold'), run, initial })
    },
  })
}

type Fail = (problem: string, cause?: unknown) => never

const failing =
  (name: string): Fail =>
  (problem, cause) => {
    throw new BullpenError('invalid_definition', `pipeline ${JSON.stringify(name)}: ${problem}`, { cause })
  }

function checkFunction(method: string, run: unknown, fail: Fail): void {
  if (typeof run !== 'function') fail(`${method} was called with ${String(run)}; expected a function`)
}

const nameOf = (value: unknown, otherwise: string): string =>
  typeof value === 'function' && value.name !== '' ? value.name : otherwise

const isCount = (value: unknown, least: number): boolean => Number.isSafeInteger(value) && Number(value) >= least

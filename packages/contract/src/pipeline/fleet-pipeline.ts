// Defines pipelines that run across the fleet: each stage is a task, which any worker runs.

import type { z } from 'zod'
import type { InputOf, OutputOf, TaskDefinition } from '../definition/task-definition.ts'
import { BullpenError } from '../errors/errors.ts'
import { sourceWindow } from './pipeline-sections.ts'
import type { RunOnError } from './run-states.ts'
import type { ReducerDefinition, SourceDefinition } from './stage-definitions.ts'

export interface FleetPipelineOptions {
  /**
   * What happens when an item fails: with 'cancel', the run stops and fails. With 'collect', the run keeps the error, and the other
   * items continue. Defaults to 'cancel'.
   */
  readonly onError?: RunOnError
  /** How many collected errors are kept, from 1 to 10,000. Further errors are only counted. Defaults to 1,000. */
  readonly maxErrors?: number
  /**
   * Whether the results are in the order of the source. If false, they are in the order in which they arrive. Defaults to true.
   */
  readonly ordered?: boolean
}

export interface FleetMapOptions {
  /** The maximum number of the stage's tasks that have not ended, on all workers together. From 1 to 1,000. Defaults to 1. */
  readonly concurrency?: number
  /**
   * How many outputs may wait for the next stage in addition to `concurrency`: the stage starts a task only if its tasks and its waiting
   * outputs are fewer than `concurrency + buffer`, plus room for a batch that follows. From 0 to 10,000. Defaults to `concurrency`.
   */
  readonly buffer?: number
}

export interface FleetStage {
  readonly task: TaskDefinition
  readonly concurrency: number
  readonly buffer: number
  /** How many items each of the stage's tasks gets at most, as an array. Undefined if a task gets a single item. */
  readonly batch: number | undefined
}

/**
 * A pipeline that a client can start, and that `runPipeline` can run within one process. The type parameters are its input, its output,
 * and whether it collects errors.
 */
export interface FleetPipelineDefinition<Input = never, Output = unknown, OnError extends RunOnError = RunOnError> {
  readonly kind: 'pipeline'
  readonly name: string
  readonly onError: OnError
  readonly maxErrors: number
  readonly ordered: boolean
  readonly source: SourceDefinition
  readonly stages: readonly FleetStage[]
  /** After how many results a run stops. Undefined if it takes all of them. */
  readonly takes: number | undefined
  /** How many items each result contains at most, as an array. Undefined if the outputs of the last stage are the results. */
  readonly resultBatch: number | undefined
  readonly reduction: { readonly task: ReducerDefinition; readonly maxBytes: number } | undefined
  /** Exists only for the compiler. */
  readonly types?: { readonly input: (input: Input) => void; readonly output: Output }
}

/** A pipeline to which stages can be added. Each method returns a new pipeline. */
export interface FleetPipeline<Input, Item, OnError extends RunOnError = RunOnError>
  extends FleetPipelineDefinition<Input, undefined, OnError> {
  /**
   * Adds a stage that runs a task for each item. The task's output is the next stage's input. If a task has no output, its item is dropped.
   * Throws `invalid_definition` if an option is out of range.
   */
  map<D extends TaskDefinition>(
    task: Item extends InputOf<D> ? D : never,
    options?: FleetMapOptions,
  ): FleetPipeline<Input, Passed<OutputOf<D>>, OnError>
  /**
   * Passes on arrays of `size` items. The last array can be shorter, but is never empty. The size is from 1 to 10,000. The items in
   * batches count towards the 100,000 items that a run can have at most between its source and its results. Throws `invalid_definition` if
   * the size is out of range, or if no `map` is between two batches.
   */
  batch(size: number): FleetPipeline<Input, Item[], OnError>
  /** Stops the run when it has this many results: the tasks of the source and of all stages are then cancelled. */
  take(count: number): FleetPipeline<Input, Item, OnError>
  /**
   * Ends the pipeline with a task that gets all results. Redis keeps the results until this task has run. A run fails if its results take
   * more than `maxBytes` of JSON, which is from 1 byte to 256 MiB and defaults to 16 MiB.
   */
  reduce<D extends ReducerDefinition>(
    task: Item extends z.input<D['item']> ? D : never,
    options?: { readonly maxBytes?: number },
  ): FleetPipelineDefinition<Input, OutputOf<D>, OnError>
}

/** What reaches the next stage. */
// biome-ignore lint/suspicious/noConfusingVoidType: the output of a task without an output schema.
type Passed<Output> = Exclude<Output, undefined | void>

export const MAX_PIPELINE_STAGES = 16
const MAX_CONCURRENCY = 1_000
const MAX_BUFFER = 10_000
const MAX_BATCH = 10_000
const MAX_WINDOW = 100_000
const SMALLER = 'lower the concurrency or the buffer of a stage, or the size of a batch'
const MAX_ERRORS = 10_000
const DEFAULT_RESULT_BYTES = 16 * 2 ** 20
const MAX_RESULT_BYTES = 256 * 2 ** 20

/** Returns a pipeline that begins with this source. @throws BullpenError `invalid_definition`. */
export function fleetPipeline<S extends SourceDefinition, OnError extends RunOnError>(
  name: string,
  { onError, maxErrors = 1_000, ordered = true }: FleetPipelineOptions & { readonly onError: OnError },
  source: S,
): FleetPipeline<InputOf<S>, z.output<S['item']>, OnError> {
  const fail = failing(name)
  checkCount('maxErrors', maxErrors, 1, MAX_ERRORS, fail)
  return extended<InputOf<S>, z.output<S['item']>, OnError>({
    ...{
      kind: 'pipeline',
      name,
      onError,
      maxErrors,
      ordered,
      source,
      stages: [],
      takes: undefined,
      resultBatch: undefined,
      reduction: undefined,
    },
  })
}

function extended<Input, Item, OnError extends RunOnError>(
  definition: FleetPipelineDefinition<never, unknown, OnError>,
): FleetPipeline<Input, Item, OnError> {
  const { name, stages, takes, resultBatch } = definition
  const fail = failing(name)
  const refuseAfterTake = (): void => {
    if (takes !== undefined) fail('take must be followed by reduce, or be the last stage')
  }
  const withinWindow = (next: typeof definition): typeof definition => {
    const window = sourceWindow(next)
    if (window <= MAX_WINDOW) return next
    return fail(`its stages can hold ${window} items; expected at most ${MAX_WINDOW}, so ${SMALLER}`)
  }
  return Object.freeze({
    ...(definition as FleetPipelineDefinition<Input, undefined, OnError>),

    map<D extends TaskDefinition>(task: unknown, { concurrency = 1, buffer = concurrency }: FleetMapOptions = {}) {
      if (!isTask(task)) fail('map expects a task definition, because the source of this pipeline is a task')
      refuseAfterTake()
      checkCount('concurrency', concurrency, 1, MAX_CONCURRENCY, fail)
      checkCount('buffer', buffer, 0, MAX_BUFFER, fail)
      const stage: FleetStage = { task: task as TaskDefinition, concurrency, buffer, batch: resultBatch }
      const added = [...stages, Object.freeze(stage)]
      if (added.length > MAX_PIPELINE_STAGES) fail(`a pipeline may have at most ${MAX_PIPELINE_STAGES} stages`)
      const next = { ...definition, stages: Object.freeze(added), resultBatch: undefined }
      return extended<Input, Passed<OutputOf<D>>, OnError>(withinWindow(next))
    },

    batch(size: number) {
      checkCount('the size of a batch', size, 1, MAX_BATCH, fail)
      refuseAfterTake()
      if (resultBatch !== undefined) fail('batch was called twice in a row; put a map between two batches')
      return extended<Input, Item[], OnError>(withinWindow({ ...definition, resultBatch: size }))
    },

    take(count: number) {
      checkCount('the count of take', count, 1, Number.MAX_SAFE_INTEGER, fail)
      if (takes !== undefined) fail('take was called twice; call it at most once')
      return extended<Input, Item, OnError>({ ...definition, takes: count })
    },

    reduce<D extends ReducerDefinition>(task: unknown, { maxBytes = DEFAULT_RESULT_BYTES } = {}) {
      if (!isTask(task) || !('item' in task)) fail('reduce expects the result of defineReducer')
      checkCount('maxBytes', maxBytes, 1, MAX_RESULT_BYTES, fail)
      const reduction = Object.freeze({ task: task as ReducerDefinition, maxBytes })
      return Object.freeze({ ...definition, reduction }) as FleetPipelineDefinition<Input, OutputOf<D>, OnError>
    },
  })
}

/** Returns the tasks of a pipeline, in the order of its stages. */
export function tasksOf({ source, stages, reduction }: FleetPipelineDefinition): readonly TaskDefinition[] {
  return [source, ...stages.map(({ task }) => task), ...(reduction === undefined ? [] : [reduction.task])]
}

type Fail = (problem: string) => never

const failing =
  (name: string): Fail =>
  (problem) => {
    throw new BullpenError('invalid_definition', `pipeline ${JSON.stringify(name)}: ${problem}`)
  }

function checkCount(what: string, value: unknown, least: number, most: number, fail: Fail): void {
  if (Number.isInteger(value) && Number(value) >= least && Number(value) <= most) return
  fail(`${what} is ${JSON.stringify(value)}; expected a whole number from ${least} to ${most}`)
}

function isTask(value: unknown): value is TaskDefinition {
  return typeof value === 'object' && value !== null && 'queue' in value && 'input' in value
}

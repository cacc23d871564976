// Defines what a pipeline consists of: a source, and the stages that its items pass through.
import type { PipelineError } from './pipeline-error.ts'

export type AnyIterable<T> = Iterable<T> | AsyncIterable<T>

/** What the functions of a pipeline receive in addition to the item. */
export interface StageContext {
  /**
   * Aborts when the results of this stage are no longer needed: the run has failed or was cancelled, or a later `take` has all of its
   * items. Pass the signal to whatever the function waits for, because a run ends only when all of its functions have returned.
   */
  readonly signal: AbortSignal
  /** The name of the stage. */
  readonly stage: string
}

/** Where the items come from: an iterable, or a function (for example a generator function) that returns one for the run's input. */
export type Source<Input, Item> =
  | AnyIterable<Item>
  | ((input: Input, context: StageContext) => AnyIterable<Item> | PromiseLike<AnyIterable<Item>>)

/** Returns the item for the next stage. If the function returns undefined, the item is dropped. */
export type MapFunction<Item, Output> = (item: Item, context: StageContext) => Output | PromiseLike<Output>

export type ReduceFunction<Item, Output> = (
  items: readonly Item[],
  context: StageContext,
) => Output | PromiseLike<Output>

export type FoldFunction<State, Item> = (state: State, item: Item, context: StageContext) => State | PromiseLike<State>

export interface SourceStage {
  readonly kind: 'source'
  readonly name: string
  readonly from: Source<never, unknown>
}

export interface MapStage {
  readonly kind: 'map'
  readonly name: string
  readonly run: MapFunction<never, unknown>
  readonly concurrency: number
  readonly buffer: number
}

/** A stage after the source. A stage that calls a function has the function's name. */
export type Stage =
  | MapStage
  | { readonly kind: 'batch'; readonly name: string; readonly size: number }
  | { readonly kind: 'flat'; readonly name: string }
  | { readonly kind: 'take'; readonly name: string; readonly count: number }
  | ReduceStage
  | FoldStage

export interface ReduceStage {
  readonly kind: 'reduce'
  readonly name: string
  readonly run: ReduceFunction<never, unknown>
}

export interface FoldStage {
  readonly kind: 'fold'
  readonly name: string
  readonly run: (state: never, item: never, context: StageContext) => unknown
  /** Every run starts with a copy of this value. */
  readonly initial: unknown
}

/**
 * What happens to the other items when one fails. With `cancel`, the first error cancels the rest of the run, which fails. With
 * `collect`, the other items continue, and the run returns the errors with its output.
 */
export const PIPELINE_ON_ERROR = ['cancel', 'collect'] as const

export type PipelineOnError = (typeof PIPELINE_ON_ERROR)[number]

export interface PipelineOptions<OnError extends PipelineOnError = PipelineOnError> {
  /** Defaults to `cancel`. */
  readonly onError?: OnError
  /** How many errors are kept with `onError: 'collect'`, from 1 to 10,000. Further errors are only counted. Defaults to 1,000. */
  readonly maxErrors?: number
  /**
   * Whether each stage passes its results on in the order of its items. If false, it passes them on as soon as they are available, which
   * is faster if items take different lengths of time. Defaults to true.
   */
  readonly ordered?: boolean
}

export interface MapOptions {
  /** How many items the stage works on at a time: a positive integer, or Infinity. Defaults to 1. */
  readonly concurrency?: number
  /**
   * How many results may wait for the next stage in addition to `concurrency`: the stage starts an item only if its running items and its
   * waiting results are fewer than `concurrency + buffer`. 0, a positive integer, or Infinity. Defaults to `concurrency`.
   */
  readonly buffer?: number
}

/**
 * A pipeline that can be run. The definition is immutable and holds no state, so that it can be run any number of times.
 * `Result` is what a run returns.
 */
export interface PipelineDefinition<Input = never, Result = unknown> {
  readonly kind: 'pipeline'
  readonly name: string
  readonly stages: readonly [SourceStage, ...Stage[]]
  readonly onError: PipelineOnError
  readonly maxErrors: number
  readonly ordered: boolean
  /** Only for the compiler; never set. */
  readonly '~types'?: { readonly input: (input: Input) => void; readonly result: Result }
}

/** What a run with `onError: 'collect'` returns. */
export interface Collected<Output> {
  readonly output: Output
  /** The first `maxErrors` errors of items, in the order in which they occurred. These items are missing from the output. */
  readonly errors: readonly PipelineError[]
  /** How many items failed, including those whose errors were not kept. */
  readonly errorCount: number
}

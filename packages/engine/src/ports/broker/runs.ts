// Defines what a broker stores of a pipeline run.
import type {
  MemberEnd,
  ReductionState,
  RunId,
  RunOnError,
  RunPhase,
  RunResult,
  RunStopReason,
  SourceState,
} from '@bullpen/contract'
import type { NewTask } from './new-task.ts'

/**
 * Identifies a run among all runs that have had its id. Once a run has expired or was deleted, its id can be used again. What
 * is left of the earlier run, such as a task that is dead, an entry of an outbox or a process that was frozen, then has no
 * effect on the later one.
 */
export interface RunRef {
  readonly id: RunId
  /** Eight random characters, which every start of a run gets. */
  readonly incarnation: string
}

/** The settings of a run, which do not change after its start. */
export interface RunSettings extends RunRef {
  /** The name of the pipeline's definition. */
  readonly pipeline: string
  readonly by: string
  readonly onError: RunOnError
  /** How many collected errors are kept. Further errors are counted. */
  readonly maxErrors: number
  /** Whether results leave in the order in which the source has yielded their items. */
  readonly ordered: boolean
  /** After how many results the run stops. Undefined if it takes all of them. */
  readonly take: number | undefined
  /** How many outputs of the last stage each result contains at most, as an array. Undefined if each of them is a result. */
  readonly resultBatch?: number | undefined
  readonly source: { readonly task: string; readonly queue: string }
  /** The stages between the source and the results, at least one. */
  readonly stages: readonly RunStage[]
  readonly reduce: RunReduce | undefined
  /** The time limit from the run's start to its end, in ms. */
  readonly totalMs: number
  /** How long the run is kept after it has ended, in ms. */
  readonly keepMs: number
}

/** A run to start. */
export interface NewRun {
  readonly settings: RunSettings
  /**
   * The tasks from which those of the run are made: that of the source, those of the stages in their order, and that of the reduction, if
   * there is one. The ids and times are ignored. The source and the reduction have the input that they are given here.
   */
  readonly tasks: readonly NewTask[]
}

export interface StartedRun {
  readonly run: Run
  /** Whether this call has started the run. */
  readonly isNew: boolean
}

export interface RunStage {
  readonly task: string
  readonly queue: string
  /** The maximum number of the stage's tasks that have not ended. */
  readonly concurrency: number
  /** How many of the stage's outputs may wait for the next stage, beyond those for which `concurrency` leaves room. */
  readonly buffer: number
  /** How many items each of the stage's tasks gets at most, as an array. Undefined if a task gets a single item. */
  readonly batch?: number | undefined
}

export interface RunReduce {
  readonly task: string
  readonly queue: string
  /** The largest total size of the results as JSON, in bytes of UTF-8. */
  readonly maxBytes: number
}

/** A run's current state. Times are in ms since 1970, on the store's clock. */
export interface Run {
  readonly settings: RunSettings
  readonly state: RunPhase
  readonly createdAt: number
  readonly timeoutAt: number
  readonly source: RunSource
  /** The counts of each stage, in the order of `settings.stages`. */
  readonly stages: readonly StageCounts[]
  /** The counts of each section: see `sectionsOf` of the contract. */
  readonly sections: readonly SectionCounts[]
  /** How many results there are. */
  readonly results: number
  /** The total size of the results that are kept for the last stage, in bytes. */
  readonly resultBytes: number
  /** How many items have failed. */
  readonly errors: number
  readonly firstError: RunError | undefined
  readonly stopped: RunStop | undefined
  readonly reduce: 'none' | ReductionState
  /** What the reduction has returned, as it is stored, or ''. */
  readonly output: string
  readonly ended: { readonly at: number; readonly result: RunResult } | undefined
}

export interface RunSource {
  readonly state: SourceState
  /** The number of the source's current or last task, starting from 1. */
  readonly segment: number
  /** The highest fencing token of an attempt of this segment that has emitted items, or 0. */
  readonly fencingToken: number
  /** How many items the source has emitted. */
  readonly emitted: number
  /**
   * Identifies the emitted items, so that a source that is run again can be compared. With cursors, identifies the first cursor. Empty at
   * first.
   */
  readonly digest: string
  /** The cursor of the last emitted item, as JSON. Empty if that item has none. */
  readonly cursor: string
  /** Whether the source has yielded its last item. */
  readonly isExhausted: boolean
  /** Whether the source's task waits until fewer items are in the pipeline. */
  readonly isWaiting: boolean
}

export interface SectionCounts {
  /** How many items have entered the section. Those of the first section are what the source has emitted: items, or batches. */
  readonly entered: number
  /** How many items have left the section: for a batch, as results, dropped, or with an error that was collected. */
  readonly left: number
  /** How many of the items that have left the section wait for a batch. */
  readonly batching: number
}

export interface StageCounts {
  /** How many items wait for the stage. Batches that the source has formed count once. */
  readonly waiting: number
  /** How many tasks of the stage have not ended. */
  readonly running: number
  readonly completed: number
  /** How many of the completed tasks had no output, so that their items went no further. */
  readonly dropped: number
  readonly failed: number
}

/**
 * An item that has failed. Stages are numbered from 1, and items by their position in the source's order, from 0. Behind a batch, the
 * position is the number of the batch, from 0.
 */
export interface RunError {
  readonly stage: number
  readonly position: number
  readonly end: Exclude<MemberEnd, 'completed'>
}

export interface RunStop {
  readonly at: number
  readonly reason: RunStopReason
  readonly by: string
}

/** A page of items that an attempt of a source emits. */
export interface Emission {
  readonly segment: number
  readonly fencingToken: number
  /** The position of the first item. Values whose positions were emitted before are ignored. */
  readonly from: number
  /** Items, or batches of items. All batches are full, except the source's last one. */
  readonly values: readonly string[]
  /** How many items the values contain. */
  readonly count: number
  /** The digest and the cursor after the last value. */
  readonly digest: string
  readonly cursor: string
  readonly isLast: boolean
}

/** Where a source stands. `free` is how many values it may emit now. */
export interface SourcePosition {
  readonly emitted: number
  /** How many items the source has to put into each value, as an array, or 0 if each value is an item. */
  readonly batch: number
  readonly free: number
  readonly digest: string
  readonly cursor: string
}

/**
 * Stores the runs of pipelines. Every call that changes a run is atomic and idempotent.
 *
 * A task of a run is stored in the run first, and enqueued in its queue directly afterwards, by this process or, if this process dies, by
 * another one within seconds. The run learns of each task's end through the outbox of the task's queue, so its numbers lag behind by a few
 * milliseconds.
 *
 * @throws BullpenError `run_not_found` if the run does not exist or is no longer kept, or `redis_unavailable`.
 */
export interface Runs {
  /**
   * Starts a run. If a run with this id exists and was started with the same pipeline, input and time limits, leaves it unchanged. Checks
   * the limits of the queues only before the start, so concurrent calls can exceed them together. The run's tasks are never refused
   * afterwards. Takes three round trips, and two more for each queue.
   *
   * @throws BullpenError `run_id_taken` if a run with this id was started with another pipeline, input or time limit, or an error with
   * which `Broker.enqueue` refuses a task.
   */
  start(run: NewRun): Promise<StartedRun>
  /**
   * Cancels a run: no further task of it starts, and running ones receive an abort signal. The call does not wait until they have ended.
   * A run that is stopping or has ended stays as it is.
   */
  cancel(id: RunId, by: string): Promise<Run>
  /**
   * Deletes a run that has ended.
   *
   * @throws BullpenError `run_not_ended`.
   */
  delete(id: RunId): Promise<void>
  /** Returns a run, or undefined. Takes one round trip. */
  find(id: RunId): Promise<Run | undefined>
  /**
   * Resolves with the run once it has ended, or with its current state when the signal aborts. Resolves with undefined if the run does
   * not exist. Waiting does not poll.
   */
  waitUntilEnded(id: RunId, signal: AbortSignal): Promise<Run | undefined>
  /** Returns what the reduction has returned, or undefined. */
  output(id: RunId): Promise<unknown>
  /** Returns the collected errors, beginning with the one at `from`. `limit` is a number from 1 to 200. */
  errors(id: RunId, from: number, limit: number): Promise<readonly RunError[]>
  /**
   * Lets an attempt of the source emit items. The values are what {@link Runs.encode} has returned. `fenced` means that another attempt
   * has replaced this one, and `stopped` that the source is not needed any more, or that the run no longer exists.
   */
  emit(run: RunRef, emission: Emission): Promise<SourcePosition | 'stopped' | 'fenced'>
  /** Returns an item as it is stored. */
  encode(item: unknown): string
  /** Returns an item that {@link Runs.encode} has returned as text. */
  decode(value: string): unknown
  /** Resolves when the source may emit items again, and sometimes earlier, or when the signal aborts. */
  untilCredits(run: RunRef, signal: AbortSignal): Promise<void>
  /** Returns runs that have not ended, the oldest first. `limit` is a number from 1 to 200. */
  list(limit: number): Promise<readonly Run[]>
  /** Returns the number of runs that have not ended. A run may be counted for some seconds after its end. Takes one round trip. */
  count(): Promise<number>
  /** Returns results for the reduction, beginning with the one at `from`, at most `limit`. */
  results(run: RunRef, from: number, limit: number): Promise<readonly unknown[]>
}

/** What is needed to run the sources and reductions of pipelines. */
export interface RunAccess extends Pick<Runs, 'emit' | 'encode' | 'decode' | 'untilCredits' | 'results'> {
  /**
   * Whether a source takes no slot from the stages, so that it may wait for them as long as it takes. Defaults to false: a source that
   * waits then ends its task, and another task goes on later.
   */
  readonly sourceMayWait?: boolean
}

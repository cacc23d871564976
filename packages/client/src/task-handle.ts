// Defines what a client returns for a task: the task with its definition's types, and a handle for waiting for the task.
import type {
  Cancelled,
  Duration,
  EnqueueAction,
  EventGap,
  InputOf,
  Limit,
  OutputOf,
  StreamedEvent,
  TaskDefinition,
  TaskSnapshot,
  TaskStatus,
  TaskView,
} from '@bullpen/contract'

export interface Abortable {
  /** Aborts the call, which then rejects with the signal's reason. */
  readonly signal?: AbortSignal
}

export interface WaitOptions extends Abortable {
  /** How long to wait in total. Defaults to 'none', which means until the task ends. */
  readonly timeout?: Limit
}

export interface CancelOptions extends Abortable {
  /** How long to wait for a running task to end, at most '30s'. By default, the call does not wait. */
  readonly wait?: Duration
  /** The name of the person or program that cancels the task. It is stored with the cancelled task. */
  readonly by?: string
}

/** A task as the API returns it, with its definition's input and output types. Values are JSON, so a Date is a string. */
export type TaskOf<D extends TaskDefinition> = Omit<TaskView, 'task' | 'input' | 'output'> & {
  readonly task: D['name']
  readonly input: InputOf<D>
  readonly output?: OutputOf<D>
}

/** What {@link TaskHandle.events} yields. */
export type TaskStreamEvent = StreamedEvent | TaskSnapshot | EventGap

/** What an enqueue with `whenFull: 'drop'` returns if the queue was full. Nothing was stored. */
export interface DroppedTask {
  readonly action: 'dropped'
  readonly id?: undefined
}

/** A task that has been enqueued. To wait for a task if you have only its id, use the client's methods. */
export interface TaskHandle<D extends TaskDefinition = TaskDefinition> {
  readonly id: string
  /**
   * `created` if the call has stored the task, or `replaced` if it has also deleted the task that had the unique key. With
   * `existing` or `extended`, this handle is for the other task, which has the unique key. With `extended`, that task's start was
   * postponed.
   */
  readonly action: EnqueueAction
  /** The task's status when the call was made. Undefined if the task has been deleted but still has its unique key. */
  readonly status?: TaskStatus | undefined
  /**
   * When the task was expected to start when the call was made, such as '2030-01-31T09:00:00.000Z', rounded up to a second. Undefined
   * if no estimate was possible.
   */
  readonly expectedStartAt?: string | undefined
  /**
   * Resolves to the task's output once the task is completed.
   *
   * @throws TaskEndedError if the task ended without output, or ResultTimeoutError if `timeout` expires first.
   */
  result(options?: WaitOptions): Promise<OutputOf<D>>
  /** Resolves to the task once it is completed, dead, cancelled or expired. @throws ResultTimeoutError if `timeout` expires first. */
  waitUntilFinished(options?: WaitOptions): Promise<TaskOf<D>>
  /**
   * Streams what happens to the task, from its `enqueued` event until the task has ended. If that event is no longer kept, the
   * stream begins with a `snapshot` of the task. No event is missed between the enqueue and this call. If the connection is lost, the
   * client connects again and continues after the last event. If events in between are no longer kept, it yields a `gap` and a
   * `snapshot`.
   *
   * @throws ProblemError `no_events` if the task's definition turns its events off, or if the API has been unreachable for `retryFor`.
   */
  events(options?: Abortable): AsyncGenerator<TaskStreamEvent, void, void>
  /** Returns the task's current state. */
  describe(options?: Abortable): Promise<TaskOf<D>>
  /** Cancels the task. Idempotent. */
  cancel(options?: CancelOptions): Promise<Cancelled>
}

// Implements the client's methods that enqueue, look up, await and cancel tasks, on any transport.
import {
  type Cancelled,
  type InputOf,
  isFinal,
  milliseconds,
  type OutputOf,
  type ProducerOptions,
  type TaskDefinition,
  type TaskView,
  type WhenFull,
} from '@bullpen/contract'
import {
  type EnqueuedTask,
  ProblemError,
  QUEUE_FULL_RETRY_AFTER_MS,
  type TaskTransport,
} from '@bullpen/contract/internal'
import { assertDefinition, assertText } from '../arguments.ts'
import { type FollowedEvent, followStream } from '../events/followed-stream.ts'
import { checkedIdempotency, type IdempotencyOptions } from '../idempotency-key.ts'
import type { Repeat } from '../repetition.ts'
import { roomWaitMs, UNKNOWN_POLICY } from '../room-wait.ts'
import { TaskEndedError } from '../task-ended-error.ts'
import type {
  Abortable,
  CancelOptions,
  DroppedTask,
  TaskHandle,
  TaskOf,
  TaskStreamEvent,
  WaitOptions,
} from '../task-handle.ts'
import { pollUntil, pollUntilEnded } from './long-poll.ts'

export interface EnqueueOptions extends ProducerOptions, IdempotencyOptions, Abortable {}

export interface TaskCalls {
  /**
   * Enqueues a task and resolves once it is stored in Redis. The input is validated against the definition.
   *
   * If a call gets no response, or a response with the status 408, 502, 503, 504 or 520 to 524, the client repeats the call for up to
   * `retryFor`, except after `queue_draining`, `fleet_too_old` and `unsafe_redis`. A repeat never stores a second task, unless
   * `retryFor` is too long (see `ClientOptions`). If the call still fails, the error's `outcome` says whether the task may have been
   * stored.
   *
   * If the queue is full and its policy is to drop tasks, the call rejects with `queue_full`, unless the call itself has
   * `whenFull: 'drop'`.
   */
  enqueue<D extends TaskDefinition>(
    definition: D,
    input: InputOf<D>,
    options: EnqueueOptions & { readonly whenFull: 'drop' },
  ): Promise<TaskHandle<D> | DroppedTask>
  enqueue<D extends TaskDefinition>(definition: D, input: InputOf<D>, options?: EnqueueOptions): Promise<TaskHandle<D>>
  /**
   * Like {@link enqueue}, but for programs that do not have the definition. `input` must be JSON. Unless the call sets `whenFull`, it
   * may wait for room for up to 30 s, because the client does not know the queue's policy.
   */
  enqueueNamed(
    task: string,
    input: unknown,
    options: EnqueueOptions & { readonly whenFull: 'drop' },
  ): Promise<TaskHandle | DroppedTask>
  enqueueNamed(task: string, input: unknown, options?: EnqueueOptions): Promise<TaskHandle>
  /** Returns a task's current state. @throws TypeError if the task belongs to a different definition. */
  task<D extends TaskDefinition>(definition: D, id: string, options?: Abortable): Promise<TaskOf<D>>
  /** Returns a task's current state, whatever its definition. */
  task(id: string, options?: Abortable): Promise<TaskView>
  /**
   * Resolves to the task once it is completed, dead, cancelled or expired. Over HTTP, waiting takes one request every 30 s.
   *
   * @throws ResultTimeoutError if `timeout` expires first. The task itself is not affected.
   */
  waitUntilFinished<D extends TaskDefinition>(definition: D, id: string, options?: WaitOptions): Promise<TaskOf<D>>
  waitUntilFinished(id: string, options?: WaitOptions): Promise<TaskView>
  /** Waits like {@link waitUntilFinished} and returns the task's output. @throws TaskEndedError if the task did not complete. */
  result<D extends TaskDefinition>(definition: D, id: string, options?: WaitOptions): Promise<OutputOf<D>>
  /** Streams what happens to a task until it has ended, like {@link TaskHandle.events}. */
  taskEvents(id: string, options?: Abortable): AsyncGenerator<TaskStreamEvent, void, void>
  /**
   * Cancels a task. A task that has not started will never run. A long task that is running receives an abort signal. A short
   * task that is running continues. This call is idempotent.
   */
  cancel(id: string, options?: CancelOptions): Promise<Cancelled>
  /** Closes the transport's connections. Calls that are in progress may reject. A client over HTTP does not need to be closed. */
  close(): Promise<void>
}

/** `retryForMs` is how long `repeat` repeats a call. */
export function taskCalls(transport: TaskTransport, repeat: Repeat, retryForMs: number): TaskCalls {
  function lookUpEnded(id: string, options: WaitOptions): Promise<TaskView> {
    const poll = (waitMs: number) => transport.task(id, waitMs)
    return pollUntilEnded('task', id, { repeat, poll, isOver: ({ status }) => isFinal(status) }, options)
  }

  async function task(...args: TaskArguments<Abortable>): Promise<TaskView> {
    const { definition, id, options } = readArguments('task', args)
    return checked(definition, await repeat('look-up', transport.task(id, 0), options?.signal))
  }

  async function waitUntilFinished(...args: TaskArguments<WaitOptions>): Promise<TaskView> {
    const { definition, id, options = {} } = readArguments('waitUntilFinished', args)
    return checked(definition, await lookUpEnded(id, options))
  }

  async function output(id: string, options: WaitOptions = {}, definition?: TaskDefinition): Promise<unknown> {
    const view = checked(definition, await lookUpEnded(id, options))
    if (view.status !== 'completed') throw new TaskEndedError(view)
    return view.output
  }

  function handleOf(enqueued: EnqueuedTask): TaskHandle {
    const { id } = enqueued
    return {
      ...enqueued,
      result: (options) => output(id, options),
      waitUntilFinished: async (options) => (await client.waitUntilFinished(id, options)) as TaskOf<TaskDefinition>,
      describe: async (options) => (await client.task(id, options)) as TaskOf<TaskDefinition>,
      events: (options) => client.taskEvents(id, options),
      cancel: (options) => client.cancel(id, options),
    }
  }

  /** `queuePolicy` is the queue's own policy. */
  async function enqueue(
    task: string,
    input: unknown,
    options: EnqueueOptions,
    queuePolicy: WhenFull | typeof UNKNOWN_POLICY,
  ) {
    const { signal, idempotencyKey, idempotencyLife, ...call } = options
    const waitMs = roomWaitMs(call.whenFull ?? queuePolicy)
    const send = transport.enqueue(
      { task, input, ...call },
      { ...checkedIdempotency(idempotencyKey, idempotencyLife), waitMs, retryForMs },
    )
    const enqueued = await repeat('idempotent', send, signal, waitMs)
    if (enqueued.action !== 'dropped') return handleOf(enqueued)
    if (call.whenFull === 'drop') return enqueued
    const detail = `the queue of ${task} is full, and its policy is to drop tasks; to accept this, pass whenFull: 'drop'`
    throw new ProblemError({ code: 'queue_full', outcome: 'refused', detail, retryAfterMs: QUEUE_FULL_RETRY_AFTER_MS })
  }

  const client: TaskCalls = {
    // The task has this definition, so the handle has its types.
    enqueue: (async (definition: TaskDefinition, input: unknown, options: EnqueueOptions = {}) => {
      assertDefinition('enqueue', definition)
      return enqueue(definition.name, input, options, definition.queueSettings.whenFull)
    }) as TaskCalls['enqueue'],

    enqueueNamed: (async (task: string, input: unknown, options: EnqueueOptions = {}) => {
      assertText('enqueueNamed', 'the name of a task', task)
      return enqueue(task, input, options, UNKNOWN_POLICY)
    }) as TaskCalls['enqueueNamed'],

    task: task as TaskCalls['task'],

    waitUntilFinished: waitUntilFinished as TaskCalls['waitUntilFinished'],

    async result(definition, id, options) {
      assertText('result', 'a task id', id)
      return (await output(id, options, definition)) as OutputOf<typeof definition>
    },

    taskEvents(id, { signal } = {}) {
      assertText('taskEvents', 'a task id', id)
      // A snapshot of an ended task is the last event, because the event of the end is no longer kept.
      const isLast = (event: FollowedEvent): boolean =>
        event.type === 'snapshot' && 'task' in event ? isFinal(event.task.status) : event.type === 'ended'
      const events = followStream(transport.events(id), { signal, retryForMs, isLast })
      return events as AsyncGenerator<TaskStreamEvent, void, void>
    },

    async cancel(id, { wait, by, signal } = {}) {
      assertText('cancel', 'a task id', id)
      const forMs = wait === undefined ? 0 : milliseconds(wait, 'wait')
      const poll = (waitMs: number) => transport.cancel(id, { waitMs, by })
      const isOver = ({ outcome }: Cancelled): boolean => outcome !== 'cancelling'
      return pollUntil({ repeat, repeatability: 'idempotent', poll, isOver, forMs, signal })
    },

    close: () => transport.close(),
  }
  return client
}

/** The definition comes first and may be omitted. */
type TaskArguments<Options> =
  | readonly [definition: TaskDefinition, id: string, options?: Options | undefined]
  | readonly [id: string, options?: Options | undefined]

function readArguments<Options>(method: string, args: TaskArguments<Options>) {
  const [first, second, third] = args
  if (typeof first === 'string') return { definition: undefined, id: first, options: second as Options | undefined }
  assertText(method, 'a task id', second)
  return { definition: first, id: second, options: third }
}

/** Returns the task unchanged. @throws TypeError if the task belongs to a different definition. */
function checked(definition: TaskDefinition | undefined, view: TaskView): TaskView {
  if (definition !== undefined && view.task !== definition.name) {
    throw new TypeError(`task ${view.id} belongs to the definition ${view.task}, not to ${definition.name}`)
  }
  return view
}

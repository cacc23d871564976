// Defines what handlers receive and return, and how the compiler checks them against a catalogue.

import { BullpenError } from '../errors/errors.ts'
import type { CallOptions } from '../http/tasks/enqueue.ts'
import type { Enqueued } from '../task/enqueued.ts'
import type { GroupId } from '../task/group-id.ts'
import type { TaskId } from '../task/task-id.ts'
import type { TaskGroup } from '../task/task-record.ts'
import type { TraceContext } from '../task/trace-context.ts'
import type { Catalogue, DefinitionsOf } from './catalogue.ts'
import type { FollowUps } from './follow-ups/follow-up.ts'
import type { HandlerLog } from './log.ts'
import type { InputOf, ParsedInputOf, ReturnOf, TaskDefinition } from './task-definition.ts'
import type { Duration } from './units/duration.ts'

/** The resources that a worker opens for its handlers when it starts, such as database pools, HTTP clients and settings. */
export type Resources = object

export interface ChildOptions extends CallOptions, FollowUps {
  /**
   * A string of at most 256 characters that distinguishes children of the same definition, without control characters, unpaired surrogates
   * or characters that change the direction of text. Use the same child key in every attempt. Defaults to ''.
   */
  readonly childKey?: string
}

/**
 * The options of a follow-up or a compensation that a handler registers. `delay` starts when the task has ended, or when the compensation
 * before it has.
 */
export interface RegisteredOptions extends Omit<CallOptions, 'runAt' | 'unique' | 'durability'> {
  /**
   * Distinguishes registrations of the same definition: 1 to 64 of the characters `A-Z a-z 0-9 . _ : / @ -`. Use the same key in every
   * attempt. Defaults to ''.
   */
  readonly key?: string
}

/**
 * The values that a step may return. A step must not return undefined, because its result would be indistinguishable from that of
 * a step that has not run.
 */
export type StepResult = string | number | boolean | null | (object & { readonly then?: never })

/** The context that a handler receives: its input, its attempt, and the methods that act on the attempt. */
export interface TaskContext<D extends TaskDefinition = TaskDefinition, R extends Resources = object> {
  readonly id: TaskId
  readonly name: D['name']
  /** The input after the schema has applied its defaults and transforms. */
  readonly input: ParsedInputOf<D>
  /** The number of this attempt, starting from 1. Only attempts that count against the retry policy increase the number. */
  readonly attempt: number
  readonly meta: Readonly<Record<string, string>>
  readonly enqueuedAt: Date
  readonly startedAt: Date
  /** Identifies the request that enqueued the task. Every log line includes it. Undefined if the caller did not pass one. */
  readonly correlationId: string | undefined
  /**
   * The trace that the task belongs to: the W3C Trace Context of the request that enqueued the task or, for a child task or a follow-up,
   * its parent. Undefined if the caller did not pass one. Send its two fields as headers of your own requests.
   */
  readonly traceContext: TraceContext | undefined
  /**
   * The group whose member this task is, with the member's number, or the group whose end has enqueued this task, without a number.
   * Undefined if there is neither. To read the members' outputs, pass `group.id` to `client.group`.
   */
  readonly group: TaskGroup | { readonly id: GroupId; readonly member?: undefined } | undefined
  /** The id of the task or group whose end has enqueued this task. Undefined if the task is not a follow-up or a compensation. */
  readonly followUpOf: TaskId | GroupId | undefined
  /**
   * Aborts when this attempt must end: on a timeout, a cancellation or a drain. For a short task, this is {@link poolSignal}.
   */
  readonly signal: AbortSignal
  /** Aborts when the pool's drain reaches its deadline. All attempts of the pool share this signal. */
  readonly poolSignal: AbortSignal
  /** The attempt's log. Call `log.info('sending')`, or pass fields first: `log.info({ to }, 'sending')`. */
  readonly log: HandlerLog
  readonly resources: R
  /**
   * A number that starts at 1 and increases with every attempt of this task, including attempts that do not count against the
   * retry policy. A store that remembers the highest token it has seen can reject writes from an earlier attempt that is still
   * running.
   */
  readonly fencingToken: number
  /** Restarts the heartbeat timeout. Frequent calls are cheap. A short task has no heartbeat timeout. */
  heartbeat(): void
  /** Throws the signal's reason if this attempt must end. Otherwise the call counts as a heartbeat. */
  checkpoint(): void
  /**
   * Stores the task's progress, which the API shows: a fraction from 0 to 1 and an optional note. The call also counts as a
   * heartbeat. It takes one round trip to Redis and resolves when the progress is stored.
   */
  progress(fraction: number, note?: string): Promise<void>
  /**
   * Ends this attempt and schedules the task to run again after `delay`. The attempt does not count against the retry policy.
   * This method throws in order to leave the handler, so do not catch the error.
   */
  snooze(delay: Duration): never
  /**
   * Enqueues a child task. The child's id is derived from this task's id, the definition and `options.childKey`, so if a later
   * attempt enqueues the same child, a second task is not created and the action is `existing`. The child gets the same
   * correlation id. A handler may enqueue children until its attempt ends, even during a drain. Each call takes one round trip to
   * Redis. If another task has the child's unique key, the child may not be stored; a later attempt then tries again. The child may
   * have follow-ups, whose definitions must be in the worker's catalogue, too.
   *
   * @throws BullpenError `invalid_input`, `invalid_request`, `unique_key_taken`, `unknown_task` if the definition is not in the
   * worker's catalogue, `duplicate_child_key` if this attempt has already used the child key for this definition, `wrong_state`
   * if the attempt has ended, or `redis_unavailable`.
   */
  enqueue<Child extends TaskDefinition>(
    definition: Child,
    input: InputOf<Child>,
    options?: ChildOptions,
  ): Promise<Enqueued>
  /**
   * Runs a step of this task once. If an earlier attempt has finished the step, `once` returns the stored result instead of
   * running it again. `step` is a unique name of 1 to 128 characters, of the kinds that
   * {@link ChildOptions.childKey} may have. The result is stored with the task as JSON and may be as
   * large as an output. It is always returned as JSON represents it, even the first time. If `run` throws, nothing is stored.
   * Concurrent calls with the same name share one run.
   *
   * `run` receives an idempotency key of 32 hexadecimal digits, which is the same in every attempt and different for every task
   * and step. If a process dies after a side effect but before its result is stored, the step runs again. Send the key along
   * with the side effect, for example as an `Idempotency-Key` header, so that the receiver can recognise the repetition.
   *
   * The call also counts as a heartbeat. Storing the result takes one round trip to Redis and is atomic: the first result
   * wins. Every attempt after the first takes one more round trip, to read the stored results. A handler may call `once` until
   * its attempt has ended, including during the grace period.
   *
   * @throws BullpenError `invalid_request` for an invalid name, `invalid_result` for a result that is undefined, too large or not
   * JSON, `wrong_state` if the attempt has ended, or `lock_lost` if another attempt may already own the task, in which case the
   * result was not stored.
   */
  once<T extends StepResult>(step: string, run: (key: string) => T | Promise<T>): Promise<T>
  /**
   * Adds a follow-up task, which is enqueued exactly once when this attempt completes the task. It is stored in the script that completes
   * the task, so the call takes no round trip, and nothing follows if the attempt fails or is interrupted. A follow-up with the same
   * definition and key replaces the earlier one. An attempt may add 16 follow-ups, which together take at most 64 KiB.
   *
   * @throws BullpenError `invalid_input`, `invalid_request`, `unknown_task` if the definition is not in the worker's catalogue,
   * `payload_too_large` if there are too many follow-ups, or `wrong_state` if the attempt has ended. In a thread or child process, the
   * call does not throw, and the attempt fails instead.
   */
  onSuccess<Next extends TaskDefinition>(definition: Next, input: InputOf<Next>, options?: RegisteredOptions): void
  /**
   * Registers a follow-up task, which is enqueued exactly once when this task is dead or expired, whichever process ends it. When the
   * promise has resolved, the registration is stored with the task, also for later attempts. A registration with the same definition
   * and key, in this attempt or a later one, replaces the earlier one. If the task is dead, retried and then dead again, the
   * follow-up is enqueued again. Together with the follow-ups of the call, a task may have 16 follow-ups, which take at most 64 KiB.
   * The call also counts as a heartbeat, is atomic, and takes one round trip to Redis.
   *
   * @throws BullpenError `invalid_input`, `invalid_request`, `unknown_task` if the definition is not in the worker's catalogue,
   * `payload_too_large` if there are too many follow-ups, `wrong_state` if the attempt has ended, or `lock_lost` if another attempt may
   * already own the task.
   */
  onFailure<Next extends TaskDefinition>(
    definition: Next,
    input: InputOf<Next>,
    options?: RegisteredOptions,
  ): Promise<void>
  /** Works like {@link onFailure}, for a follow-up that is enqueued when this task is completed, dead, cancelled or expired. */
  onEnd<Next extends TaskDefinition>(definition: Next, input: InputOf<Next>, options?: RegisteredOptions): Promise<void>
  /**
   * Registers a task that undoes a step. Call it before the step: when the promise has resolved, the registration is stored. If this
   * task then ends in any other way than completed (dead, cancelled or expired, by whichever process, even if this one is killed),
   * or is deleted before its end, the compensation is enqueued exactly once. Several compensations run one after
   * another, in the reverse order of their registration. Each one is enqueued when the one before it has ended. If this task is
   * completed, its compensations are dropped.
   *
   * A registration with the same definition and key, in this attempt or a later one, replaces the earlier one. A task may have 16
   * compensations, which together take at most 64 KiB. The call also counts as a heartbeat, is atomic, and takes one round trip to
   * Redis.
   *
   * @throws BullpenError `invalid_input`, `invalid_request`, `unknown_task` if the definition is not in the worker's catalogue,
   * `payload_too_large` if there are too many compensations, `wrong_state` if the attempt has ended, or `lock_lost` if another attempt
   * may already own the task. If the call rejects, do not take the step.
   */
  compensate<Undo extends TaskDefinition>(
    definition: Undo,
    input: InputOf<Undo>,
    options?: RegisteredOptions,
  ): Promise<void>
}

export interface Handler<D extends TaskDefinition = TaskDefinition, R extends Resources = object> {
  readonly task: D
  /** The URL of the module that exports this handler. An isolate imports that module. */
  readonly module: string
  readonly handle: (context: TaskContext<D, R>) => ReturnOf<D> | Promise<ReturnOf<D>>
}

/**
 * One handler for each definition in a catalogue. Check a record with `satisfies Handlers<typeof catalogue, R>`: the code does
 * not compile if a handler is missing or needs resources that `R` lacks.
 */
export type Handlers<C extends Catalogue, R extends Resources = object> = {
  readonly [D in DefinitionsOf<C> as D['name']]: Handler<D, R>
}

/**
 * Defines a task's handler. Pass the `import.meta.url` of the module that exports it: a handler with `isolation` runs in a thread
 * or process that imports this module.
 *
 * @example export default defineHandler(welcome, import.meta.url, async ({ input, resources }: TaskContext<typeof welcome,
 * Resources>) => …)
 * @throws BullpenError `invalid_handler` if an argument is invalid.
 */
export function defineHandler<D extends TaskDefinition, R extends Resources = object>(
  task: D,
  module: string,
  handle: Handler<D, R>['handle'],
): Handler<D, R> {
  if (typeof task?.name !== 'string') {
    throw new BullpenError(
      'invalid_handler',
      'expected a definition from defineTask as the first argument of defineHandler',
    )
  }
  if (typeof handle !== 'function') {
    throw new BullpenError(
      'invalid_handler',
      `the handler for ${task.name} has type ${typeof handle}; expected a function that takes the task context`,
    )
  }
  if (!/^(file|data|node):/.test(module)) {
    throw new BullpenError(
      'invalid_handler',
      `the module passed to defineHandler for ${task.name} is ${JSON.stringify(module)}; expected import.meta.url`,
    )
  }
  return Object.freeze({ task, module, handle })
}

/** Finds a task's handler among a module's exports. @throws BullpenError `invalid_handler` if there is none. */
export function handlerIn(exports: Readonly<Record<string, unknown>>, task: string, module: string): Handler {
  const found = Object.values(exports).find((value) => isHandler(value) && value.task.name === task)
  if (!isHandler(found)) {
    throw new BullpenError(
      'invalid_handler',
      `${module} does not export a handler for ${task}; export the result of defineHandler`,
    )
  }
  return found
}

function isHandler(value: unknown): value is Handler {
  return typeof value === 'object' && value !== null && 'task' in value && 'module' in value && 'handle' in value
}

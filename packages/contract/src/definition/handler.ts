// Handlers: what they get, what they return, and how the compiler checks them against a catalogue.
import { BullpenError } from '../errors/errors.ts'
import type { CallOptions } from '../http/enqueue.ts'
import type { TaskId } from '../task/task-id.ts'
import type { Catalogue, DefinitionsOf } from './catalogue.ts'
import type { Duration } from './duration.ts'
import type { HandlerLog } from './log.ts'
import type { InputOf, ParsedInputOf, ReturnOf, TaskDefinition } from './task-definition.ts'

/** What a worker opens at its start for its handlers, such as database pools, HTTP clients and settings. */
export type Resources = object

export interface ChildOptions extends CallOptions {
  /** Distinguishes children of the same definition. Use the same key in every attempt; at most 256 characters. Default ''. */
  readonly key?: string
}

/** What a step may return. Not undefined, which would look like a step that has not run. */
export type StepResult = string | number | boolean | null | (object & { readonly then?: never })

/** Everything that a handler sees of one attempt. */
export interface TaskContext<D extends TaskDefinition = TaskDefinition, R extends Resources = object> {
  readonly id: TaskId
  readonly name: D['name']
  /** The input after the schema's defaults and transforms. */
  readonly input: ParsedInputOf<D>
  /** Numbers the attempts that count against the retry policy, from 1. */
  readonly attempt: number
  readonly meta: Readonly<Record<string, string>>
  readonly enqueuedAt: Date
  readonly startedAt: Date
  /** Identifies the request that enqueued the task; every log line carries it. Undefined if the caller gave none. */
  readonly correlationId: string | undefined
  /** Aborts when this attempt must end: on a timeout, a cancel, or a drain. For a short task: {@link poolSignal}. */
  readonly signal: AbortSignal
  /** Aborts when the drain of the pool reaches its deadline. Shared by all attempts of the pool. */
  readonly poolSignal: AbortSignal
  /** `log.info('sending')`, or with fields: `log.info({ to }, 'sending')`. */
  readonly log: HandlerLog
  readonly resources: R
  /**
   * Grows with every attempt of this task, counted or not, from 1. A store that remembers the highest one can refuse the writes
   * of an earlier attempt that is still running.
   */
  readonly fencingToken: number
  /** Restarts the heartbeat timeout. Costs nothing; a short task has no heartbeat timeout. */
  heartbeat(): void
  /** Throws the signal's reason if this attempt must end; otherwise a heartbeat. */
  checkpoint(): void
  /**
   * Stores the progress of the task, which the API shows: a fraction from 0 to 1, and a note. Also a heartbeat. One round
   * trip to Redis; resolves when stored.
   */
  progress(fraction: number, note?: string): Promise<void>
  /**
   * Ends this attempt and schedules the task again after `delay`. The attempt does not count. Leaves the handler by throwing:
   * do not catch it.
   */
  snooze(delay: Duration): never
  /**
   * Enqueues a child task. Its id is derived from this task's id, the definition and `options.key`, so that an attempt that
   * enqueues the same child again creates no second one. The child gets the same correlation id. Allowed until the attempt
   * ends, also during a drain. One round trip to Redis.
   *
   * @throws BullpenError `invalid_input`, `invalid_request`, `unknown_task` if the worker's catalogue lacks the definition,
   * `duplicate_key` if this attempt has used the key for this definition, `wrong_state` after the attempt has ended,
   * `redis_unavailable`.
   */
  enqueue<Child extends TaskDefinition>(
    definition: Child,
    input: InputOf<Child>,
    options?: ChildOptions,
  ): Promise<TaskId>
  /**
   * Runs a step of this task once: if an earlier attempt has finished the step, returns its stored result instead. `step` is
   * a unique name of 1 to 128 characters. The result is stored as JSON with the task, at most as large as an output may be,
   * and returned as JSON represents it, also the first time. An error of `run` is not stored. Concurrent calls with the same
   * name share one run.
   *
   * `run` gets an idempotency key of 32 hexadecimal digits, the same in every attempt, different for every task and step. A
   * process can die after an effect and before its result is stored; then the step runs again. Send the key with the effect,
   * for example as an `Idempotency-Key` header, so that the receiver can recognise the repetition.
   *
   * Also a heartbeat. One round trip to Redis to store the result, atomically, where the first one wins; one more in every
   * attempt after the first. Allowed until the attempt has ended, including its grace period.
   *
   * @throws BullpenError `invalid_request` for an invalid name, `invalid_result` for a result that is undefined, too large or
   * not JSON, `wrong_state` after the attempt has ended, `lock_lost` if another attempt may own the task by now and nothing
   * was stored.
   */
  once<T extends StepResult>(step: string, run: (key: string) => T | Promise<T>): Promise<T>
}

export interface Handler<D extends TaskDefinition = TaskDefinition, R extends Resources = object> {
  readonly task: D
  /** The URL of the module that exports this handler. An isolate imports that module. */
  readonly module: string
  readonly handle: (context: TaskContext<D, R>) => ReturnOf<D> | Promise<ReturnOf<D>>
}

/**
 * One handler for each definition of a catalogue. Check a record with `satisfies Handlers<typeof catalogue, R>`: a missing
 * handler, or one that needs resources that `R` lacks, does not compile.
 */
export type Handlers<C extends Catalogue, R extends Resources = object> = {
  readonly [D in DefinitionsOf<C> as D['name']]: Handler<D, R>
}

/**
 * Defines the handler of a task. Pass the `import.meta.url` of the module that exports it: a handler with `isolation` runs in a
 * thread or process that imports this module.
 *
 * @example
 * export default defineHandler(welcome, import.meta.url, async ({ input, resources }: TaskContext<typeof welcome, Resources>) => …)
 * @throws BullpenError `invalid_handler` if an argument is not what it should be.
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
      `the handler of ${task.name} is of type ${typeof handle}; expected a function of the context`,
    )
  }
  if (!/^(file|data|node):/.test(module)) {
    throw new BullpenError(
      'invalid_handler',
      `the module of the handler of ${task.name} is ${JSON.stringify(module)}; expected import.meta.url`,
    )
  }
  return Object.freeze({ task, module, handle })
}

/** Finds the handler of a task among the exports of a module. @throws BullpenError `invalid_handler` if there is none. */
export function handlerIn(exports: Readonly<Record<string, unknown>>, task: string, module: string): Handler {
  const found = Object.values(exports).find((value) => isHandler(value) && value.task.name === task)
  if (!isHandler(found)) {
    throw new BullpenError(
      'invalid_handler',
      `${module} exports no handler of ${task}; export the result of defineHandler`,
    )
  }
  return found
}

function isHandler(value: unknown): value is Handler {
  return typeof value === 'object' && value !== null && 'task' in value && 'module' in value && 'handle' in value
}

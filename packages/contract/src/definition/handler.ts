// What a handler is, what it is given, and how handlers are matched to a catalogue at compile time.

import { BullpenError } from '../errors/errors.ts'
import type { CallOptions } from '../http/enqueue.ts'
import type { TaskId } from '../task/task-id.ts'
import type { Catalogue, DefinitionsOf } from './catalogue.ts'
import type { Duration } from './duration.ts'
import type { HandlerLog } from './log.ts'
import type { InputOf, ParsedInputOf, ReturnOf, TaskDefinition } from './task-definition.ts'

/** What a worker opened at its start and its handlers use: database pools, HTTP clients, settings. */
export type Resources = object

export interface ChildOptions extends CallOptions {
  /** Tells the children of one definition apart, the same in every attempt; at most 256 characters. Default: ''. */
  readonly key?: string
}

/** What a step may return: anything but nothing, which could not be told from a step that has not run. */
export type StepResult = string | number | boolean | null | (object & { readonly then?: never })

/** All that a handler sees of one attempt. */
export interface TaskContext<D extends TaskDefinition = TaskDefinition, R extends Resources = object> {
  readonly id: TaskId
  readonly name: D['name']
  /** Parsed by the definition's schema, defaults and transforms applied. */
  readonly input: ParsedInputOf<D>
  /** Counts what the retry policy counts, from 1. */
  readonly attempt: number
  readonly meta: Readonly<Record<string, string>>
  readonly enqueuedAt: Date
  readonly startedAt: Date
  /** Follows the request through every log line; undefined when the caller gave none. */
  readonly correlationId: string | undefined
  /** Aborts when this attempt is to end: its time is up, or its pool drains. For a short task: {@link poolSignal}. Made when first read. */
  readonly signal: AbortSignal
  /** Aborts when the pool's drain reaches its deadline. One signal for the whole pool. */
  readonly poolSignal: AbortSignal
  /** `log.info('sending')`, or with fields: `log.info({ to }, 'sending')`. */
  readonly log: HandlerLog
  readonly resources: R
  /**
   * Grows with every attempt of this task, counted or not, from 1. A store that remembers the highest one can refuse the writes
   * of an earlier attempt that is still running.
   */
  readonly fencingToken: number
  /** A sign of life: the heartbeat timeout counts from here. Costs nothing; a short task needs none. */
  heartbeat(): void
  /** A safe point: throws the signal's reason when this attempt is to end, and is a sign of life otherwise. */
  checkpoint(): void
  /**
   * Stores how far the task is, for whoever looks it up: a fraction from 0 to 1, and what is being done.
   * A sign of life, too. One round trip to Redis; resolves when stored.
   */
  progress(fraction: number, note?: string): Promise<void>
  /**
   * Ends this attempt and schedules the task again after `delay`, without using up an attempt. Throws, to leave the
   * handler: don't catch it.
   */
  snooze(delay: Duration): never
  /**
   * Enqueues a task that belongs to this one. Its id follows from this task's id, the definition and the key: a retry that
   * enqueues it again doubles nothing. It carries the correlation id on. Allowed until the handler ends, also while the
   * pool drains. One round trip to Redis.
   *
   * @throws BullpenError `invalid_input`, `invalid_request`, `unknown_task` when the worker's catalogue lacks it,
   * `duplicate_key` for a key that this attempt has used for this definition, `wrong_state` after the attempt has ended,
   * `redis_unavailable`.
   */
  enqueue<Child extends TaskDefinition>(
    definition: Child,
    input: InputOf<Child>,
    options?: ChildOptions,
  ): Promise<TaskId>
  /**
   * Runs a step of this task, unless one of its starts has finished it: then its result is given back, whatever became of
   * that start. `step`: 1 to 128 characters, one name for one step. The result is kept as JSON with the task, as long as the
   * task is; at most as large as an output may be, and given back as JSON tells it, the first time too. What `run` throws is
   * not kept. Calls with the same name at the same time are one run.
   *
   * `run` is given a key, 32 characters of 0-9 and a-f: the same in every start of this task, another for every other task
   * and step. A process can die between an effect and its record; then the step runs again. Hand the key to whoever carries
   * out the effect, such as in an `Idempotency-Key` header, for him to tell a repetition.
   *
   * A sign of life. One round trip to Redis to keep the result, atomic, the first one wins; one more for each start after
   * the first. Allowed until the attempt has ended, also within its grace; what has begun by then may be kept after.
   *
   * @throws BullpenError `invalid_request` for such a name, `invalid_result` for a result that is undefined, too large or
   * no JSON, `wrong_state` after the attempt has ended, `lock_lost` when another start may have the task by now: nothing
   * was kept.
   */
  once<T extends StepResult>(step: string, run: (key: string) => T | Promise<T>): Promise<T>
}

export interface Handler<D extends TaskDefinition = TaskDefinition, R extends Resources = object> {
  readonly task: D
  /** The module that exports this handler, so that a thread or child process can import it alone. */
  readonly module: string
  readonly handle: (context: TaskContext<D, R>) => ReturnOf<D> | Promise<ReturnOf<D>>
}

/**
 * One handler for each definition of the catalogue. Check a record with `satisfies Handlers<typeof catalogue, R>`: a
 * task without a handler, or a handler that needs resources that `R` does not hold, does not compile.
 */
export type Handlers<C extends Catalogue, R extends Resources = object> = {
  readonly [D in DefinitionsOf<C> as D['name']]: Handler<D, R>
}

/**
 * A handler for one task. Export it from the module whose `import.meta.url` you pass.
 *
 * @example
 * export default defineHandler(welcome, import.meta.url, async ({ input, resources }: TaskContext<typeof welcome, Resources>) => …)
 * @throws BullpenError `invalid_handler` when `module` is not a module's URL.
 */
export function defineHandler<D extends TaskDefinition, R extends Resources = object>(
  task: D,
  module: string,
  handle: Handler<D, R>['handle'],
): Handler<D, R> {
  if (typeof task?.name !== 'string') {
    throw new BullpenError('invalid_handler', 'the first argument of defineHandler is what defineTask returned')
  }
  if (typeof handle !== 'function') {
    throw new BullpenError(
      'invalid_handler',
      `the handler of ${task.name} is ${typeof handle}; it is a function of the context`,
    )
  }
  if (!/^(file|data|node):/.test(module)) {
    throw new BullpenError(
      'invalid_handler',
      `the handler of ${task.name} is given ${JSON.stringify(module)} as its module; pass import.meta.url`,
    )
  }
  return Object.freeze({ task, module, handle })
}

/** The handler of a task among what a module exports. @throws BullpenError `invalid_handler` when there is none. */
export function handlerIn(exports: Readonly<Record<string, unknown>>, task: string, module: string): Handler {
  const found = Object.values(exports).find((value) => isHandler(value) && value.task.name === task)
  if (!isHandler(found)) {
    throw new BullpenError(
      'invalid_handler',
      `${module} exports no handler of ${task}; export what defineHandler returned`,
    )
  }
  return found
}

function isHandler(value: unknown): value is Handler {
  return typeof value === 'object' && value !== null && 'task' in value && 'module' in value && 'handle' in value
}

// Implements the client's methods that enqueue many tasks at once, on any transport.
import type { EnqueueRequest, InputOf, ProducerOptions, TaskDefinition, WhenFull } from '@bullpen/contract'
import { type BulkEnqueued, MAX_BULK_TASKS, ProblemError, type TaskTransport } from '@bullpen/contract/internal'
import { assertDefinition, assertList, assertTasks } from '../arguments.ts'
import { checkedIdempotency, type IdempotencyOptions } from '../idempotency-key.ts'
import type { Repeat } from '../repetition.ts'
import { roomWaitMs, UNKNOWN_POLICY } from '../room-wait.ts'
import type { Abortable } from '../task-handle.ts'
import { collectResults } from './bulk-results.ts'

export interface BulkOptions extends IdempotencyOptions, Abortable {
  /**
   * Whether to store either all of the tasks, at most 250 of one queue, or none. If none is stored, the call rejects. Defaults
   * to false.
   */
  readonly atomic?: boolean
}

export interface EnqueueBulkOptions extends ProducerOptions, BulkOptions {}

export interface BulkCalls {
  /**
   * Enqueues one task for each input, at most 1,000, and resolves with one result for each, in the same order. The options apply to
   * every task. A task that is rejected does not affect the others, so check each result for an `error`.
   *
   * The client repeats a call that got no response, and a task that failed for a temporary reason, as `enqueue` does. A repeat never
   * stores a task twice. To repeat the tasks that still failed, pass an `idempotencyKey` and make the same call again.
   */
  enqueueBulk<D extends TaskDefinition>(
    definition: D,
    inputs: readonly InputOf<D>[],
    options?: EnqueueBulkOptions,
  ): Promise<readonly BulkEnqueued[]>
  /**
   * Like {@link enqueueBulk}, but for tasks of any definitions, each with its own options, and for programs that do not have the
   * definitions. Inputs must be JSON. A task without `whenFull` may wait for room for up to 30 s, because the client does not know its
   * queue's policy.
   */
  enqueueBulkNamed(tasks: readonly EnqueueRequest[], options?: BulkOptions): Promise<readonly BulkEnqueued[]>
}

type BulkSettings = { readonly [Option in keyof BulkOptions]-?: BulkOptions[Option] | undefined } & {
  /** The policy of the tasks' queue. */
  readonly queuePolicy: WhenFull | typeof UNKNOWN_POLICY
}

/** `retryForMs` is how long `repeat` repeats a call. */
export function bulkCalls(transport: TaskTransport, repeat: Repeat, retryForMs: number): BulkCalls {
  async function enqueue(
    requests: readonly EnqueueRequest[],
    settings: BulkSettings,
  ): Promise<readonly BulkEnqueued[]> {
    const { atomic = false, idempotencyKey, idempotencyLife, signal, queuePolicy } = settings
    const idempotency = checkedIdempotency(idempotencyKey, idempotencyLife)
    if (requests.length === 0) return []
    if (requests.length > MAX_BULK_TASKS) throw tooMany(requests.length)
    // The tasks of an atomic call never wait.
    const waitMs = atomic ? 0 : Math.max(...requests.map(({ whenFull = queuePolicy }) => roomWaitMs(whenFull)))
    const send = transport.enqueueBulk(requests, { ...idempotency, atomic, waitMs, retryForMs })
    return collectResults(send, repeat, signal, waitMs)
  }

  return {
    async enqueueBulk(definition, inputs, options = {}) {
      assertDefinition('enqueueBulk', definition)
      assertList('enqueueBulk', 'inputs', inputs)
      const { name, queueSettings } = definition
      const { atomic, signal, idempotencyKey, idempotencyLife, ...call } = options
      const requests = inputs.map((input) => ({ task: name, input, ...call }))
      const queuePolicy = queueSettings.whenFull
      return enqueue(requests, { atomic, signal, idempotencyKey, idempotencyLife, queuePolicy })
    },

    async enqueueBulkNamed(tasks, { atomic, signal, idempotencyKey, idempotencyLife } = {}) {
      assertTasks('enqueueBulkNamed', tasks)
      return enqueue(tasks, { atomic, signal, idempotencyKey, idempotencyLife, queuePolicy: UNKNOWN_POLICY })
    },
  }
}

function tooMany(tasks: number): ProblemError {
  const message = `expected at most ${MAX_BULK_TASKS.toLocaleString('en')} tasks in one call, got ${tasks.toLocaleString('en')}`
  return new ProblemError({
    code: 'invalid_request',
    outcome: 'refused',
    detail: `/tasks: ${message}`,
    errors: [{ pointer: '/tasks', message }],
  })
}

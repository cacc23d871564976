// Decides which tasks can be enqueued atomically, either all of them or none.
import { BullpenError, EnqueueRateError, type ProducerOptions, QueueFullError } from '@bullpen/contract'
import { errorAt, MAX_ATOMIC_TASKS, MAX_ERRORS } from '@bullpen/contract/internal'
import { rateExceeded } from '../admission/api-key-limits.ts'
import type { NewTask } from '../ports/broker/new-task.ts'
import { invalidRequest } from './invalid-request.ts'

/**
 * Returns the queue of all these tasks, or undefined if there are none. Pointers in errors begin with a task's index, such as `/3`.
 *
 * @throws BullpenError `invalid_request` if the tasks belong to several queues or one of them has a unique key, or
 * `payload_too_large` if there are too many.
 */
export function queueOfAll(tasks: readonly NewTask[]): string | undefined {
  if (tasks.length > MAX_ATOMIC_TASKS) {
    throw new BullpenError(
      'payload_too_large',
      `at most ${MAX_ATOMIC_TASKS} tasks can be enqueued atomically; got ${tasks.length}`,
    )
  }
  const unique = tasks.findIndex((task) => task.unique !== undefined)
  if (unique !== -1)
    throw invalidRequest(`/${unique}/unique`, 'tasks that are enqueued atomically cannot have a unique key')
  const queue = tasks[0]?.queue
  const elsewhere = tasks.findIndex((task) => task.queue !== queue)
  if (elsewhere === -1) return queue
  const { task, queue: other } = tasks[elsewhere] ?? {}
  throw invalidRequest(
    `/${elsewhere}/task`,
    `all tasks must belong to the first task's queue, '${queue}'; ${task} belongs to queue '${other}'`,
  )
}

/** Checks the options of one task. @throws BullpenError `invalid_request` if the task has a policy for a full queue. */
export function checkAtomic({ whenFull = 'reject' }: ProducerOptions): void {
  if (whenFull === 'reject') return
  throw invalidRequest(
    '/whenFull',
    'an atomic request is always rejected if its tasks do not fit into the queue; remove whenFull',
  )
}

/** Returns one error for all invalid tasks of an atomic request, with the first task's code. `errors` is not empty. */
export function errorOfAll(errors: readonly BullpenError[]): BullpenError {
  const [first] = errors
  const others = errors.length - 1
  const more = others === 0 ? '' : ` (and ${others} other ${others === 1 ? 'task is' : 'tasks are'} also invalid)`
  return new BullpenError(first?.code ?? 'invalid_request', `${first?.message}${more}`, {
    errors: errors.flatMap((each) => each.errors).slice(0, MAX_ERRORS),
  })
}

/**
 * Returns the result of `map` for each task. If `map` throws because of one task, the error's pointer begins with that task's
 * index. If the queue is full, if the rate of the API key is exceeded, or if there is no memory for idempotency keys, the error does
 * not name a task.
 */
export function mapTasks<Task, T>(tasks: readonly Task[], map: (task: Task, index: number) => T): readonly T[] {
  return tasks.map((task, index) => {
    try {
      return map(task, index)
    } catch (error) {
      if (!(error instanceof BullpenError)) throw error
      if (error instanceof QueueFullError || error.code === 'idempotency_full') throw error
      if (error instanceof EnqueueRateError) throw rateExceededByAll(error, tasks.length, index)
      throw errorAt(error, `/${index}`)
    }
  })
}

/** Returns the error for all tasks if the task with this index has exceeded the rate, because each task needs a token. */
function rateExceededByAll({ reached }: EnqueueRateError, tasks: number, index: number): BullpenError {
  const { rate, retryAfterMs } = reached
  const others = tasks - 1 - index
  return rateExceeded({
    ...reached,
    wanted: tasks,
    retryAfterMs: retryAfterMs + Math.ceil((others * rate.perMs) / rate.max),
  })
}

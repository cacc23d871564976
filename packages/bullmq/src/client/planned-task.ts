// Plans the tasks that a client over Redis enqueues. A task gets its id once, so that any number of tries stores it once.
import type { Catalogue, Enqueued, EnqueueRequest, TaskId, TraceContext, WhenFull } from '@bullpen/contract'
import { createTaskId, type EnqueuedTask, ID_RANDOM_BYTES, isStored, optionalTime } from '@bullpen/contract/internal'
import type { NewTask } from '@bullpen/engine'
import { checkProduced, inputJson, newTask, planFollowUps } from '@bullpen/engine/internal'
import { createRandomPool, idempotencyOf } from '@bullpen/engine/node'

export interface PlannedTask {
  readonly queue: string
  readonly whenFull: WhenFull
  /** Creates the task for a try, as of now. @throws BullpenError like `newTask`. */
  create(): NewTask
  /** Returns the client's result for the task that was created last. */
  resultOf(enqueued: Enqueued): EnqueuedTask
  /**
   * Returns the id under which a try may have stored the task, or undefined if there has been no try. With an idempotency key, the
   * id is not known, because an earlier call may have stored the task.
   */
  mayBeStored(): string | undefined
}

export interface PlanOptions {
  readonly catalogue: Catalogue
  /** Returns Redis's time, in ms since 1970. */
  readonly now: () => number
  readonly correlationId: string | undefined
  /** Returns the trace to which the calling code belongs. */
  readonly traceContext: () => TraceContext | undefined
  /** How long an idempotency key is remembered for queues whose definition does not set it, in seconds. */
  readonly idempotencyLifeS: number
}

/**
 * The scope that all clients over Redis share for their idempotency keys. Over the API, the scope is the API key's fingerprint,
 * which has eight characters, so the two cannot be equal.
 */
const KEY_SCOPE = 'redis'

export interface GivenKey {
  readonly key: string
  /** In seconds, if the caller wants less than the setting. */
  readonly life: number | undefined
}

/** @throws BullpenError `unknown_task`, `invalid_input` or `invalid_request`. */
export type PlanTask = (request: EnqueueRequest, given: GivenKey | undefined) => PlannedTask

export function taskPlanner({
  catalogue,
  now,
  correlationId,
  traceContext: currentTrace,
  idempotencyLifeS,
}: PlanOptions): PlanTask {
  const random = createRandomPool()
  return (request, given) => {
    const { task: name, input, ...call } = request
    const definition = catalogue.get(name)
    checkProduced(definition, input, call)
    const { queue, queueSettings } = definition
    const { limits } = queueSettings
    const traceContext = currentTrace()
    const followUps = planFollowUps(call, { catalogue, correlationId, traceContext })
    const longest = queueSettings.idempotencyLifeS ?? idempotencyLifeS
    const idempotency =
      given === undefined
        ? undefined
        : idempotencyOf({
            key: given.key,
            caller: KEY_SCOPE,
            request: inputJson(request),
            life: Math.min(given.life ?? longest, longest),
          })
    let id: TaskId | undefined
    let isScheduled = false
    return {
      queue,
      whenFull: call.whenFull ?? queueSettings.whenFull,
      create() {
        const enqueuedAt = now()
        // Later tries use the same id.
        const isRepeat = id !== undefined
        id ??= createTaskId(queue, enqueuedAt, random(ID_RANDOM_BYTES))
        const origin = {
          id,
          enqueuedAt,
          caller: 'only',
          idempotency,
          limits,
          correlationId,
          traceContext,
          followUps,
        } as const
        const created = newTask(definition, input, call, origin)
        const task = isRepeat ? { ...created, isRepeat } : created
        isScheduled = task.delayMs !== undefined
        return task
      },
      resultOf(enqueued) {
        const { action, replayed, expectedStartAt } = enqueued
        const isNew = isStored(action) && replayed === undefined
        const status = isNew ? (isScheduled ? 'scheduled' : 'waiting') : (replayed ?? enqueued).status
        return { id: enqueued.id, action, status, ...optionalTime('expectedStartAt', expectedStartAt) }
      },
      mayBeStored: () => (idempotency === undefined ? id : undefined),
    }
  }
}

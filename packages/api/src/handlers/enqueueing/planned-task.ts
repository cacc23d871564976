// Plans the tasks that requests enqueue. A task gets its id here, before Redis is called.
import type { EnqueueRequest, TaskId, TraceContext, WhenFull } from '@bullpen/contract'
import {
  createTaskId,
  ID_RANDOM_BYTES,
  type IdempotencyKeyHeader,
  readIdempotencyKey,
} from '@bullpen/contract/internal'
import type { Idempotency, NewTask } from '@bullpen/engine'
import { countsApiKeys, followUpQueues, newTask, planFollowUps } from '@bullpen/engine/internal'
import { idempotencyOf } from '@bullpen/engine/node'
import type { FastifyRequest } from 'fastify'
import type { ApiContext } from '../../http/context.ts'
import { callersId } from '../../http/request-id.ts'

/** What all tasks of one request have in common. */
export interface RequestOrigin {
  readonly correlationId: string | undefined
  readonly traceContext: TraceContext | undefined
  /** The fingerprint of the API key. */
  readonly caller: string
  readonly apiKeyName: string | undefined
  readonly idempotencyKey: IdempotencyKeyHeader | undefined
}

export interface PlannedTask {
  readonly id: TaskId
  readonly queue: string
  readonly task: string
  /** The queue of each follow-up that the request names for the task, at any depth. */
  readonly followUpQueues: readonly string[]
  /** When the request was planned, on the monotonic clock. */
  readonly plannedAt: number
  /** The name of the request's API key. */
  readonly apiKeyName: string | undefined
  readonly idempotency: Idempotency | undefined
  readonly whenFull: WhenFull
  /** Whether an earlier request may have stored the task, or another task may have its unique key. */
  readonly mayExist: boolean
  /**
   * Creates the task with the current time. While a caller waits for room, each try to store the task creates it again. Throws
   * the same errors as `newTask`.
   */
  create(): NewTask
  /** Returns the initial status of the last task that was created. */
  status(): 'waiting' | 'scheduled'
}

/** @throws BullpenError `invalid_request` if the Idempotency-Key header is malformed. */
export function originOf(request: FastifyRequest): RequestOrigin {
  return {
    correlationId: callersId(request.headers),
    traceContext: request.traceContext,
    caller: request.keyFingerprint ?? '',
    apiKeyName: request.apiKeyName,
    idempotencyKey: readIdempotencyKey(request.headers['idempotency-key']),
  }
}

/**
 * Returns the function that plans a task from a valid body and its request's origin. In a bulk request, `index` is the task's
 * index, which turns the request's idempotency key into a different key for each task.
 */
export function taskPlanner({ catalogue, now, randomBytes, idempotencyLifeS }: ApiContext) {
  const passesOnApiKey = countsApiKeys(catalogue)

  function idempotency(wanted: EnqueueRequest, queue: string, origin: RequestOrigin, index: number | undefined) {
    const { caller, idempotencyKey } = origin
    if (idempotencyKey === undefined) return undefined
    const longest = catalogue.queue(queue).idempotencyLifeS ?? idempotencyLifeS
    const { life = longest } = idempotencyKey
    // A caller's key cannot contain a line break.
    const key = index === undefined ? idempotencyKey.key : `${idempotencyKey.key}\n${index}`
    return idempotencyOf({ key, caller, request: JSON.stringify(wanted), life: Math.min(life, longest) })
  }

  return (wanted: EnqueueRequest, origin: RequestOrigin, index?: number): PlannedTask => {
    const definition = catalogue.get(wanted.task)
    const { name: task, queue, queueSettings } = definition
    const { limits } = queueSettings
    const id = createTaskId(queue, now(), randomBytes(ID_RANDOM_BYTES))
    const { correlationId, traceContext, apiKeyName } = origin
    const followUps = planFollowUps(wanted, { catalogue, correlationId, traceContext, apiKeyName, passesOnApiKey })
    const record = idempotency(wanted, queue, origin, index)
    let isScheduled = false
    return {
      id,
      queue,
      task,
      followUpQueues: followUpQueues(wanted, catalogue),
      plannedAt: performance.now(),
      apiKeyName: origin.apiKeyName,
      idempotency: record,
      whenFull: wanted.whenFull ?? queueSettings.whenFull,
      mayExist: record !== undefined || wanted.unique !== undefined,
      create() {
        const created = newTask(definition, wanted.input, wanted, {
          id,
          enqueuedAt: now(),
          caller: 'only',
          idempotency: record,
          limits,
          apiKeyName,
          passesOnApiKey,
          correlationId,
          traceContext,
          followUps,
        })
        isScheduled = created.delayMs !== undefined
        return created
      },
      status: () => (isScheduled ? 'scheduled' : 'waiting'),
    }
  }
}

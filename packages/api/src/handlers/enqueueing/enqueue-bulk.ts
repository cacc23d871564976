// POST /v1/tasks/bulk stores several tasks and returns the result of each.
//
// If the request is atomic, either all tasks are stored or the response is a problem. Otherwise, once the rate of the API key has
// permitted the tasks, the response is 200 even if tasks are rejected or Redis is unavailable, because each task has a result of
// its own, and any other status would hide which tasks are stored. Each result has the fields of the response, or of the problem,
// that POST /v1/tasks would return for the task.
import {
  type BulkResponse,
  type BulkResult,
  BullpenError,
  type EnqueueBulkRequest,
  type Enqueued,
  EnqueueRateError,
  type EnqueueRequest,
  QueueFullError,
} from '@bullpen/contract'
import { errorAt, optionalTime } from '@bullpen/contract/internal'
import type { NewTask } from '@bullpen/engine'
import { checkAtomic, errorOfAll } from '@bullpen/engine/internal'
import type { FastifyReply } from 'fastify'
import type { z } from 'zod'
import type { ApiContext } from '../../http/context.ts'
import { logUnexpected } from '../../http/problems/error-responses.ts'
import { mayHaveTakenEffect, problemOf, retryAfterSeconds, toBullpenError } from '../../http/problems/problem.ts'
import type { Call } from '../../http/routes/route.ts'
import { listedTaskError } from '../../http/schemas.ts'
import { type Charge, countRefused, keepToRate } from './enqueue-rate.ts'
import { originOf, type PlannedTask, type RequestOrigin, taskPlanner } from './planned-task.ts'
import { isNew, refuse, reportStored, storeTask } from './store-task.ts'

/** A task that can be stored. */
interface Valid {
  /** The task's index in the request. */
  readonly index: number
  readonly planned: PlannedTask
  readonly created: NewTask
}

/** `taskSchema` is the schema of one task. */
export function enqueueBulk(context: ApiContext, taskSchema: z.ZodType) {
  const { catalogue, broker, blocked, emit, log, bulkBodyLimit } = context
  const plan = taskPlanner(context)

  /** Returns the task, or what is wrong with it. */
  function check(given: unknown, index: number, origin: RequestOrigin, atomic: boolean): Valid | BullpenError {
    const error = listedTaskError(catalogue, taskSchema, given, index)
    if (error !== undefined) return error
    const wanted = given as EnqueueRequest
    try {
      if (atomic) checkAtomic(wanted)
      const planned = plan(wanted, origin, index)
      return { index, planned, created: planned.create() }
    } catch (thrown) {
      if (!(thrown instanceof BullpenError)) throw thrown
      return errorAt(thrown, `/tasks/${index}`)
    }
  }

  function accepted(planned: PlannedTask, enqueued: Enqueued, charge: Charge): BulkResult {
    const { id, action, replayed } = enqueued
    const isCreated = isNew(enqueued)
    if (isCreated) {
      charge.keep([planned])
      reportStored(context, planned, id)
    }
    const status = isCreated ? planned.status() : (replayed ?? enqueued).status
    const result = { id, action, status, ...optionalTime('expectedStartAt', enqueued.expectedStartAt) }
    return replayed === undefined ? result : { ...result, replayed: true }
  }

  /** Returns whether the task waits for room and earlier callers are waiting, which it must not overtake. */
  function mustWait({ planned }: Valid): boolean {
    return typeof planned.whenFull === 'object' && blocked.mustWait(planned)
  }

  /** If the queue is full, the task's policy decides what happens. `outcome` is undefined for a task that has not been sent yet. */
  async function resultOf(
    { index, planned, created }: Valid,
    outcome: Outcome | undefined,
    charge: Charge,
    reply: FastifyReply,
  ): Promise<BulkResult> {
    try {
      if (outcome?.status === 'fulfilled') return accepted(planned, outcome.value, charge)
      const reason: unknown = outcome?.reason
      if (reason instanceof EnqueueRateError) countRefused(context, [planned])
      if (outcome !== undefined && !(reason instanceof QueueFullError)) throw reason
      if (typeof planned.whenFull === 'string' && reason instanceof QueueFullError) refuse(context, planned, reason)
      const stored =
        typeof planned.whenFull === 'string' ? undefined : await storeTask(context, { planned, created, charge }, reply)
      return stored === undefined ? { action: 'dropped' } : accepted(planned, stored, charge)
    } catch (thrown) {
      const error = toBullpenError(thrown, bulkBodyLimit)
      logUnexpected(log, reply.request, error)
      if (mayHaveTakenEffect(error)) charge.keep([planned])
      return rejected(error.code === 'idempotency_key_reused' ? errorAt(error, `/tasks/${index}`) : error, planned)
    }
  }

  async function enqueueEach(checked: readonly (Valid | BullpenError)[], reply: FastifyReply): Promise<BulkResult[]> {
    const valid = checked.filter(isValid)
    const results = new Map<Valid, Promise<BulkResult>>()
    return keepToRate(context, reply.request, { added: valid.map(({ planned }) => planned) }, async (charge) => {
      const sent: Valid[] = []
      for (const each of valid) {
        if (mustWait(each)) results.set(each, resultOf(each, undefined, charge, reply))
        else sent.push(each)
      }
      const outcomes = await broker.enqueueBulk(sent.map(({ created }) => charge.paid(created)))
      for (const [i, each] of sent.entries()) results.set(each, resultOf(each, outcomes[i], charge, reply))
      return Promise.all(
        checked.flatMap((each) => (isValid(each) ? (results.get(each) ?? []) : rejected(each, undefined))),
      )
    })
  }

  async function enqueueAll(checked: readonly (Valid | BullpenError)[], reply: FastifyReply): Promise<BulkResult[]> {
    const invalid = checked.filter((each) => each instanceof BullpenError)
    if (invalid.length > 0) throw errorOfAll(invalid)
    const valid = checked.filter(isValid)
    const planned = valid.map((each) => each.planned)
    return keepToRate(context, reply.request, { added: planned }, (charge) => storeAll(valid, charge, reply))
  }

  async function storeAll(valid: readonly Valid[], charge: Charge, reply: FastifyReply): Promise<BulkResult[]> {
    const planned = valid.map((each) => each.planned)
    const [first] = planned
    // If the outcome is unknown, looking up one of the tasks shows whether all are stored.
    if (first?.idempotency === undefined) reply.request.taskId = first?.id
    const stored = await broker.enqueueAll(valid.map(({ created }) => charge.paid(created))).catch((error: unknown) => {
      if (error instanceof EnqueueRateError) countRefused(context, planned)
      if (error instanceof QueueFullError) {
        const { limit } = error.reached
        for (const {
          created: { queue, task },
        } of valid)
          emit({ event: 'task.refused', queue, task, limit, action: 'rejected' })
      }
      throw error instanceof BullpenError && error.errors.length > 0 ? errorAt(error, '/tasks') : error
    })
    return stored.flatMap((enqueued, i) => {
      const each = planned[i]
      return each === undefined ? [] : [accepted(each, enqueued, charge)]
    })
  }

  return async ({ body, request, reply }: Call): Promise<BulkResponse> => {
    const { tasks, atomic = false } = body as EnqueueBulkRequest
    const origin = originOf(request)
    const checked = tasks.map((wanted, index) => check(wanted, index, origin, atomic))
    const results = await (atomic ? enqueueAll(checked, reply) : enqueueEach(checked, reply))
    return { failed: results.filter((result) => 'error' in result).length, results }
  }
}

type Outcome = Awaited<ReturnType<ApiContext['broker']['enqueueBulk']>>[number]

function isValid(checked: Valid | BullpenError): checked is Valid {
  return !(checked instanceof BullpenError)
}

/** `planned` is undefined if the broker has not been called for the task. */
function rejected(error: BullpenError, planned: PlannedTask | undefined): BulkResult {
  const { requestId: _, ...found } = problemOf(error, '')
  // A result has no header that could say when to try again.
  const retryAfter = retryAfterSeconds(error)
  const problem = retryAfter === undefined ? found : { ...found, retryAfter }
  // A caller with an idempotency key repeats the request instead of looking the task up.
  const isUnknown = planned !== undefined && planned.idempotency === undefined && mayHaveTakenEffect(error)
  return { error: isUnknown ? { taskId: planned.id, ...problem } : problem }
}

// Adds the members of a request to a group. Either all of them are stored, or the response is a problem.
import {
  BullpenError,
  EnqueueRateError,
  type EnqueueRequest,
  type GroupId,
  type MemberRequest,
  QueueFullError,
} from '@bullpen/contract'
import { errorAt } from '@bullpen/contract/internal'
import type { NewTask } from '@bullpen/engine'
import { type AddedMembers, checkMember, errorOfAll, NOT_FOR_MEMBERS } from '@bullpen/engine/internal'
import { idempotencyOf } from '@bullpen/engine/node'
import type { FastifyRequest } from 'fastify'
import type { z } from 'zod'
import type { ApiContext } from '../../http/context.ts'
import { listedTaskError } from '../../http/schemas.ts'
import { type Charge, type ChargedTask, countRefused } from '../enqueueing/enqueue-rate.ts'
import { originOf, type PlannedTask, type RequestOrigin, taskPlanner } from '../enqueueing/planned-task.ts'
import { reportStored } from '../enqueueing/store-task.ts'

interface GroupOfMembers {
  readonly id: GroupId
  readonly seal: boolean
  /** Identifies the request. By default, the request's idempotency key does. Without either, a repeat adds the members again. */
  readonly key?: string
}

/** The valid tasks of a request. */
interface PlannedMembers {
  readonly tasks: readonly ChargedTask[]
  /** Checks whether their queues accept the tasks, before the group is created. @throws BullpenError like `Groups.admit`. */
  admit(group: GroupId): Promise<void>
  /** Adds the tasks to a group, and keeps their tokens unless an earlier request has added them. @throws BullpenError like `Groups.add`. */
  add(group: GroupOfMembers, charge: Charge): Promise<AddedMembers>
}

/** Returns the function that checks the tasks of a request. `taskSchema` is the schema of one task. */
export function memberPlanner(context: ApiContext, taskSchema: z.ZodType) {
  const { catalogue, broker, emit, randomBytes } = context
  const plan = taskPlanner(context)

  function check(given: unknown, index: number, origin: RequestOrigin): PlannedTask | BullpenError {
    const error = listedTaskError(catalogue, taskSchema, given, index, NOT_FOR_MEMBERS)
    if (error !== undefined) return error
    try {
      checkMember(given as object)
      const planned = plan(given as EnqueueRequest, { ...origin, idempotencyKey: undefined }, index)
      planned.create()
      return planned
    } catch (thrown) {
      if (!(thrown instanceof BullpenError)) throw thrown
      return errorAt(thrown, `/tasks/${index}`)
    }
  }

  return (request: FastifyRequest, tasks: readonly MemberRequest[]): PlannedMembers => {
    const origin = originOf(request)
    const checked = tasks.map((task, index) => check(task, index, origin))
    const invalid = checked.filter((each) => each instanceof BullpenError)
    if (invalid.length > 0) throw errorOfAll(invalid)
    const planned = checked as readonly PlannedTask[]
    return {
      tasks: planned,
      admit: (group) => broker.groups.admit(group, created(planned)).catch((error) => refuse(planned, error)),
      async add({ id, seal, key: given }, charge) {
        const key = given ?? origin.idempotencyKey?.key ?? Buffer.from(randomBytes(16)).toString('hex')
        const digests = idempotencyOf({ key, caller: origin.caller, request: JSON.stringify({ tasks, seal }), life: 0 })
        const members = { key: digests.key, digest: digests.request, tasks: created(planned), seal }
        const added = await broker.groups.add(id, members).catch((error) => refuse(planned, error))
        if (!added.isNew) return added
        charge.keep(planned)
        added.ids.forEach((taskId, i) => {
          reportStored(context, planned[i] as PlannedTask, taskId)
        })
        return added
      },
    }
  }

  /** Counts the tasks that the broker has refused, and throws its error with pointers into the request's body. */
  function refuse(planned: readonly PlannedTask[], error: unknown): never {
    if (error instanceof EnqueueRateError) countRefused(context, planned)
    if (error instanceof QueueFullError) {
      const { queue: full, limit } = error.reached
      for (const { queue, task } of planned) {
        if (queue === full) emit({ event: 'task.refused', queue, task, limit, action: 'rejected' })
      }
    }
    // The broker's pointers begin with the index of a member.
    const isOfMember = error instanceof BullpenError && error.code === 'payload_too_large' && error.errors.length > 0
    throw isOfMember ? errorAt(error, '/tasks') : error
  }
}

function created(planned: readonly PlannedTask[]): readonly NewTask[] {
  return planned.map((each) => each.create())
}

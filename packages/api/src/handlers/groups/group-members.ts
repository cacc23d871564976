// Adds the members of a request to a group. Either all of them are stored, or the response is a problem.
import {
  BullpenError,
  EnqueueRateError,
  type EnqueueRequest,
  type FollowUps,
  type GroupId,
  type MemberRequest,
  QueueFullError,
} from '@bullpen/contract'
import { errorAt } from '@bullpen/contract/internal'
import type { NewTask } from '@bullpen/engine'
import { type AddedMembers, checkMember, errorOfAll, NOT_FOR_MEMBERS, namedTasks } from '@bullpen/engine/internal'
import { idempotencyOf } from '@bullpen/engine/node'
import type { FastifyRequest } from 'fastify'
import type { z } from 'zod'
import type { ApiContext } from '../../http/context.ts'
import { listedTaskError } from '../../http/schemas.ts'
import { countRefused, keepToRate } from '../enqueueing/enqueue-rate.ts'
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
  /**
   * Takes the tasks from the rate of the request's API key, and the group's follow-ups, if it is created. @throws EnqueueRateError, or
   * another error like `keepToRate`.
   */
  keepToRate(followUps?: FollowUps): Promise<void>
  /** Checks whether their queues accept the tasks, before the group is created. @throws BullpenError like `Groups.admit`. */
  admit(group: GroupId): Promise<void>
  /** Adds the tasks to a group. @throws BullpenError like `Groups.add`. */
  add(group: GroupOfMembers): Promise<AddedMembers>
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
      keepToRate: async (followUps = {}) => keepToRate(context, request, [...planned, ...namedIn(followUps)]),
      admit: (group) => broker.groups.admit(group, created(planned)).catch((error) => refuse(planned, error)),
      async add({ id, seal, key: given }) {
        const key = given ?? origin.idempotencyKey?.key ?? Buffer.from(randomBytes(16)).toString('hex')
        const digests = idempotencyOf({ key, caller: origin.caller, request: JSON.stringify({ tasks, seal }), life: 0 })
        const members = { key: digests.key, digest: digests.request, tasks: created(planned), seal }
        const added = await broker.groups.add(id, members).catch((error) => refuse(planned, error))
        added.ids.forEach((taskId, i) => {
          reportStored(context, planned[i] as PlannedTask, taskId)
        })
        return added
      },
    }
  }

  /** Returns the follow-ups of a group, each with the tokens that it and its own follow-ups need. */
  function namedIn({ onSuccess = [], onFailure = [], onEnd = [] }: FollowUps) {
    return [...onSuccess, ...onFailure, ...onEnd].map((each) => {
      const { name: task, queue } = catalogue.get(each.task)
      return { task, queue, tokens: namedTasks(each) }
    })
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

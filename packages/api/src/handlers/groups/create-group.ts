// POST /v1/groups creates a group, with its first members if there are any. POST /v1/groups/{id}/tasks adds members.
import {
  type AddToGroupRequest,
  BullpenError,
  type Catalogue,
  type CreateGroupRequest,
  type FollowUps,
  type GroupView,
  type MembersAdded,
} from '@bullpen/contract'
import { createGroupId, groupId, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import {
  countsApiKeys,
  followUpQueues,
  groupExists,
  groupView,
  newGroup,
  planFollowUps,
} from '@bullpen/engine/internal'
import type { z } from 'zod'
import { requesterOf } from '../../auth/requester.ts'
import type { ApiContext } from '../../http/context.ts'
import type { Call, IdCall } from '../../http/routes/route.ts'
import { type Charge, type ChargedTask, keepToRate } from '../enqueueing/enqueue-rate.ts'
import { originOf } from '../enqueueing/planned-task.ts'
import { memberPlanner } from './group-members.ts'

/** The key of the members that are added together with their group, of which there is one request at most. */
const FIRST_MEMBERS = 'create'

const EXPECTED_ID =
  'POST /v1/groups does not accept this header; send the group\'s id in the body instead, such as {"id":"group-01jd3v7n8q0000000000000000"}, which makes the request idempotent'

export function createGroup(context: ApiContext, taskSchema: z.ZodType) {
  const { catalogue, broker, log, now, randomBytes } = context
  const passesOnApiKey = countsApiKeys(catalogue)
  const planMembers = memberPlanner(context, taskSchema)
  return async ({ body, request, reply }: Call): Promise<GroupView> => {
    const { id: given, tasks, seal = tasks !== undefined, by: name, ...settings } = body as CreateGroupRequest
    const id = given === undefined ? createGroupId(now(), randomBytes(ID_RANDOM_BYTES)) : groupId(given)
    const by = requesterOf(request, name)
    const { correlationId, traceContext, apiKeyName, idempotencyKey } = originOf(request)
    if (idempotencyKey !== undefined) throw headerRefused('Idempotency-Key', EXPECTED_ID)
    const followUps = planFollowUps(settings, { catalogue, correlationId, traceContext, apiKeyName, passesOnApiKey })
    // The tasks are checked first, so that a request creates no group if one of them is invalid or is refused. A group that is created
    // and cancelled would release its follow-ups.
    const members = planMembers(request, tasks ?? [])
    const following = chargedFollowUps(settings, catalogue)
    const implied = [...members.tasks, ...following]
    const isRepeat = async () => {
      const earlier = given === undefined ? undefined : await broker.groups.find(id)
      // The request that has created the group may not have added the members yet.
      return earlier !== undefined && (members.tasks.length === 0 || earlier.count > 0)
    }
    const group = await keepToRate(context, request, { implied, isRepeat }, async (charge) => {
      if (tasks !== undefined) await members.admit(id)
      const created = await broker.groups.create(newGroup(id, settings, by, followUps))
      if (created.isNew) charge.keep(following)
      request.hadEffect = true
      if (tasks !== undefined) {
        await members.add({ id, seal, key: FIRST_MEMBERS }, charge).catch(async (error: unknown) => {
          // The response has no id, so the caller could not use the group.
          if (given === undefined) await broker.groups.cancel(id, by).catch(() => {})
          throw error instanceof BullpenError && error.code === 'idempotency_key_reused' ? groupExists(id) : error
        })
        return (await broker.groups.find(id)) ?? created.group
      }
      return seal ? broker.groups.seal(id) : created.group
    })
    log.info({ group: id, by, requestId: request.id }, 'group created')
    const view = groupView(group)
    reply.code(201).header('location', view.links.self)
    return view
  }
}

export function addToGroup(context: ApiContext, taskSchema: z.ZodType) {
  const planMembers = memberPlanner(context, taskSchema)
  return async ({ params, body, request, reply }: IdCall): Promise<MembersAdded> => {
    const { tasks, seal = false } = body as AddToGroupRequest
    const members = planMembers(request, tasks)
    const group = { id: groupId(params.id), seal }
    const add = (charge: Charge) => members.add(group, charge)
    const { start, ids } = await keepToRate(context, request, { implied: members.tasks }, add)
    reply.code(202)
    return { start, count: ids.length, ids: [...ids] }
  }
}

/** Returns the follow-ups of a group, each with its own follow-ups. */
function chargedFollowUps(
  { onSuccess = [], onFailure = [], onEnd = [] }: FollowUps,
  catalogue: Catalogue,
): ChargedTask[] {
  return [...onSuccess, ...onFailure, ...onEnd].map((each) => {
    const { name: task, queue } = catalogue.get(each.task)
    return { task, queue, followUpQueues: followUpQueues(each, catalogue) }
  })
}

function headerRefused(header: string, message: string): BullpenError {
  return new BullpenError('invalid_request', `${header}: ${message}`, { errors: [{ header, message }] })
}

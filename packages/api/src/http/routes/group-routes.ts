// Defines the routes that create, show, seal and cancel groups, and add members to them.
import {
  addToGroupBodySchema,
  cancelGroupSchema,
  createGroupBodySchema,
  enqueueBodySchema,
  groupListSchema,
  groupQuerySchema,
  groupResultsQuerySchema,
  groupResultsSchema,
  groupsQuerySchema,
  groupViewSchema,
  IDEMPOTENCY_KEY_FORM,
  membersAddedSchema,
  sealGroupSchema,
  uncheckedGroupBodySchema,
  uncheckedMembersBodySchema,
} from '@bullpen/contract/internal'
import { z } from 'zod'
import { addToGroup, createGroup } from '../../handlers/groups/create-group.ts'
import { cancelGroup, listGroups, sealGroup, showGroup, showGroupResults } from '../../handlers/groups/groups.ts'
import type { ApiContext } from '../context.ts'
import { type Route, routesOf } from './route.ts'

const idParams = z.object({ id: z.string().describe("The group's id.") })

/** The problems of a request that adds members. */
const PROBLEMS_OF_MEMBERS = [
  'redis_unavailable',
  'group_not_found',
  'group_sealed',
  'group_ended',
  'group_full',
  'group_busy',
  'unknown_task',
  'invalid_input',
  'invalid_follow_up',
  'invalid_duration',
  'idempotency_key_reused',
  'queue_not_found',
  'queue_draining',
  'fleet_too_old',
  'queue_full',
  'enqueue_rate_exceeded',
  'redis_full',
  'unsafe_redis',
] as const satisfies Route['problems']

const LOOKED_UP = ['group_not_found', 'redis_unavailable'] as const

const routes = routesOf({ tag: 'Groups' })

export function groupRoutes(context: ApiContext): readonly Route[] {
  const taskBody = enqueueBodySchema(context.catalogue)
  return [
    routes.post('/v1/groups', {
      operationId: 'createGroup',
      summary: 'Create a group',
      description:
        'A group is a set of tasks that are awaited and cancelled together. Its members may belong to different queues. With ' +
        '`tasks`, the group is created with its first members and, unless `seal` is `false`, is sealed. Without `tasks`, add ' +
        'members with POST /v1/groups/{id}/tasks and then seal the group, because only a sealed group can end. The request is ' +
        'idempotent if it has an `id`, and a request with the `id` of a different group is refused. The header Idempotency-Key is not ' +
        'accepted. No group is created if its members are refused. Only if they are refused after that check, because other tasks have ' +
        'filled their queue in the meantime, a group with that `id` exists without members, and the request can be repeated.',
      body: createGroupBodySchema(taskBody),
      checkedBody: uncheckedGroupBodySchema,
      bodyLimit: context.bulkBodyLimit,
      responses: {
        201: { description: 'The group is stored.', schema: groupViewSchema, location: "The group's path." },
      },
      problems: PROBLEMS_OF_MEMBERS,
      handle: createGroup(context, taskBody),
    }),
    routes.get('/v1/groups', {
      operationId: 'listGroups',
      summary: 'List the groups that have not ended',
      description: 'Returns the oldest groups first, at most `limit` of them.',
      query: groupsQuerySchema,
      responses: { 200: { description: 'The groups.', schema: groupListSchema } },
      problems: ['redis_unavailable'],
      handle: (call) => listGroups(context, call),
    }),
    routes.get('/v1/groups/:id', {
      operationId: 'showGroup',
      summary: 'Show a group, or wait for it to end',
      description:
        'With `?wait=SECONDS` (at most 30) or the header `Prefer: wait=SECONDS`, the API responds as soon as the group has ended. ' +
        "If the time runs out first, the API returns the group's current state, so check `state`. The numbers lag behind the tasks " +
        'by a few milliseconds.',
      params: idParams,
      query: groupQuerySchema,
      responses: { 200: { description: 'The group.', schema: groupViewSchema } },
      problems: LOOKED_UP,
      handle: (call) => showGroup(context, call),
    }),
    routes.post('/v1/groups/:id/tasks', {
      operationId: 'addToGroup',
      summary: 'Add members to a group',
      description:
        'Adds up to 1,000 tasks, either all of them or none. They are stored with the group first, and enqueued in their queues ' +
        'directly afterwards. The limits of the queues are checked before the tasks are stored, but not in the same step, so ' +
        'concurrent requests can exceed a limit together. With an Idempotency-Key, a repeated request adds nothing and gets the ' +
        'same response.',
      params: idParams,
      body: addToGroupBodySchema(taskBody),
      checkedBody: uncheckedMembersBodySchema,
      bodyLimit: context.bulkBodyLimit,
      headers: [
        {
          name: 'Idempotency-Key',
          description: `${IDEMPOTENCY_KEY_FORM} It is remembered as long as the group.`,
        },
      ],
      responses: { 202: { description: 'The members are stored.', schema: membersAddedSchema } },
      problems: PROBLEMS_OF_MEMBERS,
      handle: addToGroup(context, taskBody),
    }),
    routes.post('/v1/groups/:id/seal', {
      operationId: 'sealGroup',
      summary: 'Seal a group',
      description:
        'No further members can be added, and the group ends as soon as all its members have ended. The request is idempotent.',
      params: idParams,
      body: sealGroupSchema,
      bodyRequired: false,
      responses: { 200: { description: 'The group is sealed.', schema: groupViewSchema } },
      problems: ['redis_unavailable', 'group_not_found'],
      handle: (call) => sealGroup(context, call),
    }),
    routes.post('/v1/groups/:id/cancel', {
      operationId: 'cancelGroup',
      summary: 'Cancel a group',
      description:
        'Seals the group, and cancels all members that have not ended. Members that are not running never start. Long tasks that ' +
        'are running receive an abort signal, and short ones finish. The response does not wait until the members have ended, so ' +
        'wait for the group with GET /v1/groups/{id}. The request is idempotent.',
      params: idParams,
      body: cancelGroupSchema,
      bodyRequired: false,
      responses: { 200: { description: 'The group is cancelled, or had already ended.', schema: groupViewSchema } },
      problems: ['redis_unavailable', 'group_not_found'],
      handle: (call) => cancelGroup(context, call),
    }),
    routes.get('/v1/groups/:id/results', {
      operationId: 'showGroupResults',
      summary: "Show the results of a group's members",
      description:
        'Returns the members in the order of their numbers, also while the group runs. An output is stored with its task, so it is ' +
        "available for the retention of the task's queue. Follow `next` until it is absent.",
      params: idParams,
      query: groupResultsQuerySchema,
      responses: { 200: { description: 'One page.', schema: groupResultsSchema } },
      problems: LOOKED_UP,
      handle: (call) => showGroupResults(context, call),
    }),
  ]
}

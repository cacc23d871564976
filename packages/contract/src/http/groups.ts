// Defines groups over HTTP: the requests that create groups and add members, and the responses that show them.
import { z } from 'zod'
import type { FollowUps } from '../definition/follow-ups/follow-up.ts'
import type { Duration } from '../definition/units/duration.ts'
import { durationWithin } from '../definition/units/duration-text.ts'
import { groupedDigits } from '../definition/units/grouped-digits.ts'
import { MAX_FOLLOW_UPS } from '../task/follow-up.ts'
import { readGroupId } from '../task/group-id.ts'
import {
  GROUP_CANCEL_REASONS,
  GROUP_KEEP,
  GROUP_ON_ERROR,
  GROUP_RESULTS,
  GROUP_STATES,
  GROUP_TOTAL_TIMEOUT,
  type GroupOnError,
  MAX_GROUP_MEMBERS,
  MAX_MEMBERS_AT_ONCE,
  MEMBER_ENDS,
  type MemberEnd,
} from '../task/group-states.ts'
import { TASK_STATUSES } from '../task/states.ts'
import { limitSchema, waitSchema } from './queries.ts'
import { requesterName } from './requester.ts'
import { type CallOptions, type EnqueueRequest, type enqueueBodySchema, followUpSchema } from './tasks/enqueue.ts'

const members = groupedDigits(MAX_GROUP_MEMBERS)
const atOnce = groupedDigits(MAX_MEMBERS_AT_ONCE)

const by = requesterName
  .optional()
  .describe("Who sends the request, for the group's `by` or `cancelledBy`. The API adds the API key's fingerprint.")

const settings = {
  onError: z
    .enum(GROUP_ON_ERROR)
    .optional()
    .describe(
      'What happens when a member is dead or has expired: `cancel` cancels all other members, and `continue` lets them run. Defaults to `continue`.',
    ),
  totalTimeout: durationWithin(GROUP_TOTAL_TIMEOUT)
    .optional()
    .describe(
      "The longest time from the group's creation to its end, from '1s' to '30d'. When it has passed, the group is sealed and all unfinished members are cancelled. Defaults to '7d'.",
    ),
  keep: durationWithin(GROUP_KEEP)
    .optional()
    .describe("How long the group is kept after it has ended, from '1d' to '30d'. Defaults to '1d'."),
}

const followUps = z.array(followUpSchema).max(MAX_FOLLOW_UPS, `at most ${MAX_FOLLOW_UPS} follow-up tasks`).optional()

const followUpLists = {
  onSuccess: followUps.describe(
    'The tasks to enqueue when the group has ended and every member is completed. A group has at most 16 follow-ups, which take at most 64 KiB.',
  ),
  onFailure: followUps.describe(
    'The tasks to enqueue when the group has failed: a member was dead or expired, or the total timeout has passed.',
  ),
  onEnd: followUps.describe('The tasks to enqueue when the group has ended, whatever its result is.'),
}

const seal = z
  .boolean()
  .optional()
  .describe('Whether to seal the group, so that no further members can be added. A group ends only if it is sealed.')

function tasksOf<T extends z.ZodType>(task: T) {
  return z
    .array(task)
    .min(1)
    .max(MAX_MEMBERS_AT_ONCE)
    .describe(
      `From 1 to ${atOnce} tasks, each like the body of POST /v1/tasks without \`unique\`, \`whenFull\` and \`durability\`. A group has at most ${members} members.`,
    )
}

const EXPECTED_ID = "expected a group id such as 'group-01jd3v7n8q0000000000000000'"

function createBody<T extends z.ZodType>(task: T) {
  return z.strictObject({
    id: z
      .string()
      .refine((id) => readGroupId(id) !== undefined, EXPECTED_ID)
      .optional()
      .describe(
        "The group's id, which makes the request idempotent: `group-` and a ULID in lower case. By default, the API generates one.",
      ),
    tasks: tasksOf(task).optional(),
    seal: seal.describe(
      'Whether to seal the group, so that no further members can be added. Defaults to true if `tasks` are given.',
    ),
    ...settings,
    ...followUpLists,
    by,
  })
}

/** Returns the schema of a POST /v1/groups body. `task` is the result of {@link enqueueBodySchema}. */
export function createGroupBodySchema(task: ReturnType<typeof enqueueBodySchema>) {
  return createBody(task).meta({ id: 'CreateGroup' })
}

/** The schema of a body whose tasks have not been checked yet. */
export const uncheckedGroupBodySchema = createBody(z.unknown())

/** The id and the settings of a group, and who creates it. The inputs of the follow-ups have not been checked yet. */
export const groupSettingsSchema = uncheckedGroupBodySchema.omit({ tasks: true, seal: true })

function addBody<T extends z.ZodType>(task: T) {
  return z.strictObject({ tasks: tasksOf(task), seal })
}

/** Returns the schema of a POST /v1/groups/{id}/tasks body. */
export function addToGroupBodySchema(task: ReturnType<typeof enqueueBodySchema>) {
  return addBody(task).meta({ id: 'AddToGroup' })
}

/** The schema of a body whose tasks have not been checked yet. */
export const uncheckedMembersBodySchema = addBody(z.unknown())

/** The optional body of the request that seals a group. */
export const sealGroupSchema = z.strictObject({}).meta({ id: 'SealGroup' })

/** The optional body of the request that cancels a group. */
export const cancelGroupSchema = z.strictObject({ by }).meta({ id: 'CancelGroup' })

/**
 * The settings of a group. `onSuccess` is enqueued when every member is completed, `onFailure` when the group fails, and `onEnd` when the
 * group has ended, whatever its result is.
 */
export interface GroupSettings extends FollowUps {
  /**
   * What happens when a member is dead or has expired: 'cancel' cancels all other members, and 'continue' lets them run. Defaults to
   * 'continue'.
   */
  readonly onError?: GroupOnError
  /**
   * The longest time from the group's creation to its end, from '1s' to '30d'. When it has passed, the group is sealed and all
   * unfinished members are cancelled. Defaults to '7d'.
   */
  readonly totalTimeout?: Duration
  /** How long the group is kept after it has ended, from '1d' to '30d'. Defaults to '1d'. */
  readonly keep?: Duration
}

/** The options of a member. Members have no unique keys, and never wait for room in their queue. */
export type MemberOptions = Omit<CallOptions, 'unique' | 'durability'>

/** A task to add to a group. */
export type MemberRequest = Omit<EnqueueRequest, 'unique' | 'whenFull' | 'durability'>

/** The fields of a valid body of POST /v1/groups. */
export interface CreateGroupRequest extends GroupSettings {
  readonly id?: string
  readonly tasks?: readonly MemberRequest[]
  readonly seal?: boolean
  readonly by?: string
}

/** The fields of a valid body of POST /v1/groups/{id}/tasks. */
export interface AddToGroupRequest {
  readonly tasks: readonly MemberRequest[]
  readonly seal?: boolean
}

export const groupQuerySchema = z.strictObject({
  wait: waitSchema.optional().describe('How many seconds to wait for the group to end, from 0 to 30.'),
})

const EXPECTED_MEMBER = `expected a whole number from 0 to ${MAX_GROUP_MEMBERS}`

export const groupResultsQuerySchema = z.strictObject({
  from: z
    .string()
    .regex(/^\d{1,6}$/, EXPECTED_MEMBER)
    .transform(Number)
    .pipe(z.int().min(0).max(MAX_GROUP_MEMBERS, EXPECTED_MEMBER))
    .default(0)
    .describe('The number of the first member to return, starting from 0.'),
  limit: limitSchema.describe(
    'How many members to return at most, from 1 to 200. There are fewer if their outputs together take more than 1 MiB.',
  ),
})

export const groupsQuerySchema = z.strictObject({ limit: limitSchema })

const time = z.iso.datetime()

export const groupViewSchema = z
  .object({
    id: z.string(),
    state: z
      .enum(GROUP_STATES)
      .describe(
        '`open`: members can be added. `sealed`: no members can be added, and some have not ended. `ended`: all members have ended.',
      ),
    result: z
      .enum(GROUP_RESULTS)
      .optional()
      .describe(
        '`completed`: every member is completed. `failed`: a member is dead or expired, or the total timeout has passed. `cancelled`: the group or some of its members were cancelled or removed. Present only if the group has ended.',
      ),
    count: z.int().describe('The number of members.'),
    ended: z.int().describe('How many members have ended.'),
    progress: z
      .number()
      .describe('`ended` divided by `count`. Without members, 1 if the group has ended, and otherwise 0.'),
    statuses: z
      .object(Object.fromEntries(MEMBER_ENDS.map((end) => [end, z.int()])) as Record<MemberEnd, z.ZodInt>)
      .describe(
        'How the members have ended. A member is `removed` if its task was deleted or replaced before it had ended. The first end of a member counts: a later retry of a dead member does not change the group.',
      ),
    queues: z.array(z.string()).describe("The members' queues."),
    onError: z.enum(GROUP_ON_ERROR),
    by: z.string().describe('Who created the group.'),
    createdAt: time,
    timeoutAt: time.describe('When the total timeout passes.'),
    sealedAt: time.optional(),
    endedAt: time.optional(),
    cancelledAt: time.optional(),
    cancelReason: z
      .enum(GROUP_CANCEL_REASONS)
      .optional()
      .describe(
        '`cancelled`: by request. `first_error`: a member was dead or expired. `group_timeout`: the total timeout.',
      ),
    cancelledBy: z.string().optional(),
    links: z.object({ self: z.string(), results: z.string(), cancel: z.string() }),
  })
  .meta({ id: 'Group' })

export type GroupView = z.infer<typeof groupViewSchema>

export const groupListSchema = z.object({ groups: z.array(groupViewSchema) }).meta({ id: 'GroupList' })

export type GroupList = z.infer<typeof groupListSchema>

export const membersAddedSchema = z
  .object({
    start: z
      .int()
      .describe('The number of the first member of this request. The members are numbered in order, starting from 0.'),
    count: z.int().describe('How many members the request has added.'),
    ids: z
      .array(z.string())
      .describe(
        "The tasks' ids, in the request's order. A task is found under its id once it is in its queue, usually within milliseconds.",
      ),
  })
  .meta({ id: 'MembersAdded' })

export type MembersAdded = z.infer<typeof membersAddedSchema>

export const memberResultSchema = z
  .object({
    member: z.int().describe("The member's number, starting from 0."),
    id: z.string().describe("The task's id."),
    task: z.string().optional().describe("The definition's name. Absent if there is no record of the task."),
    status: z
      .enum([...TASK_STATUSES, 'removed'])
      .describe("The first end of the member. If the member has not ended, the task's current status."),
    output: z
      .unknown()
      .optional()
      .describe('Present only if the member is completed and its task has not been deleted.'),
    error: z
      .object({ code: z.string(), message: z.string() })
      .optional()
      .describe('Why the member is dead or expired.'),
    deleted: z
      .literal(true)
      .optional()
      .describe("Present if the member has ended and the task's record has been deleted, with its output or error."),
  })
  .meta({ id: 'MemberResult' })

export type MemberResult = z.infer<typeof memberResultSchema>

export const groupResultsSchema = z
  .object({
    results: z.array(memberResultSchema).describe('The members in the order of their numbers.'),
    next: z.int().optional().describe('The `from` of the next page. Absent on the last page.'),
  })
  .meta({ id: 'GroupResults' })

export type GroupResults = z.infer<typeof groupResultsSchema>

export function groupPath(id: string): string {
  return `/v1/groups/${id}`
}

// Defines the states of a group, the results with which it ends, and the ways in which its members end.
import type { DurationRange } from '../definition/units/duration.ts'
import type { TaskStatus } from './states.ts'

/**
 * - `open`: members can be added.
 * - `sealed`: no members can be added, and some have not ended.
 * - `ended`: all members have ended. An ended group never changes again.
 */
export const GROUP_STATES = ['open', 'sealed', 'ended'] as const

export type GroupPhase = (typeof GROUP_STATES)[number]

/**
 * - `completed`: every member is completed.
 * - `cancelled`: the group was cancelled by request, or some of its members were cancelled or removed and none is dead or expired.
 * - `failed`: a member is dead or expired, or the group's total timeout has passed.
 */
export const GROUP_RESULTS = ['completed', 'failed', 'cancelled'] as const

export type GroupResult = (typeof GROUP_RESULTS)[number]

/** What happens to a group when a member is dead or has expired: the other members are cancelled, or they continue. */
export const GROUP_ON_ERROR = ['cancel', 'continue'] as const

export type GroupOnError = (typeof GROUP_ON_ERROR)[number]

/** Why a group was cancelled: by request, because a member is dead or has expired, or because of its total timeout. */
export const GROUP_CANCEL_REASONS = ['cancelled', 'first_error', 'group_timeout'] as const

export type GroupCancelReason = (typeof GROUP_CANCEL_REASONS)[number]

/** How a member has ended. A member is `removed` if its task was deleted or replaced before it had ended. */
export const MEMBER_ENDS = ['completed', 'dead', 'cancelled', 'expired', 'removed'] as const satisfies readonly (
  | TaskStatus
  | 'removed'
)[]

export type MemberEnd = (typeof MEMBER_ENDS)[number]

/** The maximum number of a group's members. */
export const MAX_GROUP_MEMBERS = 100_000
/** The maximum number of queues to which a group's members belong. */
export const MAX_GROUP_QUEUES = 16
/** The maximum number of members in one request. */
export const MAX_MEMBERS_AT_ONCE = 1_000
/** The range of a group's total timeout, which defaults to 7 days. */
export const GROUP_TOTAL_TIMEOUT: DurationRange = { min: '1s', max: '30d' }
/** The range of the time for which a group is kept after it has ended. It defaults to a day. */
export const GROUP_KEEP: DurationRange = { min: '1d', max: '30d' }

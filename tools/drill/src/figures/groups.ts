// The figures of groups, of follow-up tasks, and of compensations.

export interface GroupFigures {
  /** Time from the first error of a group to the last start of one of its members, and to the end of the group. */
  readonly lastStartMs?: number | undefined
  readonly groupEndedMs?: number | undefined
  /** The same time to the last start in a worker that was cut off from Redis. */
  readonly lastStartCutOffMs?: number
  /** Events that a reader has received, has not received, and has received more than once. */
  readonly events?: number
  readonly eventsLost?: number
  readonly eventsRepeated?: number
  /** By how many members the counts of a group that has ended differ from the ends of its members. */
  readonly groupMiscounted?: number
  /** Follow-up tasks that have run, and entries that are left in the outboxes. */
  readonly followUps?: number
  readonly outboxLeft?: number
  /** Tasks that were compensated. */
  readonly compensated?: number
  /** Tasks that should have been compensated and were not, and compensations beyond one for each of these tasks. */
  readonly compensationsWrong?: number
  /** Tasks whose worker was killed at another step than intended. */
  readonly stepsMissed?: number
}

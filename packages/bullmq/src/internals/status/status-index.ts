// The status index, which records which tasks of BullMQ's delayed set are scheduled or retrying, and which tasks of its failed set are
// dead, cancelled or expired.
//
// BullMQ has one set for each of these two groups. Bullpen divides each set into parts, which are sorted sets with the same scores, so that
// counting reads a set's size and listing reads a range. Every script that moves a task also moves it between the parts
// (../../store/lua/includes/place/delayed-set.lua, ../../store/lua/includes/place/failed-set.lua).
//
// The conservation law: accepted = the tasks in all statuses + removed. Only these two counters are kept, together with the number
// of ended tasks that have returned to their queue, and the number of bytes that the unfinished tasks take
// (../../store/lua/includes/task/task-charge.lua). Everything else is the size of a set, or follows from these numbers: a task has ended
// accepted + retried - unfinished times, which costs nothing when it ends. A BullMQ Queue or Worker without Bullpen's backend causes
// drift, which the leader repairs (index-repair.ts, bytes-recount.ts).

/** The parts of each divided set. A task that is added for an unknown reason belongs to the first part. */
export const PARTS = {
  delayed: ['scheduled', 'retrying'],
  failed: ['dead', 'cancelled', 'expired'],
} as const

export type Part = (typeof PARTS)[keyof typeof PARTS][number]

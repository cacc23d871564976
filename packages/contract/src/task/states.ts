// The states of attempts, workers and pools, the statuses of tasks, and the reasons that go with them.

/** The states of an attempt that is not over. */
export const OPEN_ATTEMPT_STATES = ['NEW', 'IN_PROCESS'] as const

/** How an attempt can end. Nobody moves an attempt out of these. */
export const ATTEMPT_END_STATES = [
  /** The handler returned output that the contract accepts. */
  'DONE_SUCCESS',
  /** The handler threw a failure that it declared. */
  'DONE_ERROR',
  /** Anything undeclared: the seeds' panic. */
  'RECOVER_ERR',
  /** A cancel of this task, or a hard stop of its worker. */
  'TERMINATED_STOP_SIGNAL',
  /** The attempt's context was closed: a drain's deadline, a closed parent, a lost lock, or the handler's own wish: a snooze, a held queue. */
  'TERMINATED_CTX_CLOSED',
  /** A time limit passed; the reason says which. */
  'TERMINATED_TIMEOUT',
] as const

export const ATTEMPT_STATES = [...OPEN_ATTEMPT_STATES, ...ATTEMPT_END_STATES] as const

export type AttemptState = (typeof ATTEMPT_STATES)[number]
export type AttemptEndState = (typeof ATTEMPT_END_STATES)[number]

/** Why an attempt ended so. DONE_SUCCESS has no reason; DONE_ERROR has the declared code instead. */
export const END_REASONS = {
  RECOVER_ERR: ['unexpected_error', 'invalid_output', 'escaped_error', 'isolate_died', 'out_of_memory', 'process_lost'],
  TERMINATED_STOP_SIGNAL: ['cancelled', 'slot_stopped', 'queue_shutdown'],
  TERMINATED_CTX_CLOSED: ['drain', 'parent_closed', 'lock_lost', 'snoozed', 'rate_limited'],
  TERMINATED_TIMEOUT: ['run_timeout', 'heartbeat_timeout', 'total_timeout', 'queue_timeout'],
} as const satisfies Partial<Record<AttemptEndState, readonly string[]>>

export type EndReason<S extends keyof typeof END_REASONS = keyof typeof END_REASONS> = (typeof END_REASONS)[S][number]

/** Why a task was cancelled: somebody asked for it, or its whole queue was shut down. */
export type CancelReason = Exclude<EndReason<'TERMINATED_STOP_SIGNAL'>, 'slot_stopped'>

/** What a task is doing, as the API shows it. */
export const TASK_STATUSES = [
  /** Accepted, to start at a time to come. */
  'scheduled',
  /** Ready: the next free worker takes it. */
  'waiting',
  /** A worker runs it. */
  'active',
  /** An attempt failed; it waits its backoff and holds no worker. */
  'retrying',
  /** Ended well; the output is stored. */
  'completed',
  /** Ended badly: attempts used up, or the failure is permanent. Kept in the dead-letter list. */
  'dead',
  /** Ended by a decision from outside; not a failure. */
  'cancelled',
  /** Waited longer than it may; never started. */
  'expired',
] as const

export type TaskStatus = (typeof TASK_STATUSES)[number]

/** The statuses that nothing follows on its own. */
export const FINAL_STATUSES = ['completed', 'dead', 'cancelled', 'expired'] as const satisfies readonly TaskStatus[]

export type FinalStatus = (typeof FINAL_STATUSES)[number]

export function isFinal(status: TaskStatus): status is FinalStatus {
  return (FINAL_STATUSES as readonly TaskStatus[]).includes(status)
}

/** A pool is one process's workers on one queue. */
export const POOL_STATES = [
  'NEW',
  'BG_RUNNING',
  'ONLINE_RUNNING',
  'ONLINE_DONE',
  'INCOMPLETE_DONE',
  'SHUTTING_DOWN',
  'SHUTDOWN',
  'TERMINATE_TIMEOUT',
  'RECOVER_ERR',
] as const

export type PoolState = (typeof POOL_STATES)[number]

/** A worker is one slot of a pool: it runs one attempt at a time. */
export const SLOT_STATES = [
  'NEW',
  'IDLE',
  'WORKING',
  /** This worker was stopped, or its pool drains. */
  'TERMINATING_STOP_SIGNAL',
  /** The pool's parent was closed, or the pool drains hard. */
  'TERMINATING_PARENT_CTX_CLOSED',
  /** The given set of an online pool has ended. */
  'TERMINATING_TASK_CH_CLOSED',
  'TERMINATED',
  /** What brings it tasks has failed; it is started again after a wait. */
  'RECOVER_ERR',
] as const

export type SlotState = (typeof SLOT_STATES)[number]

/** `short` tasks run with next to no overhead and can't be timed or stopped; `long` ones can. */
export type TaskKind = 'short' | 'long'

/** Where a handler runs: in the worker's process, in a thread, or in a child process of its own. */
export type Isolation = 'inline' | 'thread' | 'process'

// Defines the states of attempts, slots and pools, the task statuses, the end reasons, and the human-readable labels.

/** The states of an attempt that has not ended. */
export const OPEN_ATTEMPT_STATES = ['NEW', 'IN_PROCESS'] as const

/** How an attempt can end. These states are final. */
export const ATTEMPT_END_STATES = [
  /** The handler returned an output that the contract accepts. */
  'DONE_SUCCESS',
  /** The handler threw a declared failure. */
  'DONE_ERROR',
  /** The attempt panicked: it failed in a way that was not declared. */
  'RECOVER_ERR',
  /** The task was cancelled, or its slot was stopped hard. */
  'TERMINATED_STOP_SIGNAL',
  /** The attempt's context was closed: by a drain's deadline, a closed parent, a lost lock, a snooze or a rate limit. */
  'TERMINATED_CTX_CLOSED',
  /** A timeout expired. The end reason identifies which one. */
  'TERMINATED_TIMEOUT',
] as const

export const ATTEMPT_STATES = [...OPEN_ATTEMPT_STATES, ...ATTEMPT_END_STATES] as const

export type AttemptState = (typeof ATTEMPT_STATES)[number]
export type AttemptEndState = (typeof ATTEMPT_END_STATES)[number]

/** The human-readable label for each attempt state, used in titles, tables, dashboards and log messages. */
export const ATTEMPT_STATE_LABELS = {
  NEW: 'not started',
  IN_PROCESS: 'running',
  DONE_SUCCESS: 'succeeded',
  DONE_ERROR: 'failed',
  RECOVER_ERR: 'panicked',
  TERMINATED_STOP_SIGNAL: 'cancelled',
  TERMINATED_CTX_CLOSED: 'interrupted',
  TERMINATED_TIMEOUT: 'timed out',
} as const satisfies Readonly<Record<AttemptState, string>>

/** Why an attempt ended as it did. DONE_SUCCESS has no reason, and DONE_ERROR has the declared code instead. */
export const END_REASONS = {
  RECOVER_ERR: [
    'unexpected_error',
    'invalid_output',
    'invalid_follow_up',
    'escaped_error',
    'isolate_died',
    'out_of_memory',
    'process_lost',
    'poison',
  ],
  TERMINATED_STOP_SIGNAL: ['cancelled', 'slot_stopped', 'queue_shutdown'],
  TERMINATED_CTX_CLOSED: ['drain', 'parent_closed', 'lock_lost', 'snoozed', 'rate_limited'],
  TERMINATED_TIMEOUT: ['run_timeout', 'heartbeat_timeout', 'total_timeout', 'queue_timeout'],
} as const satisfies Partial<Record<AttemptEndState, readonly string[]>>

export type EndReason<S extends keyof typeof END_REASONS = keyof typeof END_REASONS> = (typeof END_REASONS)[S][number]

/** Why a task was cancelled: by request, or because its whole queue was shut down. */
export type CancelReason = Exclude<EndReason<'TERMINATED_STOP_SIGNAL'>, 'slot_stopped'>

/** A task's status, as the API returns it. */
export const TASK_STATUSES = [
  /** The task has been accepted and starts at a later time. */
  'scheduled',
  /** The task is ready, and the next free slot takes it. */
  'waiting',
  /** A slot is running the task. */
  'active',
  /** An attempt failed. The task waits for its backoff and does not occupy a slot. */
  'retrying',
  /** The task succeeded, and its output is stored. */
  'completed',
  /** The task has no attempts left or failed permanently. It stays in the list of dead tasks. */
  'dead',
  /** The task was ended by request, which is not a failure. */
  'cancelled',
  /** The task's queue timeout or total timeout expired before the first attempt, so the task was never started. */
  'expired',
] as const

export type TaskStatus = (typeof TASK_STATUSES)[number]

/** The statuses that a task never leaves on its own. */
export const FINAL_STATUSES = ['completed', 'dead', 'cancelled', 'expired'] as const satisfies readonly TaskStatus[]

export type FinalStatus = (typeof FINAL_STATUSES)[number]

export function isFinal(status: TaskStatus): status is FinalStatus {
  return (FINAL_STATUSES as readonly TaskStatus[]).includes(status)
}

/** A pool is the slots of one worker on one queue. */
export const POOL_STATES = [
  'NEW',
  /** The pool fetches and runs tasks until it is drained. */
  'BG_RUNNING',
  /** The pool runs until a given set of tasks, or a group, has ended. */
  'ONLINE_RUNNING',
  /** Every task of the given set, or the group, has ended. */
  'ONLINE_DONE',
  /** The pool was drained before every task of the given set, or the group, had ended. */
  'INCOMPLETE_DONE',
  'SHUTTING_DOWN',
  /** The pool is drained, and every task has finished or was requeued. */
  'SHUTDOWN',
  /** The pool is drained, but some tasks were abandoned, or the store did not confirm their end. */
  'TERMINATE_TIMEOUT',
  /** An error occurred that does not belong to an attempt. The pool drains hard and then stays in this state. */
  'RECOVER_ERR',
] as const

export type PoolState = (typeof POOL_STATES)[number]

/** The human-readable label for each pool state. */
export const POOL_STATE_LABELS = {
  NEW: 'not started',
  BG_RUNNING: 'running',
  ONLINE_RUNNING: 'running a given set',
  ONLINE_DONE: 'finished',
  INCOMPLETE_DONE: 'stopped before the set was finished',
  SHUTTING_DOWN: 'draining',
  SHUTDOWN: 'stopped',
  TERMINATE_TIMEOUT: 'drain timed out',
  RECOVER_ERR: 'panicked',
} as const satisfies Readonly<Record<PoolState, string>>

/** A slot runs one attempt at a time. */
export const SLOT_STATES = [
  'NEW',
  'IDLE',
  'WORKING',
  /** The slot was stopped, or its pool is draining. */
  'TERMINATING_STOP_SIGNAL',
  /** The pool's parent was closed, or the pool is draining in hard mode. */
  'TERMINATING_PARENT_CTX_CLOSED',
  /** The pool is draining in light mode, or its given set of tasks has ended. */
  'TERMINATING_TASK_CH_CLOSED',
  'TERMINATED',
  /** Fetching failed. The slot becomes idle again when fetching restarts. */
  'RECOVER_ERR',
] as const

export type SlotState = (typeof SLOT_STATES)[number]

/** The human-readable label for each slot state. */
export const SLOT_STATE_LABELS = {
  NEW: 'not started',
  IDLE: 'idle',
  WORKING: 'running a task',
  TERMINATING_STOP_SIGNAL: 'stopping',
  TERMINATING_PARENT_CTX_CLOSED: 'stopping now',
  TERMINATING_TASK_CH_CLOSED: 'finishing',
  TERMINATED: 'stopped',
  RECOVER_ERR: 'restarting',
} as const satisfies Readonly<Record<SlotState, string>>

/** `short` tasks run with almost no overhead but cannot be timed or stopped. `long` tasks can be timed and stopped. */
export type TaskKind = 'short' | 'long'

/** Where a handler runs: in the worker's own thread, in another thread, or in a child process of its own. */
export const ISOLATIONS = ['inline', 'thread', 'process'] as const

export type Isolation = (typeof ISOLATIONS)[number]

// Models how an attempt must end. The model is written independently of the engine, so that model tests can compare the two.

/** The ways in which a handler may leave its attempt. */
export const LEAVINGS = {
  'valid output': { state: 'DONE_SUCCESS', reason: undefined, follows: 'completed' },
  'invalid output': { state: 'RECOVER_ERR', reason: 'invalid_output', follows: 'again' },
  'declares a retryable failure': { state: 'DONE_ERROR', reason: undefined, follows: 'again' },
  'declares a permanent failure': { state: 'DONE_ERROR', reason: undefined, follows: 'dead' },
  'throws an undeclared error': { state: 'RECOVER_ERR', reason: 'unexpected_error', follows: 'again' },
  'is rate limited': { state: 'TERMINATED_CTX_CLOSED', reason: 'rate_limited', follows: 'requeued' },
  snoozes: { state: 'TERMINATED_CTX_CLOSED', reason: 'snoozed', follows: 'snoozed' },
} as const

/**
 * The causes that may interrupt a long attempt. `outputCounts` says whether valid output still counts if it is returned within the
 * grace period.
 */
export const INTERRUPTIONS = {
  run_timeout: { state: 'TERMINATED_TIMEOUT', follows: 'again', outputCounts: false },
  heartbeat_timeout: { state: 'TERMINATED_TIMEOUT', follows: 'again', outputCounts: false },
  total_timeout: { state: 'TERMINATED_TIMEOUT', follows: 'dead', outputCounts: false },
  cancelled: { state: 'TERMINATED_STOP_SIGNAL', follows: 'cancelled', outputCounts: false },
  queue_shutdown: { state: 'TERMINATED_STOP_SIGNAL', follows: 'cancelled', outputCounts: false },
  slot_stopped: { state: 'TERMINATED_STOP_SIGNAL', follows: 'requeued', outputCounts: true },
  drain: { state: 'TERMINATED_CTX_CLOSED', follows: 'requeued', outputCounts: true },
  parent_closed: { state: 'TERMINATED_CTX_CLOSED', follows: 'requeued', outputCounts: true },
  lock_lost: { state: 'TERMINATED_CTX_CLOSED', follows: 'lost', outputCounts: false },
  escaped_error: { state: 'RECOVER_ERR', follows: 'again', outputCounts: false },
} as const

export type Leaving = keyof typeof LEAVINGS
export type InterruptedBy = keyof typeof INTERRUPTIONS

export interface ExpectedEnd {
  readonly state: string
  readonly reason: string | undefined
  readonly verdict: string
}

/** The properties of a task when its attempt ends. All times are in milliseconds on the same clock. */
export interface EndOf {
  readonly attempt: number
  readonly maxAttempts: number
  readonly endsAt: number
  readonly deadlineAt: number
  /** Whether the definition sets `onInterrupt: 'fail'`. */
  readonly fragile: boolean
  /** How long the handler snoozes the task. */
  readonly snoozeMs: number
}

/** Applies the default retry policy without jitter: a delay of 1 s that doubles after each attempt. */
function again({ attempt, maxAttempts, endsAt, deadlineAt }: EndOf): 'retrying' | 'dead' {
  if (attempt >= maxAttempts) return 'dead'
  return endsAt + 1_000 * 2 ** (attempt - 1) < deadlineAt ? 'retrying' : 'dead'
}

export function endByLeaving(leaving: Leaving, task: EndOf): ExpectedEnd {
  if (leaving === 'snoozes' && task.endsAt + task.snoozeMs >= task.deadlineAt)
    return endByInterruption('total_timeout', task)
  const { state, reason, follows } = LEAVINGS[leaving]
  return { state, reason, verdict: follows === 'again' ? again(task) : follows }
}

export function endByInterruption(by: InterruptedBy, task: EndOf): ExpectedEnd {
  const { state, follows } = INTERRUPTIONS[by]
  const verdict = follows === 'requeued' && task.fragile ? 'dead' : follows
  return { state, reason: by, verdict: verdict === 'again' ? again(task) : verdict }
}

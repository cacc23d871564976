// Defines which attempt outcomes count as failures. Metrics count failures, and log lines include their errors.
import type { EndReason } from '@bullpen/contract'

/** `declared` means that the handler threw a declared failure, which has a code instead of a reason. */
export type FailureReason = EndReason | 'declared'

/**
 * Maps each reason for an attempt's end to whether it is a failure. A cancellation, drain, snooze or rate limit is not a failure.
 */
export const IS_FAILURE = {
  declared: true,
  unexpected_error: true,
  invalid_output: true,
  invalid_follow_up: true,
  escaped_error: true,
  isolate_died: true,
  out_of_memory: true,
  process_lost: true,
  poison: true,
  cancelled: false,
  slot_stopped: false,
  queue_shutdown: false,
  drain: false,
  parent_closed: false,
  lock_lost: true,
  run_timeout: true,
  heartbeat_timeout: true,
  total_timeout: true,
  queue_timeout: false,
  snoozed: false,
  rate_limited: false,
} as const satisfies Readonly<Record<FailureReason, boolean>>

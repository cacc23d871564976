// Defines the errors that Bullpen raises. Each has a code from a closed list.
import type { FieldError } from './field-error.ts'

/** The code of every error that Bullpen throws or returns. Codes are stable, but messages may change. */
export const ERROR_CODES = [
  // caused by a request
  'malformed_json',
  'invalid_request',
  'unknown_task',
  'invalid_input',
  'invalid_follow_up',
  'payload_too_large',
  'unsupported_media_type',
  'request_timeout',
  'headers_too_large',
  'unsupported_transfer_coding',
  'unsupported_http_version',
  'invalid_cursor',
  'unauthorized',
  'forbidden',
  'task_not_found',
  'cancel_not_found',
  'task_not_dead',
  'already_compensated',
  'dead_task_request_not_found',
  'queue_not_found',
  'no_events',
  'worker_not_found',
  'command_not_found',
  'schedule_not_found',
  'schedule_name_taken',
  'group_not_found',
  'run_not_found',
  'run_not_ended',
  'run_id_taken',
  'unknown_pipeline',
  'group_sealed',
  'group_ended',
  'group_full',
  'command_id_reused',
  'idempotency_key_reused',
  'unique_key_taken',
  'route_not_found',
  'method_not_allowed',
  // caused by the state of Bullpen or Redis
  'redis_unavailable',
  'not_replicated',
  'redis_full',
  'idempotency_full',
  'unsafe_redis',
  'too_many_cancels',
  'too_many_dead_task_requests',
  'group_busy',
  'unsupported_redis',
  'incompatible_schema',
  'queue_draining',
  'fleet_too_old',
  'queue_full',
  'enqueue_rate_exceeded',
  'shutting_down',
  'internal_error',
  // caused by code or configuration
  'invalid_definition',
  'invalid_duration',
  'invalid_configuration',
  'invalid_handler',
  'isolation_unavailable',
  'illegal_transition',
  'wrong_state',
  'duplicate_child_key',
  'invalid_result',
  'stage_failed',
  'source_failed',
  'pipeline_cancelled',
  // caused by stored data, or by another worker
  'unreadable_envelope',
  'unreadable_payload',
  'input_gone',
  'invalid_item',
  'source_changed',
  'source_replaced',
  'lock_lost',
] as const

export type ErrorCode = (typeof ERROR_CODES)[number]

interface BullpenErrorOptions {
  readonly cause?: unknown
  readonly errors?: readonly FieldError[]
  readonly taskId?: string
  readonly hadNoEffect?: boolean
}

/**
 * An error raised by Bullpen. Programs should use `code`, because the message is meant for people. `cause` is the underlying
 * error.
 */
export class BullpenError extends Error {
  override readonly name = 'BullpenError'
  readonly code: ErrorCode
  readonly errors: readonly FieldError[]
  /** With the code `unique_key_taken`, the id of the task that has the unique key. With `not_replicated`, the id of the stored task. */
  readonly taskId: string | undefined
  /** With the code `redis_unavailable`, whether the call that failed is known to have changed nothing. */
  readonly hadNoEffect: boolean

  constructor(code: ErrorCode, message: string, options: BullpenErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.errors = options.errors ?? []
    this.taskId = options.taskId
    this.hadNoEffect = options.hadNoEffect ?? false
  }
}

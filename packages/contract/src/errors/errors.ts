// Defines the errors that Bullpen raises. Each has a code from a closed list.
import type { FieldError } from './field-error.ts'

/**
 * Every error that Bullpen throws or returns, by its code, with the status and the title of its problem over HTTP. Codes are stable, but
 * messages may change. An error that a caller cannot cause has status 500.
 */
export const ERRORS = {
  // caused by a request
  malformed_json: { status: 400, title: 'Malformed JSON' },
  invalid_request: { status: 400, title: 'Invalid request' },
  unknown_task: { status: 422, title: 'Unknown task' },
  invalid_input: { status: 422, title: "Input does not match the task's contract" },
  invalid_follow_up: { status: 422, title: "A follow-up of the task's definition is invalid" },
  payload_too_large: { status: 413, title: 'Request too large' },
  unsupported_media_type: { status: 415, title: 'Unsupported media type' },
  request_timeout: { status: 408, title: 'Request timed out' },
  headers_too_large: { status: 431, title: 'Headers too large' },
  unsupported_transfer_coding: { status: 501, title: 'Unsupported transfer coding' },
  unsupported_http_version: { status: 505, title: 'Unsupported version of HTTP' },
  invalid_cursor: { status: 400, title: 'Invalid cursor' },
  unauthorized: { status: 401, title: 'Unauthorized' },
  forbidden: { status: 403, title: 'Forbidden' },
  task_not_found: { status: 404, title: 'Task not found' },
  cancel_not_found: { status: 404, title: 'Cancel not found' },
  task_not_dead: { status: 409, title: 'Task is not dead' },
  already_compensated: { status: 409, title: 'Task is already compensated' },
  dead_task_request_not_found: { status: 404, title: 'Dead-task request not found' },
  queue_not_found: { status: 404, title: 'Queue not found' },
  no_events: { status: 409, title: 'No events' },
  worker_not_found: { status: 404, title: 'Worker not found' },
  command_not_found: { status: 404, title: 'Command not found' },
  schedule_not_found: { status: 404, title: 'Schedule not found' },
  schedule_name_taken: { status: 409, title: 'Schedule name taken' },
  group_not_found: { status: 404, title: 'Group not found' },
  run_not_found: { status: 404, title: 'Run not found' },
  run_not_ended: { status: 409, title: 'Run has not ended' },
  run_id_taken: { status: 409, title: 'Run id taken' },
  unknown_pipeline: { status: 404, title: 'Unknown pipeline' },
  group_sealed: { status: 409, title: 'Group is sealed' },
  group_ended: { status: 409, title: 'Group has ended' },
  group_full: { status: 409, title: 'Group is full' },
  command_id_reused: { status: 422, title: 'Command id already used' },
  idempotency_key_reused: { status: 422, title: 'Idempotency key already used' },
  unique_key_taken: { status: 409, title: 'Unique key taken' },
  route_not_found: { status: 404, title: 'No such route' },
  method_not_allowed: { status: 405, title: 'Method not allowed' },
  // caused by the state of Bullpen or Redis
  redis_unavailable: { status: 503, title: 'Redis unavailable' },
  not_replicated: { status: 503, title: 'No replica has the task yet' },
  redis_full: { status: 503, title: 'Redis is full' },
  idempotency_full: { status: 503, title: 'No memory for idempotency keys' },
  unsafe_redis: { status: 503, title: 'Redis may delete tasks' },
  too_many_cancels: { status: 429, title: 'Too many unfinished cancellations' },
  too_many_dead_task_requests: { status: 429, title: 'Too many unfinished dead-task requests' },
  group_busy: { status: 429, title: 'Too many members wait to be enqueued' },
  unsupported_redis: { status: 500, title: 'Unsupported version of Redis' },
  incompatible_schema: { status: 500, title: 'Incompatible data in Redis' },
  queue_draining: { status: 503, title: 'Queue is draining' },
  fleet_too_old: { status: 503, title: 'A worker is too old for the task' },
  queue_full: { status: 429, title: 'Queue is full' },
  enqueue_rate_exceeded: { status: 429, title: 'Rate of the API key exceeded' },
  shutting_down: { status: 503, title: 'API is shutting down' },
  internal_error: { status: 500, title: 'Internal error' },
  // caused by code or configuration
  invalid_definition: { status: 500, title: 'Invalid task definition' },
  invalid_duration: { status: 422, title: 'Invalid duration' },
  invalid_configuration: { status: 500, title: 'Invalid configuration' },
  invalid_handler: { status: 500, title: 'Invalid handler' },
  isolation_unavailable: { status: 500, title: 'Isolation unavailable' },
  illegal_transition: { status: 500, title: 'Illegal state transition' },
  wrong_state: { status: 409, title: 'Not possible in this state' },
  duplicate_child_key: { status: 500, title: 'Duplicate child key' },
  invalid_result: { status: 500, title: 'Invalid result' },
  stage_failed: { status: 500, title: 'Stage of a pipeline failed' },
  source_failed: { status: 500, title: 'Source of a pipeline failed' },
  pipeline_cancelled: { status: 500, title: 'Pipeline was cancelled' },
  // caused by stored data, or by another worker
  unreadable_envelope: { status: 500, title: 'Unreadable task envelope' },
  unreadable_payload: { status: 500, title: 'Unreadable task payload' },
  input_gone: { status: 500, title: 'Input no longer kept' },
  invalid_item: { status: 500, title: 'Invalid item' },
  source_changed: { status: 500, title: 'Source changed' },
  source_replaced: { status: 500, title: 'Source replaced' },
  lock_lost: { status: 500, title: 'Lock lost' },
} as const satisfies Readonly<Record<string, { readonly status: number; readonly title: string }>>

export type ErrorCode = keyof typeof ERRORS

export const ERROR_CODES = Object.keys(ERRORS) as readonly ErrorCode[]

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

// The errors that Bullpen itself raises, each with a code from a closed list.

/** Every code that Bullpen answers or throws. Callers may rely on them; messages may change. */
export const ERROR_CODES = [
  // what a caller sent
  'malformed_json',
  'invalid_request',
  'unknown_task',
  'invalid_input',
  'payload_too_large',
  'unsupported_media_type',
  'invalid_cursor',
  'unauthorized',
  'forbidden',
  'task_not_found',
  'cancel_not_found',
  'queue_not_found',
  'worker_not_found',
  'command_not_found',
  'command_id_reused',
  'route_not_found',
  'method_not_allowed',
  // what stands in the way on our side
  'redis_unavailable',
  'queue_draining',
  'shutting_down',
  'internal_error',
  // what a programmer or operator wrote
  'invalid_definition',
  'invalid_duration',
  'invalid_configuration',
  'invalid_handler',
  'isolation_unavailable',
  'illegal_transition',
  'wrong_state',
  'duplicate_key',
  'invalid_result',
  // what a worker found in the queue
  'unreadable_envelope',
  'lock_lost',
] as const

export type ErrorCode = (typeof ERROR_CODES)[number]

/** One place in the input that is wrong: a JSON path such as `input.n`, and what is wrong there. */
export interface FieldError {
  readonly path: string
  readonly message: string
}

interface BullpenErrorOptions {
  readonly cause?: unknown
  readonly errors?: readonly FieldError[]
}

/** An error of Bullpen's own; `code` says which, the message gives the numbers, `cause` what led to it. */
export class BullpenError extends Error {
  override readonly name = 'BullpenError'
  readonly code: ErrorCode
  readonly errors: readonly FieldError[]

  constructor(code: ErrorCode, message: string, options: BullpenErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.errors = options.errors ?? []
  }
}

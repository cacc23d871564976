// Defines the error for calls that the API or Redis rejected, or that got no usable response.
import type { ErrorCode } from '../errors/errors.ts'
import { type FieldError, fieldErrorText } from '../errors/field-error.ts'

/**
 * `unreachable` means that no response arrived, in which case `cause` contains the reason. `unexpected_response` means that the
 * response did not come from a Bullpen API, in which case `detail` contains its first characters.
 */
export type ClientErrorCode = ErrorCode | 'unreachable' | 'unexpected_response'

/**
 * What a failed call may have changed. `refused` means that the call had no effect: it was never sent, or the API or Redis
 * rejected it. `unknown` means that the call may have taken effect, because it was sent and no valid
 * response arrived.
 */
export type CallOutcome = 'refused' | 'unknown'

interface ProblemDetails {
  readonly code: ClientErrorCode
  /** Defaults to `unknown`. */
  readonly outcome?: CallOutcome
  /** The HTTP status, or undefined if no response arrived. */
  readonly status?: number | undefined
  readonly detail?: string | undefined
  readonly errors?: readonly FieldError[] | undefined
  readonly requestId?: string | undefined
  readonly taskId?: string | undefined
  readonly retryAfterMs?: number | undefined
  readonly cause?: unknown
}

/** A failed call, with the API's problem details (RFC 9457). Programs should rely on `code`, because messages may change. */
export class ProblemError extends Error {
  override readonly name = 'ProblemError'
  readonly code: ClientErrorCode
  /**
   * `refused` if the call had no effect, and `unknown` if it may have taken effect. If the client has sent the call several times,
   * `unknown` means that at least one of these tries may have taken effect.
   */
  readonly outcome: CallOutcome
  /** The HTTP status, or undefined if no response arrived or the call was not made over HTTP. */
  readonly status: number | undefined
  /** A sentence that describes the problem. */
  readonly detail: string | undefined
  /** The invalid parts of the request, at most 20. */
  readonly errors: readonly FieldError[]
  /** The request's id, which is also in the API's logs. Undefined if no response arrived. */
  readonly requestId: string | undefined
  /**
   * The id under which the task may have been stored. If the code is `unique_key_taken`, the id of the task that has the unique key.
   * If it is `not_replicated`, the id of the stored task.
   * Undefined in all other cases, and whenever the id is not known.
   */
  readonly taskId: string | undefined
  /** How long the API asks the client to wait before the next try, in ms. */
  readonly retryAfterMs: number | undefined

  constructor(details: ProblemDetails) {
    const { code, outcome = 'unknown', status, detail, errors = [], requestId, taskId, retryAfterMs, cause } = details
    super(messageOf(code, detail, errors), cause === undefined ? undefined : { cause })
    this.code = code
    this.outcome = outcome
    this.status = status
    this.detail = detail
    this.errors = errors
    this.requestId = requestId
    this.taskId = taskId
    this.retryAfterMs = retryAfterMs
  }
}

/** Returns `code: detail`, followed by the fields that the detail does not mention. */
function messageOf(code: string, detail: string | undefined, errors: readonly FieldError[]): string {
  const fields = errors.map(fieldErrorText).filter((text) => !detail?.includes(text))
  return [code, detail, fields.join('; ')].filter(Boolean).join(': ')
}

// Defines the error for requests that the API rejected or that did not get a usable response.
import type { ErrorCode, FieldError, Problem } from '@bullpen/contract'
import { ERROR_CODES, fieldErrorText } from '@bullpen/contract/internal'

/**
 * `unreachable` means that no response arrived, in which case `cause` contains the reason. `unexpected_response` means that the
 * response did not come from a Bullpen API.
 */
export type ClientErrorCode = ErrorCode | 'unreachable' | 'unexpected_response'

interface ProblemDetails {
  readonly code: ClientErrorCode
  /** The HTTP status, or undefined if no response arrived. */
  readonly status?: number
  readonly detail?: string
  readonly errors?: readonly FieldError[]
  readonly taskId?: string
  readonly retryAfterMs?: number | undefined
  readonly cause?: unknown
}

/** The API's problem details (RFC 9457) as an error. Programs should rely on `code`, because messages may change. */
export class ProblemError extends Error {
  override readonly name = 'ProblemError'
  readonly code: ClientErrorCode
  /** The HTTP status, or undefined if no response arrived. */
  readonly status: number | undefined
  /** A sentence that describes the problem. */
  readonly detail: string | undefined
  /** The invalid parts of the request, at most 20. */
  readonly errors: readonly FieldError[]
  /**
   * Set if an enqueue failed although the task may have been stored. Look the task up by this id before you enqueue it again. With
   * the code `unique_key_taken`, this is the task that has the unique key.
   */
  readonly taskId: string | undefined
  /** How long the API asks the client to wait before the next try, in ms. */
  readonly retryAfterMs: number | undefined

  constructor({ code, status, detail, errors = [], taskId, retryAfterMs, cause }: ProblemDetails) {
    super(messageOf(code, detail, errors), cause === undefined ? undefined : { cause })
    this.code = code
    this.status = status
    this.detail = detail
    this.errors = errors
    this.taskId = taskId
    this.retryAfterMs = retryAfterMs
  }
}

/** Returns `code: detail`, followed by the fields that the detail does not mention. */
function messageOf(code: string, detail: string | undefined, errors: readonly FieldError[]): string {
  const fields = errors.map(fieldErrorText).filter((text) => !detail?.includes(text))
  return [code, detail, fields.join('; ')].filter(Boolean).join(': ')
}

/** Creates the error for a response whose status is not a success. `body` is the text of the response. */
export function problemIn(response: Response, body: string): ProblemError {
  const { status } = response
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN)
  const retryAfterMs = seconds >= 0 ? seconds * 1_000 : undefined
  const problem = parsed(body)
  if (!isProblem(problem)) {
    const detail = `the HTTP ${status} response has no problem details; is this the address of a Bullpen API?`
    return new ProblemError({ code: 'unexpected_response', status, detail, retryAfterMs })
  }
  const { code, detail, errors, taskId } = problem
  return new ProblemError({
    code,
    status,
    retryAfterMs,
    ...(detail === undefined ? {} : { detail }),
    ...(errors === undefined ? {} : { errors }),
    ...(taskId === undefined ? {} : { taskId }),
  })
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}

function isProblem(value: unknown): value is Problem {
  return (
    typeof value === 'object' &&
    value !== null &&
    'code' in value &&
    (ERROR_CODES as readonly unknown[]).includes(value.code)
  )
}

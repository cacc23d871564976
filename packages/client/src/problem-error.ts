// The error for every request that the API refused or that got no usable answer.
import type { ErrorCode, FieldError, Problem } from '@bullpen/contract'
import { ERROR_CODES } from '@bullpen/contract/internal'

/** `unreachable`: no answer came; the cause says why. `unexpected_answer`: what came was not from a Bullpen API. */
export type ClientErrorCode = ErrorCode | 'unreachable' | 'unexpected_answer'

interface Details {
  readonly code: ClientErrorCode
  /** Of the HTTP answer; undefined when none came. */
  readonly status?: number
  readonly detail?: string
  readonly errors?: readonly FieldError[]
  readonly taskId?: string
  readonly retryAfterMs?: number | undefined
  readonly cause?: unknown
}

/** What the API said, as problem details (RFC 9457); decide by `code`. */
export class ProblemError extends Error {
  override readonly name = 'ProblemError'
  readonly code: ClientErrorCode
  readonly status: number | undefined
  /** What is wrong, in a sentence; the errors are told beside it. */
  readonly detail: string | undefined
  /** Each place in the input that is wrong. */
  readonly errors: readonly FieldError[]
  /** With a 5xx on enqueue: the task may have been accepted; look it up by this id before sending it again. */
  readonly taskId: string | undefined
  /** How long the API asks to wait, in ms. */
  readonly retryAfterMs: number | undefined

  constructor({ code, status, detail, errors = [], taskId, retryAfterMs, cause }: Details) {
    const where = errors.map(({ path, message }) => `${path}: ${message}`).join('; ')
    super([code, detail, where].filter(Boolean).join(': '), cause === undefined ? undefined : { cause })
    this.code = code
    this.status = status
    this.detail = detail
    this.errors = errors
    this.taskId = taskId
    this.retryAfterMs = retryAfterMs
  }
}

/** The error in an answer that is not a success. `body` is its text. */
export function problemIn(response: Response, body: string): ProblemError {
  const { status } = response
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN)
  const retryAfterMs = seconds >= 0 ? seconds * 1_000 : undefined
  const problem = parsed(body)
  if (!isProblem(problem)) {
    const detail = `HTTP ${status} without problem details; is this the address of a Bullpen API?`
    return new ProblemError({ code: 'unexpected_answer', status, detail, retryAfterMs })
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

// Reads the problem details (RFC 9457) of a response whose status is not a success.
import type { BulkResult, Problem } from '@bullpen/contract'
import { type CallOutcome, ProblemError, REFUSALS } from '@bullpen/contract/internal'
import type { HttpResponse } from './send.ts'
import { someOf, text, whole, word } from './shape.ts'

type ResultProblem = Extract<BulkResult, { readonly error: unknown }>['error']

/** Creates the error for a response. `body` is the text of the response. `request` describes the request. */
export function problemIn(
  response: Pick<HttpResponse, 'status' | 'headers'>,
  body: string,
  request: string,
): ProblemError {
  const { status, headers } = response
  const seconds = Number(headers.get('retry-after') ?? Number.NaN)
  const retryAfterMs = seconds >= 0 ? seconds * 1_000 : undefined
  const requestId = headers.get('x-request-id') ?? undefined
  const problem = parsed(body)
  if (!isProblem(problem)) {
    const outcome = status < 500 ? 'refused' : 'unknown'
    const detail = `${request}: the HTTP ${status} response is not a problem that a Bullpen API sends; it ${beginningOf(body)}; check the API's address and version, and any proxy in front of it`
    return new ProblemError({ code: 'unexpected_response', outcome, status, detail, requestId, retryAfterMs })
  }
  const { code, detail, errors, taskId } = problem
  const outcome = outcomeOf(problem, status)
  return new ProblemError({
    ...{ code, outcome, status, detail, errors, taskId, retryAfterMs },
    requestId: problem.requestId ?? requestId,
  })
}

/** Creates the error for the problem of one task of a bulk request. */
export function errorOf(problem: ResultProblem): ProblemError {
  const { code, status, detail, errors, taskId, retryAfter } = problem
  const retryAfterMs = retryAfter === undefined ? undefined : retryAfter * 1_000
  const outcome = outcomeOf(problem, status)
  return new ProblemError({ code, outcome, status, detail, errors, taskId, retryAfterMs })
}

/** If Redis's reply to the API was lost, the API itself does not know whether the request took effect. */
function outcomeOf({ code, taskId, outcome }: Problem, status: number): CallOutcome {
  // An older API does not send an outcome.
  const isRefused = status < 500 || outcome === 'refused' || (taskId === undefined && REFUSALS.includes(code))
  return isRefused ? 'refused' : 'unknown'
}

/** The longest part of a foreign response that an error shows, in characters. */
const SHOWN_LENGTH = 100

/** Describes how a response that a Bullpen API has not sent begins. */
export function beginningOf(body: string): string {
  if (body === '') return 'is empty'
  return `begins with ${JSON.stringify(body.slice(0, SHOWN_LENGTH))}${body.length > SHOWN_LENGTH ? '…' : ''}`
}

/** Returns undefined if the text is not JSON. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** A newer API may send codes that this client does not know. */
const isProblem = someOf<Problem>({ code: word(), title: text, status: whole })

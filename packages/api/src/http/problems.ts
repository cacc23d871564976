// Errors as the caller sees them: problem details (RFC 9457) whose code is from the closed list.
import { BullpenError, type ErrorCode, type Problem } from '@bullpen/contract'
import { HTTP_STATUS, PROBLEM_CONTENT_TYPE } from '@bullpen/contract/internal'
import type { FastifyReply, FastifyRequest } from 'fastify'

/** What fastify and its plugins refuse with a status alone. */
const CODE_BY_STATUS: Readonly<Record<number, ErrorCode>> = {
  400: 'invalid_request',
  401: 'unauthorized',
  403: 'forbidden',
  404: 'route_not_found',
  405: 'method_not_allowed',
  413: 'payload_too_large',
  415: 'unsupported_media_type',
}

/** The members of every problem with this code. */
export function problemOf(error: BullpenError, instance: string): Problem {
  const status = HTTP_STATUS[error.code]
  return {
    type: `/problems/${error.code}`,
    title: titleOf(error.code),
    status,
    // What went wrong inside is for the log, not for the caller.
    ...(status === 500 ? {} : { detail: error.message }),
    instance,
    code: error.code,
    ...(error.errors.length === 0 ? {} : { errors: [...error.errors] }),
  }
}

/** Any error as one of ours: what nobody expected is `internal_error`. */
export function ourError(error: unknown, bodyLimit: number): BullpenError {
  if (error instanceof BullpenError) return error
  const { statusCode, message = '' } = error as { readonly statusCode?: unknown; readonly message?: string }
  const code = typeof statusCode === 'number' ? CODE_BY_STATUS[statusCode] : undefined
  if (code === undefined) return new BullpenError('internal_error', 'an unexpected error', { cause: error })
  return new BullpenError(code, DETAILS[code]?.(bodyLimit) ?? message, { cause: error })
}

const DETAILS: Readonly<Partial<Record<ErrorCode, (bodyLimit: number) => string>>> = {
  payload_too_large: (bodyLimit) => `the body is larger than ${bodyLimit} bytes`,
  unsupported_media_type: () => "the body's content type is application/json",
}

export function sendProblem(request: FastifyRequest, reply: FastifyReply, error: BullpenError): FastifyReply {
  const problem = problemOf(error, request.id)
  if (problem.code === 'unauthorized') reply.header('www-authenticate', 'Bearer realm="bullpen"')
  if (problem.status === 503) reply.header('retry-after', '1')
  // The task may be stored although the answer was lost: the caller can look it up by its id.
  const mayBeStored = problem.status >= 500 && problem.code !== 'queue_draining'
  const body = mayBeStored && request.taskId !== undefined ? { ...problem, taskId: request.taskId } : problem
  return reply
    .code(problem.status)
    .header('content-type', PROBLEM_CONTENT_TYPE)
    .serializer((payload: unknown) => JSON.stringify(payload))
    .send(body)
}

function titleOf(code: ErrorCode): string {
  const words = code.replaceAll('_', ' ').replace('json', 'JSON').replace('redis', 'Redis')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

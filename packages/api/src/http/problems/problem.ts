// Sends errors to the caller as problem details (RFC 9457), whose codes come from a closed list.

import {
  BullpenError,
  EnqueueRateError,
  type ErrorCode,
  type Problem,
  QueueFullError,
  type QueueLimitName,
} from '@bullpen/contract'
import { ERRORS, PROBLEM_CONTENT_TYPE, QUEUE_FULL_RETRY_AFTER_MS, REFUSALS } from '@bullpen/contract/internal'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { isCompressed } from '../json-body.ts'

/** The number of seconds after which a caller may repeat a request that was rejected with 429 or 503. */
const RETRY_AFTER_S = 1
/** The same number for certain problems. Records of idempotency keys expire at most once a minute. */
const OTHER_RETRY_AFTER_S: Readonly<Partial<Record<ErrorCode, number>>> = {
  idempotency_full: 60,
  queue_full: QUEUE_FULL_RETRY_AFTER_MS / 1_000,
}

/** The codes for errors from fastify and its plugins, because these errors have only a status. */
const CODE_BY_STATUS: Readonly<Record<number, ErrorCode>> = {
  400: 'invalid_request',
  401: 'unauthorized',
  403: 'forbidden',
  404: 'route_not_found',
  405: 'method_not_allowed',
  413: 'payload_too_large',
  // The router's status for a path parameter that is longer than any id.
  414: 'route_not_found',
  415: 'unsupported_media_type',
  431: 'headers_too_large',
}

/** Returns the problem for the error of a request. `hadEffect` says whether the request has stored something before it failed. */
export function problemOf(error: BullpenError, requestId: string, hadEffect = false): Problem {
  const { status, title } = ERRORS[error.code]
  return {
    type: `/problems/${error.code}`,
    title,
    status,
    // The message of an internal error appears only in the log.
    ...(status === 500 ? {} : { detail: error.message }),
    code: error.code,
    requestId,
    ...(error.errors.length === 0 ? {} : { errors: [...error.errors] }),
    ...(error.taskId === undefined ? {} : { taskId: error.taskId }),
    ...(status >= 500 && !hadEffect && !mayHaveTakenEffect(error) ? { outcome: 'refused' as const } : {}),
  }
}

/** Turns any error into a BullpenError. Unexpected errors become `internal_error`. */
export function toBullpenError(error: unknown, bodyLimit: number): BullpenError {
  if (error instanceof BullpenError) return error
  const { statusCode, message = '' } = error as { readonly statusCode?: unknown; readonly message?: string }
  const code = typeof statusCode === 'number' ? CODE_BY_STATUS[statusCode] : undefined
  if (code === undefined) return new BullpenError('internal_error', 'unexpected error', { cause: error })
  return new BullpenError(code, DETAILS[code]?.(bodyLimit) ?? message, { cause: error })
}

const DETAILS: Readonly<Partial<Record<ErrorCode, (bodyLimit: number) => string>>> = {
  payload_too_large: (bodyLimit) => `the body is larger than the limit of ${bodyLimit} bytes`,
  route_not_found: () => 'a part of the path is too long for any route; /openapi.json lists all routes',
  unsupported_media_type: () => 'expected a body with Content-Type: application/json',
}

interface RateLimitPolicy {
  readonly name: string
  /** The unit of the quota, if it is not a number of requests. */
  readonly unit?: string
}

/**
 * The limits in the RateLimit headers (draft-ietf-httpapi-ratelimit-headers-10). A policy without a window limits what exists at the
 * same time. An age is not a quota, and has no header.
 */
const RATE_LIMIT_POLICIES: Readonly<Partial<Record<QueueLimitName, RateLimitPolicy>>> = {
  maxTasks: { name: '"queue-tasks"' },
  maxBytes: { name: '"queue-bytes"', unit: '"content-bytes"' },
  maxUnfinishedTasks: { name: '"api-key-tasks"' },
}
const ENQUEUE_RATE_POLICIES = { allQueues: '"enqueue-rate"', oneQueue: '"queue-enqueue-rate"' } as const

/** Returns whether the request may have had its effect although it failed, because Redis's reply may have been lost. */
export function mayHaveTakenEffect(error: BullpenError): boolean {
  return ERRORS[error.code].status >= 500 && !REFUSALS.includes(error.code) && !error.hadNoEffect
}

export function sendProblem(request: FastifyRequest, reply: FastifyReply, error: BullpenError): FastifyReply {
  const problem = problemOf(error, request.id, request.hadEffect)
  if (problem.code === 'unauthorized') reply.header('www-authenticate', 'Bearer realm="bullpen"')
  // RFC 9110, section 12.5.3, allows Accept-Encoding only if the coding is the reason.
  if (problem.status === 415) {
    reply.headers(isCompressed(request.headers) ? { 'accept-encoding': 'identity' } : { accept: 'application/json' })
  }
  const retryAfter = retryAfterSeconds(error)
  if (retryAfter !== undefined) reply.header('retry-after', `${retryAfter}`)
  if (error instanceof QueueFullError) reply.headers(queueLimitHeaders(error))
  if (error instanceof EnqueueRateError) reply.headers(enqueueRateHeaders(error))
  // The id lets the caller look the task up.
  const body =
    mayHaveTakenEffect(error) && request.taskId !== undefined ? { taskId: request.taskId, ...problem } : problem
  return reply
    .code(problem.status)
    .header('content-type', PROBLEM_CONTENT_TYPE)
    .serializer((payload: unknown) => JSON.stringify(payload))
    .send(body)
}

function queueLimitHeaders({ reached }: QueueFullError): Readonly<Record<string, string>> {
  const policy = RATE_LIMIT_POLICIES[reached.limit]
  if (policy === undefined) return {}
  const { name, unit } = policy
  const quota = `${name};q=${reached.max}${unit === undefined ? '' : `;qu=${unit}`}`
  const rest = Math.max(0, reached.max - reached.found)
  return { 'ratelimit-policy': quota, ratelimit: `${name};r=${rest};t=${QUEUE_FULL_RETRY_AFTER_MS / 1_000}` }
}

/** The headers count whole seconds. If a rate's period is not a whole number of seconds, the policy has no window. */
function enqueueRateHeaders({ reached }: EnqueueRateError): Readonly<Record<string, string>> {
  const { queue, rate } = reached
  const policy = ENQUEUE_RATE_POLICIES[queue === undefined ? 'allQueues' : 'oneQueue']
  const seconds = rate.perMs / 1_000
  const window = Number.isInteger(seconds) ? `;w=${seconds}` : ''
  return {
    'ratelimit-policy': `${policy};q=${rate.max}${window}`,
    ratelimit: `${policy};r=${reached.tokens?.available ?? 0};t=${secondsUntilPermitted(reached)}`,
  }
}

/** Returns the number of seconds after which the caller may repeat the call. Returns undefined if a repeat would be rejected as well. */
export function retryAfterSeconds(error: BullpenError): number | undefined {
  if (error instanceof EnqueueRateError) return secondsUntilPermitted(error.reached)
  const { status } = ERRORS[error.code]
  return status === 429 || status === 503 ? (OTHER_RETRY_AFTER_S[error.code] ?? RETRY_AFTER_S) : undefined
}

/** Returns the number of seconds after which the rate permits the call. */
function secondsUntilPermitted({ retryAfterMs }: EnqueueRateError['reached']): number {
  return Math.max(RETRY_AFTER_S, Math.ceil(retryAfterMs / 1_000))
}

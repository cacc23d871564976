// Defines the default classifier, which decides which platform, network and database errors are expected failures, and which of
// these are retryable.
import type { Classifier, Failure } from '@bullpen/contract'

/** The operating system's error codes (errno), and whether another attempt may succeed. */
const SYSTEM_ERRORS: Readonly<Record<string, boolean>> = {
  EAGAIN: true,
  EAI_AGAIN: true,
  EBUSY: true,
  ECONNABORTED: true,
  ECONNREFUSED: true,
  ECONNRESET: true,
  EHOSTDOWN: true,
  EHOSTUNREACH: true,
  EIO: true,
  EMFILE: true,
  ENETDOWN: true,
  ENETRESET: true,
  ENETUNREACH: true,
  ENFILE: true,
  ENOBUFS: true,
  ENOSPC: true,
  // The name may exist, and the resolver may work again soon.
  ENOTFOUND: true,
  EPIPE: true,
  ETIMEDOUT: true,
  EACCES: false,
  EEXIST: false,
  EISDIR: false,
  ELOOP: false,
  ENAMETOOLONG: false,
  ENOENT: false,
  ENOTDIR: false,
  ENOTEMPTY: false,
  EPERM: false,
  EROFS: false,
}

/**
 * Undici's error codes, which appear in the cause of a failed fetch. Codes for invalid arguments are omitted because those errors
 * are bugs.
 */
const UNDICI_ERRORS: readonly string[] = [
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'UND_ERR_SOCKET',
  'UND_ERR_CLOSED',
  'UND_ERR_DESTROYED',
]

/** The error codes that MySQL drivers use for lost connections, overloaded servers and locks. */
const MYSQL_ERRORS: readonly string[] = [
  'PROTOCOL_CONNECTION_LOST',
  'ER_CON_COUNT_ERROR',
  'ER_LOCK_DEADLOCK',
  'ER_LOCK_WAIT_TIMEOUT',
  'ER_SERVER_SHUTDOWN',
]

/**
 * PostgreSQL's SQLSTATE codes for retryable errors: connection exceptions (class 08), insufficient resources (53), operator
 * intervention (57P01 to 57P03), serialization failure and deadlock (40001, 40P01), lock not available (55P03).
 */
const POSTGRES_RETRYABLE = /^(08...|53...|57P0[123]|40001|40P01|55P03)$/

/** The 4xx statuses after which a later attempt may succeed, from RFC 9110, RFC 8470 and RFC 6585. */
const RETRYABLE_STATUS: readonly number[] = [408, 425, 429]

/** The maximum number of nested causes to examine. Fetch adds one cause, and libraries that wrap fetch add one or two more. */
const CAUSES_AT_MOST = 5

export const classifyByDefault: Classifier = (error) => {
  let cause = error
  for (let depth = 0; depth < CAUSES_AT_MOST && cause instanceof Error; depth++) {
    const failure = byCode(cause) ?? byStatus(cause) ?? byName(cause)
    if (failure !== undefined) return failure
    cause = cause.cause
  }
  return undefined
}

function byCode(error: Error): Failure | undefined {
  const code = 'code' in error ? error.code : undefined
  if (typeof code !== 'string') return undefined
  // `ctx.enqueue` rejects with this code while Redis is unreachable.
  if (code === 'redis_unavailable' || code === 'redis_full') return { code, retryable: true }
  const system = SYSTEM_ERRORS[code]
  if (system !== undefined) return { code: code.toLowerCase(), retryable: system }
  if (UNDICI_ERRORS.includes(code) || MYSQL_ERRORS.includes(code)) return { code: code.toLowerCase(), retryable: true }
  if (POSTGRES_RETRYABLE.test(code) && 'severity' in error)
    return { code: `sqlstate_${code.toLowerCase()}`, retryable: true }
  return undefined
}

/** Recognises an HTTP status, which clients put on the error itself or on its response. */
function byStatus(error: Error): Failure | undefined {
  const response = 'response' in error && typeof error.response === 'object' ? error.response : undefined
  const status = [error, response]
    .flatMap((place) => (place == null ? [] : [Reflect.get(place, 'status'), Reflect.get(place, 'statusCode')]))
    .find((value) => typeof value === 'number' && value >= 400 && value <= 599)
  if (status === undefined) return undefined
  return { code: `http_${status}`, retryable: status >= 500 || RETRYABLE_STATUS.includes(status) }
}

/** Recognises a handler's own `AbortSignal.timeout`, and driver errors that are identified by a name instead of a code. */
function byName(error: Error): Failure | undefined {
  switch (error.name) {
    case 'TimeoutError':
      return { code: 'timeout', retryable: true }
    case 'MongoNetworkError':
    case 'MongoServerSelectionError':
      return { code: 'mongo_network', retryable: true }
    default:
      return undefined
  }
}

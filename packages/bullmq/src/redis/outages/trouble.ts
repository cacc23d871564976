// Tells why a connection to Redis cannot be used, from the errors of ioredis and of Redis.
import { isSelectError } from '../selected-database.ts'
import { ERROR_REPLIES, type ErrorCode, errorCode } from './error-replies.ts'
import { TLS_TROUBLES, type TlsTrouble, tlsTroubleOf } from './tls-trouble.ts'

/**
 * - `unreachable`: Redis cannot be reached, or does not respond
 * - `unknown_host`: the host name of Redis has no address
 * - `read_only`: the server is a replica, and refuses writes
 * - `no_password`, `wrong_password`: the server does not accept the URL's user and password
 * - `too_few_replicas`, `cannot_save`, `primary_down`, `loading`, `busy`: the server refuses commands for now (error-replies.ts)
 * - `no_database`, `forbidden_database`: the server does not have the URL's database, or the user must not use SELECT
 * - the others up to `no_tls`: see tls-trouble.ts
 * - `unusable`: the server or the client refuses the connection for another reason
 */
export type Trouble =
  | 'unreachable'
  | 'unknown_host'
  | 'read_only'
  | 'no_password'
  | 'wrong_password'
  | Refusal
  | 'no_database'
  | 'forbidden_database'
  | TlsTrouble
  | 'unusable'

type Refusal = 'too_few_replicas' | 'cannot_save' | 'primary_down' | 'loading' | 'busy'

/** The error code of each trouble that the server itself reports. */
const CODES = {
  read_only: 'READONLY',
  no_password: 'NOAUTH',
  wrong_password: 'WRONGPASS',
  too_few_replicas: 'NOREPLICAS',
  cannot_save: 'MISCONF',
  primary_down: 'MASTERDOWN',
  loading: 'LOADING',
  busy: 'BUSY',
} as const satisfies Partial<Record<Trouble, ErrorCode>>

const refusal = (trouble: Refusal) => {
  const { problem } = ERROR_REPLIES[CODES[trouble]]
  return { first: `redis ${problem}`, still: `redis still ${problem}` }
}

/** The log lines when the trouble begins, and while it lasts. */
export const TROUBLE_LINES: Readonly<Record<Trouble, { readonly first: string; readonly still: string }>> = {
  unreachable: { first: 'redis not reachable', still: 'redis still not reachable' },
  unknown_host: {
    first: 'redis not reachable: the host name cannot be resolved',
    still: 'redis still not reachable: the host name cannot be resolved',
  },
  read_only: {
    first: 'redis is a read-only replica: connect to the primary',
    still: 'redis is still a read-only replica: connect to the primary',
  },
  no_password: { first: 'redis requires a password', still: 'redis still requires a password' },
  wrong_password: {
    first: 'redis refuses the user or the password',
    still: 'redis still refuses the user or the password',
  },
  too_few_replicas: refusal('too_few_replicas'),
  cannot_save: refusal('cannot_save'),
  primary_down: refusal('primary_down'),
  loading: refusal('loading'),
  busy: refusal('busy'),
  no_database: {
    first: 'redis does not have the database of the URL',
    still: 'redis still does not have the database of the URL',
  },
  forbidden_database: {
    first: 'redis does not permit the user to select the database of the URL',
    still: 'redis still does not permit the user to select the database of the URL',
  },
  ...TLS_TROUBLES.lines,
  unusable: { first: 'redis connection cannot be used', still: 'redis connection still cannot be used' },
}

/** Describes the trouble to callers: what is wrong, and what to do about it. */
export function troubleText(address: string, trouble: Trouble): string {
  if (isReported(trouble)) {
    const { problem, advice } = ERROR_REPLIES[CODES[trouble]]
    return `Redis at ${address} ${problem}; ${advice}`
  }
  switch (trouble) {
    case 'unreachable':
      return `Redis is not reachable at ${address}`
    case 'unknown_host':
      return `Redis is not reachable at ${address}: the host name cannot be resolved; check the URL and the DNS`
    case 'no_database':
      return `Redis at ${address} does not have the database of the URL; correct the number at the end of the URL, or raise the server's setting 'databases'`
    case 'forbidden_database':
      return `Redis at ${address} does not permit the user to select the database of the URL (NOPERM); add +select to the user's permissions`
    case 'unusable':
      return `Redis at ${address} cannot be used; the reason is in the log, as 'err' of the line '${TROUBLE_LINES.unusable.first}'`
    default:
      return TLS_TROUBLES.text(address, trouble)
  }
}

/** Returns undefined if the error says nothing about the connection. */
export function troubleOf(thrown: unknown): Trouble | undefined {
  if (!(thrown instanceof Error)) return undefined
  // A cluster client only says that every node has failed.
  const error = 'lastNodeError' in thrown && thrown.lastNodeError instanceof Error ? thrown.lastNodeError : thrown
  const reported = BY_CODE.get(errorCode(error))
  if (reported !== undefined) return reported
  const code = 'code' in error ? String(error.code) : ''
  if (UNKNOWN_HOST.has(code)) return 'unknown_host'
  if (isSelectError(error)) return error.message.startsWith('NOPERM ') ? 'forbidden_database' : 'no_database'
  const tls = tlsTroubleOf(error)
  if (tls !== undefined) return tls
  const isAway =
    CONNECTION_ERROR_CODES.has(code) || [error, thrown].some(({ message }) => CONNECTION_ERROR_MESSAGES.test(message))
  return isAway ? 'unreachable' : undefined
}

function isReported(trouble: Trouble): trouble is keyof typeof CODES {
  return trouble in CODES
}

const BY_CODE: ReadonlyMap<ErrorCode | undefined, Trouble> = new Map<ErrorCode, Trouble>([
  ...Object.entries(CODES).map(([trouble, code]) => [code, trouble as Trouble] as const),
  ['UNBLOCKED', 'read_only'],
  ['REDIRECT', 'read_only'],
])

/** The troubles in which the connection stays as it is, and the server refuses commands for now. */
export const REFUSALS: ReadonlySet<Trouble> = new Set<Refusal>([
  'too_few_replicas',
  'cannot_save',
  'primary_down',
  'loading',
  'busy',
])

const UNKNOWN_HOST: ReadonlySet<string> = new Set(['ENOTFOUND', 'EAI_AGAIN'])
const CONNECTION_ERROR_CODES: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
])
const CONNECTION_ERROR_MESSAGES =
  /Connection is closed|Socket timeout|Stream isn't writeable|connect ETIMEDOUT|Command timed out|Failed to refresh slots cache|None of startup nodes|Cluster isn't ready|Too many Cluster redirections|^CLUSTERDOWN /

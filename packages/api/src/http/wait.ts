// Determines how long a request waits for a task to end, and waits.
import type { TaskId, TaskRecord } from '@bullpen/contract'
import { MAX_WAIT_S } from '@bullpen/contract/internal'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { abortOnFirst } from './abort-on-first.ts'
import type { ApiContext } from './context.ts'
import type { Call } from './routes/route.ts'

export interface WaitQuery {
  /** In seconds. */
  readonly wait?: number | undefined
}

/**
 * Returns how many seconds the request wants to wait, or 0. `?wait=` takes precedence over the Prefer header. The header is only
 * a preference, so a wait that is too long is shortened. `?wait=` has already been validated.
 */
export function secondsToWait(query: WaitQuery, request: FastifyRequest, reply: FastifyReply): number {
  if (query.wait !== undefined) return query.wait
  const preferred = preferredWait(request.headers['prefer'])
  if (preferred === undefined) return 0
  const seconds = Math.min(preferred, MAX_WAIT_S)
  reply.header('preference-applied', `wait=${seconds}`)
  return seconds
}

/** Calls `find`, or `wait` if the request wants to wait: until the wait is over, the API closes or the caller disconnects. */
export function findOrWait<T>(
  { query, request, reply }: Call<unknown, WaitQuery>,
  closing: AbortSignal,
  find: () => Promise<T>,
  wait: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const seconds = secondsToWait(query, request, reply)
  return seconds === 0 ? find() : abortOnFirst(seconds * 1_000, closing, reply.raw, wait)
}

/**
 * Waits until the task has ended, the time is up, the API closes or the caller disconnects, and then returns the task. Returns
 * undefined if the task does not exist.
 */
export function waitForEnd(
  { broker, closing }: Pick<ApiContext, 'broker' | 'closing'>,
  reply: FastifyReply,
  id: TaskId,
  seconds: number,
): Promise<TaskRecord | undefined> {
  return abortOnFirst(seconds * 1_000, closing, reply.raw, (signal) => broker.waitUntilFinished(id, signal))
}

/**
 * Reads the Prefer header (RFC 7240). Returns the seconds of the first `wait=N`, or undefined if there is none. Unreadable preferences
 * are ignored, as the RFC requires.
 */
function preferredWait(header: string | readonly string[] | undefined): number | undefined {
  if (header === undefined) return undefined
  const text = typeof header === 'string' ? header : header.join(',')
  // Quoted strings may contain separators, so these are replaced with spaces before the header is split.
  for (const preference of text.replace(/"[^"]*"/g, (quoted) => quoted.replaceAll(/[,;]/g, ' ')).split(',')) {
    const seconds = /^\s*wait\s*=\s*"?(\d{1,9})"?\s*(;|$)/i.exec(preference)?.[1]
    if (seconds !== undefined) return Number(seconds)
  }
  return undefined
}

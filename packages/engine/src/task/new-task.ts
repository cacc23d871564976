// Creates a new task for the broker from a definition, an input and the caller's options.
import {
  BullpenError,
  type CallOptions,
  milliseconds,
  type QueueLimits,
  type TaskDefinition,
  type TaskId,
  type UniqueOptions,
} from '@bullpen/contract'
import { contradictionIn, limitMs } from '@bullpen/contract/internal'
import type { Caller, NewTask, UniqueKey } from '../ports/new-task.ts'
import { callBackoff, checkTotal, maxAttemptsOf } from './call-retry.ts'

export interface Origin {
  readonly id: TaskId
  /** Milliseconds since 1970. */
  readonly enqueuedAt: number
  readonly correlationId: string | undefined
  readonly caller?: Caller | undefined
  /** The queue's limits, which may refuse the task. Child tasks are created without limits. */
  readonly limits?: QueueLimits | undefined
  readonly apiKeyName?: string | undefined
  readonly passesOnApiKey?: boolean | undefined
}

/** The longest delay that a duration can express. */
const MAX_DELAY_MS = milliseconds('365d')

const LIMITS = [
  'timeout',
  'heartbeatTimeout',
  'queueTimeout',
  'totalTimeout',
] as const satisfies readonly (keyof CallOptions)[]

/**
 * Creates a new task. The input is stored as given and parsed by the worker, so validate it before calling this function.
 *
 * @throws BullpenError `invalid_duration`, or `invalid_request` if a short task has a timeout, if the timeouts contradict each
 * other, if the call has both a delay and a start time, if its retry settings are outside of the definition's bounds, or if
 * `onConflict` is 'extend' and the call has no delay or start time.
 */
export function newTask(definition: TaskDefinition, input: unknown, call: CallOptions, origin: Origin): NewTask {
  const delayMs = delayOf(call, origin.enqueuedAt)
  const limits = callTimeouts(definition, call)
  const totalMs = limits.totalMs ?? definition.totalMs
  if (delayMs !== undefined && typeof totalMs === 'number' && delayMs >= totalMs) {
    refuse(
      call.runAt === undefined ? '/delay' : '/runAt',
      `the delay (${delayMs} ms) must be shorter than the total timeout (${totalMs} ms), or the task would never start`,
    )
  }
  const queueMs = limits.queueMs ?? definition.queueMs
  return {
    id: origin.id,
    caller: origin.caller,
    limits: origin.limits,
    apiKeyName: origin.apiKeyName,
    passesOnApiKey: origin.passesOnApiKey,
    task: definition.name,
    version: definition.version,
    queue: definition.queue,
    input,
    maxAttempts: maxAttemptsOf(definition, call.retry?.maxAttempts, refuse),
    backoff: call.retry?.backoff && callBackoff(definition, call.retry.backoff, refuse),
    priority: call.priority ?? definition.priority,
    enqueuedAt: origin.enqueuedAt,
    meta: call.meta,
    tags: call.tags,
    correlationId: origin.correlationId,
    concurrencyKey: call.concurrencyKey,
    unique: call.unique === undefined ? undefined : uniqueKeyOf(call.unique, call, totalMs),
    delayMs,
    ...limits,
    expiresAt: typeof queueMs === 'number' ? origin.enqueuedAt + (delayMs ?? 0) + queueMs : undefined,
  }
}

/** Returns how long the task waits before it is ready, in ms, or undefined if it is ready at once. */
function delayOf({ delay, runAt }: CallOptions, now: number): number | undefined {
  if (runAt === undefined) return delay === undefined ? undefined : milliseconds(delay, 'delay')
  if (delay !== undefined) refuse('/runAt', 'use either delay or runAt, not both')
  const delayMs = new Date(runAt).getTime() - now
  if (!(delayMs <= MAX_DELAY_MS)) refuse('/runAt', "the task may be scheduled at most '365d' ahead")
  return delayMs <= 0 ? undefined : delayMs
}

function uniqueKeyOf(
  { key, until = 'finished', onConflict = 'keep' }: UniqueOptions,
  { delay, runAt }: CallOptions,
  totalMs: number | 'none' | undefined,
): UniqueKey {
  if (onConflict === 'extend' && delay === undefined && runAt === undefined) {
    refuse(
      '/unique/onConflict',
      "with 'extend', set delay or runAt to the time at which the task that has the key should start",
    )
  }
  return {
    key,
    until: until === 'started' || until === 'finished' ? until : milliseconds(until, 'unique.until'),
    onConflict,
    maxDelayMs: typeof totalMs === 'number' ? totalMs : undefined,
  }
}

function callTimeouts(definition: TaskDefinition, call: CallOptions) {
  const { name, kind } = definition
  const said = LIMITS.filter((limit) => call[limit] !== undefined)
  const [first] = said
  if (kind === 'short' && first !== undefined) {
    refuse(`/${first}`, `${name} is a short task, and short tasks are not timed; remove ${first}`)
  }
  const limits = {
    timeoutMs: limitMs(call.timeout, 'timeout'),
    heartbeatMs: limitMs(call.heartbeatTimeout, 'heartbeatTimeout'),
    queueMs: limitMs(call.queueTimeout, 'queueTimeout'),
    totalMs: limitMs(call.totalTimeout, 'totalTimeout'),
  }
  const contradiction = contradictionIn({
    timeoutMs: limits.timeoutMs ?? definition.timeoutMs,
    heartbeatMs: limits.heartbeatMs ?? definition.heartbeatMs,
    queueMs: limits.queueMs ?? definition.queueMs,
    totalMs: limits.totalMs ?? definition.totalMs,
  })
  if (contradiction !== undefined && first !== undefined) refuse(`/${first}`, contradiction)
  checkTotal(definition, call.totalTimeout, refuse)
  return limits
}

function refuse(pointer: string, message: string): never {
  throw new BullpenError('invalid_request', `${pointer}: ${message}`, { errors: [{ pointer, message }] })
}

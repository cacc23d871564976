// Creates a task from a definition, an input and the caller's options, without the follow-ups of its definition.
import { type CallOptions, milliseconds, type TaskDefinition, type UniqueOptions } from '@bullpen/contract'
import { contradictionIn, limitMs } from '@bullpen/contract/internal'
import { servicesOf } from '../breaker/service-calls.ts'
import type { NewTask, UniqueKey } from '../ports/broker/new-task.ts'
import { callBackoff, checkTotal, maxAttemptsOf } from './call-retry.ts'
import { invalidRequest } from './invalid-request.ts'
import { needsOf, turnOf } from './needs.ts'

/** What a task has of its own, whatever its definition and its call say. Child tasks are created without limits. */
export type Origin = Pick<NewTask, 'id' | 'enqueuedAt' | 'correlationId'> &
  Partial<
    Pick<
      NewTask,
      'traceContext' | 'caller' | 'idempotency' | 'limits' | 'followUps' | 'apiKeyName' | 'passesOnApiKey' | 'depth'
    >
  >

/** The longest delay that a duration can express. */
const MAX_DELAY_MS = milliseconds('365d')

const LIMITS = [
  'timeout',
  'heartbeatTimeout',
  'queueTimeout',
  'totalTimeout',
] as const satisfies readonly (keyof CallOptions)[]

/** Works like `newTask`, but leaves out the follow-ups of the definition. */
export function bareTask(definition: TaskDefinition, input: unknown, call: CallOptions, origin: Origin): NewTask {
  const delayMs = delayOf(call, origin.enqueuedAt)
  const limits = callTimeouts(definition, call)
  const totalMs = limits.totalMs ?? definition.totalMs
  if (delayMs !== undefined && typeof totalMs === 'number' && delayMs >= totalMs) {
    throw invalidRequest(
      call.runAt === undefined ? '/delay' : '/runAt',
      `the delay (${delayMs} ms) must be shorter than the total timeout (${totalMs} ms), or the task would never start`,
    )
  }
  const queueMs = limits.queueMs ?? definition.queueMs
  return {
    ...origin,
    task: definition.name,
    version: definition.version,
    queue: definition.queue,
    input,
    maxAttempts: maxAttemptsOf(definition, call.retry?.maxAttempts),
    backoff: call.retry?.backoff && callBackoff(definition, call.retry.backoff),
    priority: call.priority ?? definition.priority,
    durability: call.durability ?? definition.durability,
    meta: call.meta,
    tags: call.tags,
    events: eventsOf(definition),
    concurrencyKey: call.concurrencyKey,
    turn: turnOf(definition.queueSettings, call.concurrencyKey),
    needs: needsOf(definition, definition.queueSettings),
    services: servicesOf(definition, definition.queueSettings),
    unique: call.unique === undefined ? undefined : uniqueKeyOf(call.unique, call, totalMs),
    delayMs,
    ...limits,
    expiresAt: typeof queueMs === 'number' ? origin.enqueuedAt + (delayMs ?? 0) + queueMs : undefined,
  }
}

/** Returns how many events the queue's stream keeps, or undefined if the definition's tasks have no events. */
function eventsOf({ events, queueSettings }: TaskDefinition): number | undefined {
  return events && queueSettings.events !== false ? queueSettings.events.count : undefined
}

/** Returns how long the task waits before it is ready, in ms, or undefined if it is ready at once. */
function delayOf({ delay, runAt }: CallOptions, now: number): number | undefined {
  if (runAt === undefined) return delay === undefined ? undefined : milliseconds(delay, 'delay')
  if (delay !== undefined) throw invalidRequest('/runAt', 'use either delay or runAt, not both')
  const delayMs = new Date(runAt).getTime() - now
  if (!(delayMs <= MAX_DELAY_MS)) throw invalidRequest('/runAt', "the task may be scheduled at most '365d' ahead")
  return delayMs <= 0 ? undefined : delayMs
}

function uniqueKeyOf(
  { key, until = 'finished', onConflict = 'keep' }: UniqueOptions,
  { delay, runAt }: CallOptions,
  totalMs: number | 'none' | undefined,
): UniqueKey {
  if (onConflict === 'extend' && delay === undefined && runAt === undefined) {
    throw invalidRequest(
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
    throw invalidRequest(`/${first}`, `${name} is a short task, and short tasks are not timed; remove ${first}`)
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
  if (contradiction !== undefined && first !== undefined) throw invalidRequest(`/${first}`, contradiction)
  checkTotal(definition, call.totalTimeout)
  return limits
}

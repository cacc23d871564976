// Creates a new task for the broker from a definition, an input and the caller's options.
import { BullpenError, type CallOptions, milliseconds, type TaskDefinition, type TaskId } from '@bullpen/contract'
import { contradictionIn, limitMs } from '@bullpen/contract/internal'
import type { Caller, NewTask } from '../ports/broker.ts'

export interface Origin {
  readonly id: TaskId
  /** Milliseconds since 1970. */
  readonly enqueuedAt: number
  readonly correlationId: string | undefined
  readonly caller?: Caller | undefined
}

const LIMITS = [
  'timeout',
  'heartbeatTimeout',
  'queueTimeout',
  'totalTimeout',
] as const satisfies readonly (keyof CallOptions)[]

/**
 * Creates a new task. The input is stored as given and parsed by the worker, so validate it before calling this function.
 *
 * @throws BullpenError `invalid_duration`, or `invalid_request` if a short task has a timeout or the timeouts contradict each
 * other.
 */
export function newTask(definition: TaskDefinition, input: unknown, call: CallOptions, origin: Origin): NewTask {
  const delayMs = call.delay === undefined ? undefined : milliseconds(call.delay, 'delay')
  const limits = callTimeouts(definition, call)
  const totalMs = limits.totalMs ?? definition.totalMs
  if (delayMs !== undefined && typeof totalMs === 'number' && delayMs >= totalMs) {
    refuse(
      'delay',
      `the delay (${delayMs} ms) must be shorter than the total timeout (${totalMs} ms), or the task would never start`,
    )
  }
  const queueMs = limits.queueMs ?? definition.queueMs
  return {
    id: origin.id,
    caller: origin.caller,
    task: definition.name,
    version: definition.version,
    queue: definition.queue,
    input,
    maxAttempts: definition.retry.maxAttempts,
    enqueuedAt: origin.enqueuedAt,
    meta: call.meta,
    tags: call.tags,
    correlationId: origin.correlationId,
    delayMs,
    ...limits,
    expiresAt: typeof queueMs === 'number' ? origin.enqueuedAt + (delayMs ?? 0) + queueMs : undefined,
  }
}

function callTimeouts(definition: TaskDefinition, call: CallOptions) {
  const { name, kind } = definition
  const said = LIMITS.filter((limit) => call[limit] !== undefined)
  const [first] = said
  if (kind === 'short' && first !== undefined) {
    refuse(first, `${name} is a short task, and short tasks are not timed; remove ${first}`)
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
  if (contradiction !== undefined && first !== undefined) refuse(first, contradiction)
  return limits
}

function refuse(path: string, message: string): never {
  throw new BullpenError('invalid_request', message, { errors: [{ path, message }] })
}

// POST /v1/tasks: stores a task and says where to look for it.
import {
  type Accepted,
  BullpenError,
  contradictionIn,
  type EnqueueRequest,
  ID_RANDOM_BYTES,
  makeTaskId,
  milliseconds,
  type TaskDefinition,
} from '@bullpen/contract'
import type { NewTask } from '@bullpen/engine'
import type { ApiContext } from '../context.ts'
import { linksOf } from '../links.ts'
import { callersId } from '../request-id.ts'
import type { Call } from '../route.ts'

export function enqueueTask({ catalogue, broker, emit, now, randomBytes }: ApiContext) {
  return async ({ body, request, reply }: Call): Promise<Accepted> => {
    // The validator has let it through, and left it as it was sent.
    const wanted = body as EnqueueRequest
    const definition = catalogue.get(wanted.task)
    const enqueuedAt = now()
    const task: NewTask = {
      id: makeTaskId(definition.queue, enqueuedAt, randomBytes(ID_RANDOM_BYTES)),
      task: definition.name,
      version: definition.version,
      queue: definition.queue,
      input: wanted.input,
      maxAttempts: definition.retry.attempts,
      enqueuedAt,
      meta: wanted.meta,
      correlationId: callersId(request.headers),
      delayMs: wanted.delay === undefined ? undefined : milliseconds(wanted.delay, 'delay'),
      ...limitsOf(wanted, definition),
    }
    // Before Redis is asked: should the answer get lost, the problem still names the task.
    request.taskId = task.id
    await broker.enqueue(task)
    emit({ event: 'task.enqueued', queue: task.queue, task: task.task, id: task.id })
    const status = task.delayMs === undefined ? 'waiting' : 'scheduled'
    const links = linksOf(task.id, task.queue, status)
    reply.code(202).header('location', links.self)
    return { id: task.id, status, links }
  }
}

/** @throws BullpenError `invalid_request` for a limit of a short task, and for limits that contradict each other. */
function limitsOf({ timeout, deadline }: EnqueueRequest, definition: TaskDefinition): CallLimits {
  const { name, kind } = definition
  const refuse = (path: string, message: string): never => {
    throw new BullpenError('invalid_request', message, { faults: [{ path, message }] })
  }
  if (kind === 'short' && timeout !== undefined)
    refuse('timeout', `${name} is a short task: it is not timed, so it takes no timeout`)
  if (kind === 'short' && deadline !== undefined)
    refuse('deadline', `${name} is a short task: it is not timed, so it takes no deadline`)
  const limits = { timeoutMs: ms(timeout, 'timeout'), deadlineMs: ms(deadline, 'deadline') }
  const { heartbeatMs } = definition
  const contradiction = contradictionIn({
    heartbeatMs,
    timeoutMs: limits.timeoutMs ?? definition.timeoutMs,
    deadlineMs: limits.deadlineMs ?? definition.deadlineMs,
  })
  if (contradiction !== undefined) refuse(timeout === undefined ? 'deadline' : 'timeout', contradiction)
  return limits
}

type CallLimits = Pick<NewTask, 'timeoutMs' | 'deadlineMs'>

function ms(limit: string | undefined, name: string): number | 'none' | undefined {
  return limit === undefined || limit === 'none' ? limit : milliseconds(limit, name)
}

// POST /v1/tasks/{id}/retry runs a dead task again, optionally with a new input or in another queue. DELETE /v1/tasks/{id} deletes one.
import {
  BullpenError,
  type Deleted,
  type FieldError,
  type Retried,
  type RetryOneRequest,
  type TaskDefinition,
  type TaskId,
  type TaskRecord,
} from '@bullpen/contract'
import {
  bodyErrors,
  describeIssue,
  fieldErrorText,
  MAX_ERRORS,
  readTaskId,
  taskLinks,
} from '@bullpen/contract/internal'
import { type InputEdit, type RetryOptions, retryCopy, retryCopyId, taskNotFound } from '@bullpen/engine/internal'
import { sha256 } from '@bullpen/engine/node'
import { requesterOf } from '../../auth/requester.ts'
import type { ApiContext } from '../../http/context.ts'
import { knownQueues, knownTaskId } from '../../http/known-names.ts'
import type { ChangeQuery, IdCall } from '../../http/routes/route.ts'
import { keepToRate } from '../enqueueing/enqueue-rate.ts'
import { audit } from './audit.ts'

const ID_BYTES = 12

export async function retryTask(context: ApiContext, { params, body, request }: IdCall): Promise<Retried> {
  const { catalogue, broker, log, randomBytes } = context
  const id = knownTaskId(catalogue, params.id)
  const found = await broker.find(id)
  if (found === undefined) throw taskNotFound(id)
  // The body has been validated. It is undefined, null, or an object.
  const given = (body ?? {}) as RetryOneRequest
  const by = requesterOf(request, given.by)
  const edit = 'input' in given ? editOf(catalogue.get(found.task), given.input) : undefined
  const { afterCompensation = false } = given
  if (found.compensatedAt !== undefined && !afterCompensation) throw alreadyCompensated(found)
  const requestId = given.id ?? Buffer.from(randomBytes(ID_BYTES)).toString('hex')
  const options = { request: requestId, by, edit, ...(afterCompensation && { afterCompensation }) }
  const { queue = found.queue } = given
  knownQueues(catalogue, queue)
  const isCopy = queue !== found.queue
  // The task's end enqueues its follow-ups again. A copy has none that a call has named.
  const implied = [isCopy ? { task: found.task, queue } : found]
  const { copy, answer } = await keepToRate(context, request, { implied }, async (charge) => {
    const enqueued = isCopy ? await enqueueCopy(context, found, queue, options) : undefined
    if (enqueued?.isNew) charge.keep(implied)
    const done = await broker.retry(id, { ...options, copy: enqueued?.id })
    // If another request has the same id, an earlier one may have retried the task.
    if (!isCopy && done === 'done' && (given.id === undefined || found.status === 'dead')) charge.keep(implied)
    return { copy: enqueued?.id, answer: done }
  })
  const statusNow = async (): Promise<TaskRecord> => (await broker.find(id)) ?? found
  // A copy runs, whatever another request has done to the dead task in the meantime.
  if (copy === undefined && answer === 'not_found') throw taskNotFound(id)
  if (copy === undefined && answer === 'not_dead') throw taskNotDead(await statusNow())
  if (copy === undefined && answer === 'compensated') throw alreadyCompensated(found)
  audit(log, { action: 'retry', queue: found.queue, filter: { id }, matching: 1, by, requestId: request.id })
  if (copy !== undefined) return { id: copy, status: 'waiting', retryOf: id, links: taskLinks(copy) }
  return { id, status: (await statusNow()).status, links: taskLinks(id) }
}

/**
 * Enqueues the task in another queue, unless an earlier call with the same request has done so.
 *
 * @throws BullpenError `task_not_dead`, or like an enqueue.
 */
async function enqueueCopy(
  { catalogue, broker, now }: ApiContext,
  found: TaskRecord,
  queue: string,
  { request, edit }: RetryOptions,
): Promise<{ readonly id: TaskId; readonly isNew: boolean }> {
  const id = retryCopyId(found, queue, request, sha256)
  if ((await broker.find(id)) !== undefined) return { id, isNew: false }
  if (found.status !== 'dead') throw taskNotDead(found)
  const options = { id, queue: catalogue.queue(queue), edit, now: now() }
  await broker.enqueue(retryCopy(found, catalogue.get(found.task), options))
  return { id, isNew: true }
}

export async function deleteTask(
  { catalogue, broker, log }: ApiContext,
  { params, query, request }: IdCall<ChangeQuery>,
): Promise<Deleted> {
  const id = knownTaskId(catalogue, params.id)
  const answer = await broker.deleteDead(id)
  const found = answer === 'not_dead' ? await broker.find(id) : undefined
  if (found !== undefined) throw taskNotDead(found)
  if (answer !== 'done') throw taskNotFound(id)
  const queue = readTaskId(id)?.queue ?? ''
  const by = requesterOf(request, query.by)
  audit(log, { action: 'delete', queue, filter: { id }, matching: 1, by, requestId: request.id })
  return { id }
}

/** Checks a new input. @throws BullpenError `invalid_input`. */
function editOf({ input: schema, version }: TaskDefinition, input: unknown): InputEdit {
  const errors = errorsIn(schema, input)
  const [first] = errors
  if (first === undefined) return { input, version }
  throw new BullpenError('invalid_input', fieldErrorText(first), { errors: errors.slice(0, MAX_ERRORS) })
}

/** Returns the parts of an input that the schema rejects. */
function errorsIn(schema: TaskDefinition['input'], input: unknown): readonly FieldError[] {
  try {
    const { error } = schema.safeParse(input, { error: describeIssue })
    return error === undefined ? [] : bodyErrors(error, ['input'])
  } catch (cause) {
    // One of the schema's transforms threw or is asynchronous, so the schema does not accept this input.
    const message = `the task's schema could not parse the input: ${cause instanceof Error ? cause.message : String(cause)}`
    return [{ pointer: '/input', message }]
  }
}

function taskNotDead({ id, status }: Pick<TaskRecord, 'id' | 'status'>): BullpenError {
  return new BullpenError('task_not_dead', `task ${id} is ${status}; only dead tasks can be retried or deleted`)
}

function alreadyCompensated({ id }: Pick<TaskRecord, 'id'>): BullpenError {
  return new BullpenError(
    'already_compensated',
    `the compensations of task ${id} have been released, so a retry may find its steps undone; enqueue a new task, or retry this one with afterCompensation: true (--after-compensation)`,
  )
}

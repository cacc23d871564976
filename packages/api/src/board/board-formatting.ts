// Formats stored jobs for readers of the board: their inputs, their outputs, and how each attempt ended.
import { decodeStack } from '@bullpen/bullmq/internal'
import {
  ATTEMPT_STATE_LABELS,
  type AttemptEndState,
  type AttemptRecord,
  type TaskDefinition,
  type TaskStatus,
} from '@bullpen/contract'
import { envelopeSchema, successSchema } from '@bullpen/contract/internal'
import { redactedInput } from '@bullpen/engine/internal'

/** Returns the content of the envelope, with the input first. Data that is not an envelope is returned unchanged. */
export function formatData(stored: unknown): unknown {
  const envelope = envelopeSchema.safeParse(stored)
  if (!envelope.success) return stored
  const { input, encoded, meta, tags, correlationId, timeoutMs, version } = envelope.data
  return {
    input,
    ...(encoded === undefined ? {} : { encoded }),
    ...(meta === undefined ? {} : { meta }),
    ...(tags === undefined ? {} : { tags }),
    ...(correlationId === undefined ? {} : { correlationId }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    version,
  }
}

/** Returns the data of a task without the sensitive parts of its input. A codec has encoded the whole input, which is then not read. */
export function redactData(stored: unknown, definition: Pick<TaskDefinition, 'input'> | undefined): unknown {
  const envelope = envelopeSchema.safeParse(stored)
  if (definition === undefined || !envelope.success || envelope.data.encoded) return stored
  return { ...(stored as object), input: redactedInput(definition, envelope.data.input) }
}

export function formatReturnValue(stored: unknown): unknown {
  const success = successSchema.safeParse(stored)
  if (!success.success) return stored
  const { output, encoded, worker } = success.data
  return { output, ...(encoded === undefined ? {} : { encoded }), worker }
}

/**
 * Adds the task's status, the end of its newest attempt and what it waits for to the job's title, and a readable first line to each failed
 * attempt. Also sets `processedOn` for tasks that never started, because the board computes durations from that field. The status is
 * undefined if Bullpen does not know the job.
 */
export function formatJob<J extends StoredJob>(job: J, status: TaskStatus | undefined, waitsFor?: string): J {
  const stacks = Array.isArray(job.stacktrace) ? job.stacktrace : []
  const newest = decodeStack(stacks.at(-1))
  const neverStarted = job.finishedOn !== undefined && job.processedOn === undefined
  return {
    ...job,
    // For example `receipt.send · dead · failed (card_declined)`.
    name: [
      job.name,
      ...(status === undefined ? [] : titleOf(status, newest)),
      ...(waitsFor === undefined ? [] : [`waits for ${waitsFor}`]),
    ].join(' · '),
    ...(newest === undefined || job.failedReason === undefined ? {} : { failedReason: failureOf(newest) }),
    stacktrace: stacks.map(formatStack),
    ...(neverStarted ? { processedOn: job.finishedOn } : {}),
  }
}

/** A job in the form in which BullMQ passes it to the board. */
export interface StoredJob {
  readonly name: string
  readonly stacktrace: readonly unknown[] | null
  readonly failedReason?: string | undefined
  readonly processedOn?: number | undefined
  readonly finishedOn?: number | undefined
}

/** The states of the attempts that end a task with these statuses. The status says the same as the state. */
const ENDED_BY: Readonly<Partial<Record<TaskStatus, AttemptEndState>>> = {
  cancelled: 'TERMINATED_STOP_SIGNAL',
  expired: 'TERMINATED_TIMEOUT',
}

/** Returns the status, followed by what the newest attempt that did not succeed adds to it. */
function titleOf(status: TaskStatus, newest: AttemptRecord | undefined): readonly string[] {
  if (newest === undefined || status === 'completed') return [status]
  if (status === 'dead') return [status, labelOf(newest)]
  if (ENDED_BY[status] === undefined) return [status, `attempt ${newest.attempt} ${labelOf(newest)}`]
  const { state, reason, by } = newest
  if (state !== ENDED_BY[status]) return [status]
  return [withReason(status, reason), ...(by === undefined ? [] : [`by ${by}`])]
}

function failureOf(record: AttemptRecord): string {
  return record.message === undefined ? labelOf(record) : `${labelOf(record)}: ${record.message}`
}

/**
 * Makes a stack readable. The record of a failed attempt is stored as JSON in the first line of its stack. If the attempt was
 * not ended by an error, the stack has only one more line, which contains its state and message.
 */
function formatStack(stack: unknown): unknown {
  const record = decodeStack(stack)
  if (record === undefined || typeof stack !== 'string') return stack
  const [, title = '', ...frames] = stack.split('\n')
  return [summary(record), title.startsWith(record.state) ? (record.message ?? '') : title, ...frames].join('\n')
}

function summary(record: AttemptRecord): string {
  const { attempt, fencingToken, startedAt, endedAt, worker, by } = record
  const requester = by === undefined ? '' : ` by ${by}`
  if (fencingToken === 0) return `${labelOf(record)}${requester} before it started`
  return `attempt ${attempt} ${labelOf(record)}${requester} after ${endedAt - startedAt} ms on ${worker}`
}

/** Returns a label such as `failed (card_declined)`, or only `cancelled` if the reason adds nothing to the label. */
function labelOf({ state, reason, code }: AttemptRecord): string {
  return withReason(ATTEMPT_STATE_LABELS[state], reason ?? code)
}

function withReason(label: string, reason: string | undefined): string {
  return reason === undefined || reason === label ? label : `${label} (${reason})`
}

// Formats stored jobs for readers of the board: their inputs, their outputs, and how each attempt ended.
import { decodeStack } from '@bullpen/bullmq/internal'
import { ATTEMPT_STATE_LABELS, type AttemptRecord } from '@bullpen/contract'
import { envelopeSchema, successSchema } from '@bullpen/contract/internal'

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

export function formatReturnValue(stored: unknown): unknown {
  const success = successSchema.safeParse(stored)
  if (!success.success) return stored
  const { output, encoded, worker } = success.data
  return { output, ...(encoded === undefined ? {} : { encoded }), worker }
}

/**
 * Adds a job's outcome to its title, and a readable first line to each failed attempt. Also sets `processedOn` for tasks that
 * never started, because the board computes durations from that field.
 */
export function formatJob<J extends StoredJob>(job: J): J {
  const stacks = Array.isArray(job.stacktrace) ? job.stacktrace : []
  const newest = decodeStack(stacks.at(-1))
  const outcome = outcomeOf(job, newest)
  const neverStarted = job.finishedOn !== undefined && job.processedOn === undefined
  return {
    ...job,
    // For example `receipt.send · failed (card_declined)`.
    name: outcome === undefined ? job.name : `${job.name} · ${outcome}`,
    ...(newest === undefined || job.failedReason === undefined ? {} : { failedReason: failureOf(newest) }),
    stacktrace: stacks.map(formatStack),
    ...(neverStarted ? { processedOn: job.finishedOn } : {}),
  }
}

/** A job in the form in which BullMQ passes it to the board. */
export interface StoredJob {
  readonly name: string
  readonly returnvalue?: unknown
  readonly stacktrace: readonly unknown[] | null
  readonly failedReason?: string | undefined
  readonly processedOn?: number | undefined
  readonly finishedOn?: number | undefined
}

/** Returns the job's outcome or, if the job has not ended, its previous attempt's outcome. */
function outcomeOf({ returnvalue, finishedOn }: StoredJob, newest: AttemptRecord | undefined): string | undefined {
  if (successSchema.safeParse(returnvalue).success) return ATTEMPT_STATE_LABELS.DONE_SUCCESS
  if (newest === undefined) return undefined
  return finishedOn === undefined ? `attempt ${newest.attempt} ${labelOf(newest)}` : labelOf(newest)
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
  const label = ATTEMPT_STATE_LABELS[state]
  const why = reason ?? code
  return why === undefined || why === label ? label : `${label} (${why})`
}

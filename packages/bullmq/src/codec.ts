// Encodes attempt records into the fields of a BullMQ job, and decodes them.
import type { AttemptRecord, CancelReason } from '@bullpen/contract'
import { attemptRecordSchema } from '@bullpen/contract/internal'
import { endWithoutStart } from '@bullpen/engine/internal'

/** Builds BullMQ's `failedReason`, such as `RECOVER_ERR (unexpected_error): TypeError: …`. */
export function describeEnd({ state, reason, code, message }: AttemptRecord): string {
  const why = reason ?? code
  return `${state}${why === undefined ? '' : ` (${why})`}${message === undefined ? '' : `: ${message}`}`
}

/**
 * Builds the stack of the error that is thrown to BullMQ. BullMQ stores the stack in the same script that moves the job. The
 * attempt record is the stack's first line, so that a crash cannot leave a job that was moved without its record.
 */
export function encodeStack(record: AttemptRecord, error: unknown): string {
  return `${JSON.stringify(record)}\n${stackOf(error).slice(0, MAX_STACK_CHARACTERS) || describeEnd(record)}`
}

/**
 * Builds what a script that ends a task without a run stores (store/lua/includes/end/end-without-run.lua): the reason, as BullMQ's
 * `failedReason`, and the attempt record as JSON, without the fields that the script adds. `process` is the process that ends the task;
 * `by` is who cancels it.
 */
export function endOf(
  reason: CancelReason | 'queue_timeout',
  { process, by }: { readonly process: string; readonly by?: string | undefined },
): { readonly reason: string; readonly record: string } {
  const record = endWithoutStart(reason, { attempt: 1, process, now: 0, by })
  const { attempt: _, startedAt: _started, endedAt: _ended, ...stored } = record
  return { reason: describeEnd(record), record: JSON.stringify(stored) }
}

/** The maximum length of a stored stack, which is about thirty frames. */
const MAX_STACK_CHARACTERS = 4_000

function stackOf(error: unknown): string {
  try {
    return error instanceof Error ? String(error.stack ?? '') : ''
  } catch {
    return '' // `stack` may be a getter that throws, or the error may be a Proxy. The record does not depend on the stack.
  }
}

/** Decodes the attempt record at the start of a stored stack. Returns undefined for a failure that BullMQ itself stored. */
export function decodeStack(stack: unknown): AttemptRecord | undefined {
  if (typeof stack !== 'string') return undefined
  return attemptRecordSchema.safeParse(parseJson(stack.split('\n', 1)[0])).data
}

/** Decodes the attempt records in a job's stored stacks, oldest first. */
export function decodeStacks(stacktrace: string | undefined): AttemptRecord[] {
  const stacks = parseJson(stacktrace)
  if (!Array.isArray(stacks)) return []
  return stacks.map(decodeStack).filter((record) => record !== undefined)
}

/** Parses JSON. Returns undefined if the string is not valid JSON. */
export function parseJson(text: string | undefined): unknown {
  if (text === undefined) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

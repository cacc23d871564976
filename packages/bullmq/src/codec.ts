// The codec: how outputs and ends are written into a BullMQ job and read back.
import type { AttemptRecord } from '@bullpen/contract'
import { attemptRecordSchema } from '@bullpen/contract/internal'

/** What an operator reads as the failure's reason: `RECOVER_ERR (unexpected_error): TypeError: …`. */
export function describeEnd({ state, reason, code, message }: AttemptRecord): string {
  const why = reason ?? code
  return `${state}${why === undefined ? '' : ` (${why})`}${message === undefined ? '' : `: ${message}`}`
}

/**
 * BullMQ writes the stack of a thrown error together with the transition that it causes, in one script. The end travels
 * as that stack's first line, so that no crash can come between a failure and its record.
 */
export function encodeStack(end: AttemptRecord, error: unknown): string {
  return `${JSON.stringify(end)}\n${stackOf(error).slice(0, LONGEST_STACK) || describeEnd(end)}`
}

/** Characters of a stack that are kept: some thirty frames. */
const LONGEST_STACK = 4_000

function stackOf(error: unknown): string {
  try {
    return error instanceof Error ? String(error.stack ?? '') : ''
  } catch {
    return '' // A getter that throws, a Proxy: the end itself is what counts.
  }
}

/** The end that a stored stack begins with; undefined when the stack is not ours but of a failure of BullMQ's own. */
export function decodeStack(stack: unknown): AttemptRecord | undefined {
  if (typeof stack !== 'string') return undefined
  return attemptRecordSchema.safeParse(parseJson(stack.split('\n', 1)[0])).data
}

/** The ends among a job's stored stacks, oldest first. */
export function decodeStacks(stacktrace: string | undefined): AttemptRecord[] {
  const stacks = parseJson(stacktrace)
  if (!Array.isArray(stacks)) return []
  return stacks.map(decodeStack).filter((end) => end !== undefined)
}

export function parseJson(text: string | undefined): unknown {
  if (text === undefined) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

// Stored things in our words, for the board: inputs, outputs, and each task's newest state.
import { decodeStack } from '@bullpen/bullmq/internal'
import type { AttemptRecord } from '@bullpen/contract'
import { envelopeSchema, successSchema } from '@bullpen/contract/internal'

/** What came with the task. Text that is not ours is shown as it is. */
export function dataWords(stored: unknown): unknown {
  const envelope = envelopeSchema.safeParse(stored)
  if (!envelope.success) return stored
  const { input, meta, tags, correlationId, timeoutMs, version } = envelope.data
  return {
    input,
    ...(meta === undefined ? {} : { meta }),
    ...(tags === undefined ? {} : { tags }),
    ...(correlationId === undefined ? {} : { correlationId }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    version,
  }
}

export function returnValueWords(stored: unknown): unknown {
  const success = successSchema.safeParse(stored)
  if (!success.success) return stored
  return { output: success.data.output, state: 'DONE_SUCCESS', worker: success.data.worker }
}

/** What the board shows of one stored job: its name with its newest state, and each failed attempt in a readable line. */
export function jobWords<J extends StoredJob>(job: J): J {
  const stacks = Array.isArray(job.stacktrace) ? job.stacktrace : []
  const failed = decodeStack(stacks.at(-1))
  const newest = successSchema.safeParse(job.returnvalue).success ? 'DONE_SUCCESS' : failed && stateOf(failed)
  return {
    ...job,
    // `receipt.send · DONE_ERROR (card_declined)`
    name: newest === undefined ? job.name : `${job.name} · ${newest}`,
    stacktrace: stacks.map(stackWords),
  }
}

/** As BullMQ gives a job to the board. */
export interface StoredJob {
  readonly name: string
  readonly returnvalue?: unknown
  readonly stacktrace: readonly unknown[] | null
}

/** A failed attempt's end is stored as JSON in the first line of its stack. */
function stackWords(stack: unknown): unknown {
  const end = decodeStack(stack)
  if (end === undefined || typeof stack !== 'string') return stack
  const line = `${stateOf(end)} in attempt ${end.attempt} (start ${end.fencingToken}), after ${end.endedAt - end.startedAt} ms on ${end.worker}`
  return [line, ...stack.split('\n').slice(1)].join('\n')
}

function stateOf({ state, reason, code }: AttemptRecord): string {
  const why = reason ?? code
  return `${state}${why === undefined ? '' : ` (${why})`}`
}

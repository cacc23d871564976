// Stored things in our words, for the board: inputs, outputs, and each task's newest state.
import { type AttemptEnd, attemptEndSchema, envelopeSchema } from '@bullpen/contract'
import { z } from 'zod'

/** As the broker stores a completed task's return value. */
const successSchema = z.object({ output: z.unknown().optional(), end: attemptEndSchema })

/** What came with the task. Text that is not ours is shown as it is. */
export function dataWords(stored: unknown): unknown {
  const envelope = envelopeSchema.safeParse(stored)
  if (!envelope.success) return stored
  const { input, meta, correlationId, timeoutMs, version, enqueuedAt } = envelope.data
  return {
    input,
    ...(meta === undefined ? {} : { meta }),
    ...(correlationId === undefined ? {} : { correlationId }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    version,
    enqueuedAt: new Date(enqueuedAt).toISOString(),
  }
}

export function returnValueWords(stored: unknown): unknown {
  const success = successSchema.safeParse(stored)
  if (!success.success) return stored
  const { output, end } = success.data
  return { output, state: end.state, process: end.process, durationMs: end.endedAt - end.beganAt }
}

/** What the board shows of one stored job: its name with its newest state, and each failed attempt in a readable line. */
export function jobWords<J extends StoredJob>(job: J): J {
  const stacks = Array.isArray(job.stacktrace) ? job.stacktrace : []
  const success = successSchema.safeParse(job.returnvalue)
  const newest = success.success ? success.data.end : endOf(stacks.at(-1))
  return {
    ...job,
    // `receipt.send · DONE_ERROR (card_declined)`
    name: newest === undefined ? job.name : `${job.name} · ${stateOf(newest)}`,
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
  const end = endOf(stack)
  if (end === undefined || typeof stack !== 'string') return stack
  const line = `${stateOf(end)} in attempt ${end.attempt} (start ${end.start}), after ${end.endedAt - end.beganAt} ms on ${end.process}`
  return [line, ...stack.split('\n').slice(1)].join('\n')
}

function stateOf({ state, reason, code }: AttemptEnd): string {
  const why = reason ?? code
  return `${state}${why === undefined ? '' : ` (${why})`}`
}

function endOf(stack: unknown): AttemptEnd | undefined {
  if (typeof stack !== 'string') return undefined
  try {
    return attemptEndSchema.safeParse(JSON.parse(stack.split('\n', 1)[0] ?? '')).data
  } catch {
    return undefined
  }
}

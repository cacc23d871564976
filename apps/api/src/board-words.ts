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

/** `receipt.send · DONE_ERROR (card_declined)`. */
export function nameWords(job: Readonly<Record<string, unknown>>): string {
  const name = String(job['name'] ?? '')
  const end = newestEnd(job)
  if (end === undefined) return name
  const why = end.reason ?? end.code
  return `${name} · ${end.state}${why === undefined ? '' : ` (${why})`}`
}

function newestEnd(job: Readonly<Record<string, unknown>>): AttemptEnd | undefined {
  const success = successSchema.safeParse(job['returnvalue'])
  if (success.success) return success.data.end
  const stacks = job['stacktrace']
  const newest: unknown = Array.isArray(stacks) ? stacks.at(-1) : undefined
  // A failed attempt's end is the first line of its stored stack.
  return typeof newest === 'string' ? readEnd(newest.split('\n', 1)[0] ?? '') : undefined
}

function readEnd(line: string): AttemptEnd | undefined {
  try {
    return attemptEndSchema.safeParse(JSON.parse(line)).data
  } catch {
    return undefined
  }
}

// What is stored in Redis with a task: versioned, so that an old worker can tell that it can't read a new producer's.
import { z } from 'zod'

export const ENVELOPE_VERSION = 1

/** Small keys: this stands in Redis once for every waiting task. Times are milliseconds since 1970. */
export const envelopeSchema = z.object({
  /** Of the envelope itself. */
  v: z.literal(ENVELOPE_VERSION),
  /** Of the task's contract. */
  version: z.int().positive(),
  /** As the caller sent it: the worker parses it again, so that transforms run once, where the handler runs. */
  input: z.unknown(),
  enqueuedAt: z.int().nonnegative(),
  meta: z.record(z.string(), z.string()).optional(),
  correlationId: z.string().optional(),
  /** The caller's own run timeout, in ms. */
  timeoutMs: z.union([z.int().positive(), z.literal('none')]).optional(),
})

export type Envelope = z.infer<typeof envelopeSchema>

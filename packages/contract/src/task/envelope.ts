// Defines the envelope, which is the data stored in Redis with each task. The envelope has a version so that a worker can
// recognise envelopes that it cannot read.
import { z } from 'zod'
import type { Backoff } from '../definition/retry/retry-policy.ts'

/** Bullpen 0.1.0 used version 1. */
export const ENVELOPE_VERSION = 2

const jitter = z.union([z.number(), z.literal('full')])
const initialMs = z.int().positive()
const maxMs = z.int().positive()

const backoffSchema: z.ZodType<Backoff> = z.discriminatedUnion('type', [
  z.object({ type: z.literal('exponential'), initialMs, maxMs, factor: z.number(), jitter }),
  z.object({ type: z.literal('linear'), initialMs, maxMs, jitter }),
  z.object({ type: z.literal('fixed'), initialMs, jitter }),
  z.object({ type: z.literal('list'), delaysMs: z.array(z.int().positive()).min(1), jitter }),
])

/**
 * The envelope is small because every task stores one. It does not contain the enqueueing time, because that is the job's own
 * timestamp.
 */
export const envelopeSchema = z.object({
  /** The version of the envelope itself. */
  v: z.literal(ENVELOPE_VERSION),
  /**
   * When the task was last retried after it was dead, in ms since 1970. The total timeout then starts at this time. Stored directly
   * after the version of the envelope, so that a script in Redis can set it without parsing the input.
   */
  retriedAt: z.int().nonnegative().optional(),
  /** The group whose member the task is, and the member's number. */
  group: z.object({ id: z.string(), member: z.int().nonnegative() }).optional(),
  /** The pipeline run to which the task belongs, its stage, and the position of its item (see the engine's run-state.ts). */
  run: z.object({ id: z.string(), stage: z.int().nonnegative(), position: z.int().nonnegative() }).optional(),
  /** The id of the dead task in another queue from which the task was copied. */
  retryOf: z.string().optional(),
  /** The id of the task or group because of whose end this task was enqueued. Stored here when the task is enqueued. */
  followUpOf: z.string().optional(),
  /**
   * Set if the task was enqueued with follow-ups, so that the worker that ends the task forwards them at once. A task without this
   * field may have follow-ups as well.
   */
  followed: z.literal(true).optional(),
  /** The version of the task's definition. */
  version: z.int().positive(),
  /** Stored before the input, so that a script in Redis can find the tags without parsing the input. */
  tags: z.array(z.string()).optional(),
  /**
   * The input as the caller sent it. The worker parses it, so that transforms run only once, where the handler runs. Absent if
   * the input is undefined.
   */
  input: z.unknown().optional(),
  /**
   * Set if the input was encoded by a codec. With 'items', the input is a batch of a pipeline: an array of strings, each of which is the
   * JSON of an item, or `~` and the JSON of what a codec has returned.
   */
  encoded: z.union([z.literal(true), z.literal('items')]).optional(),
  /**
   * The size of the input in bytes, if the input is so large that the task's pipeline run keeps it. The worker then reads the input from
   * the run, and the envelope does not contain it.
   */
  keptInput: z.int().positive().optional(),
  /**
   * About how many events the stream of the task's queue keeps. Absent if the task has no events. The task's worker reads this
   * field, so that the definition decides only when the task is enqueued.
   */
  events: z.int().positive().optional(),
  meta: z.record(z.string(), z.string()).optional(),
  correlationId: z.string().optional(),
  traceContext: z.object({ traceparent: z.string(), tracestate: z.string().exactOptional() }).optional(),
  /** How many tasks in a row the follow-ups of definitions have enqueued, up to this one. Absent if it is none of them. */
  depth: z.int().positive().optional(),
  /** Absent if the task's key takes turns and the task's hash contains it already. */
  concurrencyKey: z.string().optional(),
  /** The name of the API key whose request enqueued the task or its parent, so that child tasks can be counted for the same key. */
  apiKeyName: z.string().optional(),
  /** The caller's own run timeout, in ms. */
  timeoutMs: z.union([z.int().positive(), z.literal('none')]).optional(),
  /** The caller's own heartbeat timeout, in ms. */
  heartbeatMs: z.union([z.int().positive(), z.literal('none')]).optional(),
  /** The caller's own queue timeout, in ms from the time when the task is ready to run. */
  queueMs: z.union([z.int().positive(), z.literal('none')]).optional(),
  /** The caller's own total timeout, in ms from the time when the task is enqueued. */
  totalMs: z.union([z.int().positive(), z.literal('none')]).optional(),
  /** The caller's own backoff. Absent if the definition's applies. */
  backoff: backoffSchema.optional(),
})

export type Envelope = z.infer<typeof envelopeSchema>

/** The data that is stored when an attempt succeeds. BullMQ's own fields hold the rest of the attempt record. */
export const successSchema = z.object({
  /** Absent if the task's output is undefined. */
  output: z.unknown().optional(),
  /** Set if the output was encoded by a codec. */
  encoded: z.literal(true).optional(),
  /** The host and process id of the worker that ran the attempt. */
  worker: z.string(),
  /** The slot's number in its pool, starting from 1. */
  slot: z.int().positive().optional(),
})

export type StoredSuccess = z.infer<typeof successSchema>

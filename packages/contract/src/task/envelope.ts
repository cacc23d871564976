// What is stored in Redis with a task. It has a version, so that a worker can tell that it can't read it.
import { z } from 'zod'

/** 1 was Bullpen 0.1.0's. */
export const ENVELOPE_VERSION = 2

/** Small: this stands in Redis once for every task. When it was enqueued is what the job's own timestamp says. */
export const envelopeSchema = z.object({
  /** Of the envelope itself. */
  v: z.literal(ENVELOPE_VERSION),
  /** Of the task's contract. */
  version: z.int().positive(),
  /** Before the input: a script in Redis finds them without reading that. */
  tags: z.array(z.string()).optional(),
  /** As the caller sent it: the worker parses it again, so that transforms run once, where the handler runs. Absent: undefined. */
  input: z.unknown().optional(),
  meta: z.record(z.string(), z.string()).optional(),
  correlationId: z.string().optional(),
  /** The caller's own run timeout, in ms. */
  timeoutMs: z.union([z.int().positive(), z.literal('none')]).optional(),
  /** The caller's own heartbeat timeout, in ms. */
  heartbeatMs: z.union([z.int().positive(), z.literal('none')]).optional(),
  /** The caller's own queue timeout, in ms from when it is ready to run. */
  queueMs: z.union([z.int().positive(), z.literal('none')]).optional(),
  /** The caller's own deadline, in ms from the enqueueing. */
  totalMs: z.union([z.int().positive(), z.literal('none')]).optional(),
})

export type Envelope = z.infer<typeof envelopeSchema>

/** What is stored of a success. All else that is told of it, BullMQ's own fields say. */
export const successSchema = z.object({
  /** Absent when the task's output is undefined. */
  output: z.unknown().optional(),
  /** The worker process that ran it. */
  worker: z.string(),
  /** Which of the pool's workers, from 1. */
  slot: z.int().positive().optional(),
})

export type StoredSuccess = z.infer<typeof successSchema>

// What is stored in Redis with a task. It has a version, so that a worker can tell that it can't read it.
import { z } from 'zod'

/** 1 was Bullpen 0.1.0's. */
export const ENVELOPE_VERSION = 2

/** Kept small: it is stored once for every task. The time of the enqueueing is the job's own timestamp. */
export const envelopeSchema = z.object({
  /** The version of the envelope itself. */
  v: z.literal(ENVELOPE_VERSION),
  /** The version of the task's definition. */
  version: z.int().positive(),
  /** Before the input, so that a script in Redis finds them without parsing the input. */
  tags: z.array(z.string()).optional(),
  /** As the caller sent it: the worker parses it, so that transforms run once, where the handler runs. Absent when undefined. */
  input: z.unknown().optional(),
  meta: z.record(z.string(), z.string()).optional(),
  correlationId: z.string().optional(),
  /** The caller's own run timeout, in ms. */
  timeoutMs: z.union([z.int().positive(), z.literal('none')]).optional(),
  /** The caller's own heartbeat timeout, in ms. */
  heartbeatMs: z.union([z.int().positive(), z.literal('none')]).optional(),
  /** The caller's own queue timeout, in ms from when the task is ready to run. */
  queueMs: z.union([z.int().positive(), z.literal('none')]).optional(),
  /** The caller's own total timeout, in ms from the enqueueing. */
  totalMs: z.union([z.int().positive(), z.literal('none')]).optional(),
})

export type Envelope = z.infer<typeof envelopeSchema>

/** What is stored of a success. BullMQ's own fields hold the rest of its record. */
export const successSchema = z.object({
  /** Absent when the task's output is undefined. */
  output: z.unknown().optional(),
  /** The worker that ran it: host and process id. */
  worker: z.string(),
  /** Which slot of the pool, from 1. */
  slot: z.int().positive().optional(),
})

export type StoredSuccess = z.infer<typeof successSchema>

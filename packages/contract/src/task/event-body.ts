// Defines what is stored of an event in a queue's stream. The store adds the event's id, its time and the id of its task.
//
// An event contains neither the input nor the output of its task, because a codec may encode them. It takes at most 2 KiB, because
// its texts are cut off and a task has at most ten tags.
import { z } from 'zod'
import { ATTEMPT_OUTCOMES } from '../http/tasks/task-view.ts'
import { FINAL_STATUSES } from './states.ts'

/** The levels of log lines that become events. Lines of the level debug do not. */
export const EVENT_LOG_LEVELS = ['info', 'warn', 'error'] as const

const about = {
  task: z.string(),
  tags: z.array(z.string()).optional(),
  group: z.object({ id: z.string(), member: z.int() }).optional(),
}
const attempt = { attempt: z.int(), fencingToken: z.int() }
const end = {
  outcome: z.enum(ATTEMPT_OUTCOMES).optional(),
  error: z.object({ code: z.string(), message: z.string() }).optional(),
}
/** Milliseconds since 1970. */
const dueAt = z.number()

export const eventBodySchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('enqueued'), ...about, dueAt: dueAt.optional() }),
  z.object({ type: z.literal('started'), ...about, ...attempt, worker: z.string() }),
  z.object({ type: z.literal('progress'), ...about, ...attempt, fraction: z.number(), note: z.string().optional() }),
  z.object({
    type: z.literal('log'),
    ...about,
    ...attempt,
    /** The line's number in its attempt, starting from 1, which distinguishes equal lines. */
    line: z.int(),
    level: z.enum(EVENT_LOG_LEVELS),
    message: z.string(),
    fields: z.record(z.string(), z.unknown()).optional(),
  }),
  z.object({ type: z.literal('retrying'), ...about, ...attempt, ...end, dueAt }),
  z.object({ type: z.literal('requeued'), ...about, ...attempt, ...end, dueAt: dueAt.optional() }),
  z.object({
    type: z.literal('ended'),
    ...about,
    attempt: attempt.attempt.optional(),
    fencingToken: attempt.fencingToken.optional(),
    ...end,
    status: z.enum(FINAL_STATUSES),
    by: z.string().optional(),
  }),
  z.object({ type: z.literal('retry_requested'), ...about, by: z.string() }),
])

export type EventBody = z.infer<typeof eventBodySchema>

/** The maximum number of log lines of one task that become events. */
export const MAX_LOG_EVENTS = 100

/** The maximum size of a log line's message and fields in an event, in bytes as JSON. */
export const MAX_LOG_EVENT_BYTES = 1_024

/** The maximum number of characters of an error's message or a progress note in an event. */
export const MAX_EVENT_TEXT = 256

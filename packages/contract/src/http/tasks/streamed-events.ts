// Defines the events that the API streams. Times are in RFC 3339 format and UTC.
import { z } from 'zod'
import { EVENT_LOG_LEVELS, type EventBody } from '../../task/event-body.ts'
import { FINAL_STATUSES, TASK_STATUSES } from '../../task/states.ts'
import { groupViewSchema } from '../groups.ts'
import { optionalTime, timeText } from '../times.ts'
import { tagSchema } from './enqueue.ts'
import { ATTEMPT_OUTCOMES, taskViewSchema } from './task-view.ts'

const time = z.iso.datetime()
const about = {
  id: z.string().describe("The event's id in its queue's stream. Ids increase."),
  at: time,
  queue: z.string(),
  taskId: z.string(),
  task: z.string().describe('The name of the definition.'),
  tags: z.array(z.string()).optional().describe("The task's tags, if it has any."),
  group: z
    .object({ id: z.string(), member: z.int().describe("The member's number, starting from 0.") })
    .optional()
    .describe('The group whose member the task is, if there is one.'),
}
const attempt = {
  attempt: z.int(),
  fencingToken: z.int().describe('A number that increases each time a handler is started.'),
}
const end = {
  outcome: z.enum(ATTEMPT_OUTCOMES).optional().describe('How the attempt has ended.'),
  error: z
    .object({ code: z.string(), message: z.string().describe('At most 256 characters.') })
    .optional()
    .describe('Why the attempt did not succeed.'),
}

/** An event about a task. The union is closed in each version, and a newer version may add types. */
export const streamedEventSchema = z
  .discriminatedUnion('type', [
    z
      .object({ type: z.literal('enqueued'), ...about, dueAt: time.optional() })
      .describe('The task was stored. If it is scheduled, `dueAt` is when it is due.'),
    z
      .object({ type: z.literal('started'), ...about, ...attempt, worker: z.string() })
      .describe('The handler was called.'),
    z
      .object({ type: z.literal('progress'), ...about, ...attempt, fraction: z.number(), note: z.string().optional() })
      .describe('The handler reported its progress. At most about four reports a second of each task become events.'),
    z
      .object({
        type: z.literal('log'),
        ...about,
        ...attempt,
        line: z.int().describe("The line's number in its attempt, starting from 1."),
        level: z.enum(EVENT_LOG_LEVELS),
        message: z.string(),
        fields: z.record(z.string(), z.unknown()).optional(),
      })
      .describe(
        'The handler wrote to its log with the level info or above. Only the first 100 lines of a task become events, and 1 KiB ' +
          'of each.',
      ),
    z
      .object({ type: z.literal('retrying'), ...about, ...attempt, ...end, dueAt: time })
      .describe('The attempt failed, and the task is due to run again.'),
    z
      .object({ type: z.literal('requeued'), ...about, ...attempt, ...end, dueAt: time.optional() })
      .describe('The attempt ended without counting, and the task runs again. `dueAt` is present after a snooze.'),
    z
      .object({
        type: z.literal('ended'),
        ...about,
        attempt: attempt.attempt.optional(),
        fencingToken: attempt.fencingToken.optional(),
        ...end,
        status: z.enum(FINAL_STATUSES),
        by: z.string().optional().describe('Who cancelled the task, if known.'),
      })
      .describe('The task has ended. Read its output with `GET /v1/tasks/{id}`.'),
    z
      .object({ type: z.literal('retry_requested'), ...about, by: z.string() })
      .describe('A dead task was retried by request.'),
  ])
  .meta({ id: 'StreamedEvent' })

export type StreamedEvent = z.infer<typeof streamedEventSchema>

const gapSchema = z
  .object({
    type: z.literal('gap'),
    id: z.string().describe('The position from which the stream was resumed.'),
  })
  .describe('Events after this position are no longer kept. A snapshot follows.')

/** Events may be missing between `id` and the snapshot that follows. */
export type EventGap = z.infer<typeof gapSchema>

const taskSnapshotSchema = z
  .object({ type: z.literal('snapshot'), id: z.string(), task: taskViewSchema })
  .describe('The task as it was at this position of the stream, or later.')

export type TaskSnapshot = z.infer<typeof taskSnapshotSchema>

const queueSnapshotSchema = z
  .object({
    type: z.literal('snapshot'),
    id: z.string(),
    queues: z.record(z.string(), z.record(z.enum(TASK_STATUSES), z.int())),
  })
  .describe('The number of tasks in each queue, by status, as it was at this position of the stream, or later.')

export type QueueSnapshot = z.infer<typeof queueSnapshotSchema>

const groupSnapshotSchema = z
  .object({ type: z.literal('snapshot'), id: z.string(), group: groupViewSchema })
  .describe('The group as it was at this position of the stream, or later.')

export type GroupSnapshot = z.infer<typeof groupSnapshotSchema>

const groupEndedSchema = z
  .object({ type: z.literal('group_ended'), id: z.string(), group: groupViewSchema })
  .describe('The group has ended. This is the last event of its stream.')

/** The group has ended. This is the last event of its stream. */
export type GroupEnded = z.infer<typeof groupEndedSchema>

/** Why the API ends a stream that could go on. */
export const DISCONNECT_REASONS = ['slow_reader', 'shutting_down', 'unavailable'] as const

export type DisconnectReason = (typeof DISCONNECT_REASONS)[number]

const disconnectedSchema = z
  .object({ type: z.literal('disconnected'), reason: z.enum(DISCONNECT_REASONS) })
  .describe('The API ends the stream. To resume it, connect again with the last id.')

export type Disconnected = z.infer<typeof disconnectedSchema>

/** The data of each event in a task's stream. */
export const taskStreamSchema = z.union([streamedEventSchema, taskSnapshotSchema, gapSchema, disconnectedSchema])

/** The data of each event in the stream of one queue or several. */
export const queueStreamSchema = z.union([streamedEventSchema, queueSnapshotSchema, gapSchema, disconnectedSchema])

/** The data of each event in a group's stream. */
export const groupStreamSchema = z.union([
  streamedEventSchema,
  groupSnapshotSchema,
  groupEndedSchema,
  gapSchema,
  disconnectedSchema,
])

/** The query of GET /v1/events. */
export const eventsQuerySchema = z.strictObject({
  tag: tagSchema.describe('Only events of tasks with this tag.'),
})

/** Formats an event. `id` is `<ms since 1970>-<number>`, as Redis creates it. */
export function streamedEvent(id: string, queue: string, taskId: string, body: EventBody): StreamedEvent {
  const at = timeText(Number.parseInt(id, 10))
  const { type, ...rest } = body
  const due = 'dueAt' in body ? optionalTime('dueAt', body.dueAt) : {}
  return { type, id, at, queue, taskId, ...rest, ...due } as StreamedEvent
}

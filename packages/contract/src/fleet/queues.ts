// Defines GET /v1/queues: each queue's tasks, kinds of error, rates, limits and slots.
import { z } from 'zod'
import { fingerprintCountSchema } from '../http/dead-tasks.ts'
import { TASK_STATUSES } from '../task/states.ts'
import { queueViewSchema } from './fleet.ts'
import { queueText } from './fleet-names.ts'

const time = z.iso.datetime()

export const queueStatsSchema = queueViewSchema
  .extend({
    maxTasks: z.int().optional().describe('How many tasks may be waiting, scheduled or retrying. Absent if unlimited.'),
    maxBytes: z
      .int()
      .optional()
      .describe("How many bytes the tasks that have not ended may take. Absent if only the API's own limit applies."),
    maxAgeMs: z
      .int()
      .optional()
      .describe(
        'How long the task that starts next may have been waiting, in ms. If it has waited longer, new tasks are refused.',
      ),
    slos: z
      .array(
        z.object({
          task: z.string(),
          startWithinMs: z.int().describe('How soon a task should start after it is ready, in ms.'),
          objective: z.number().describe('The share of the tasks that should start in time, such as 0.99.'),
        }),
      )
      .optional()
      .describe("The service-level objectives of the queue's task definitions. Absent if there are none."),
    tasks: z.record(z.enum(TASK_STATUSES), z.int()).describe('How many tasks the queue has in each status.'),
    deadByFingerprint: z
      .array(fingerprintCountSchema)
      .describe('The five most frequent kinds of error among the dead tasks, the most frequent one first.'),
    bytes: z.int().describe('How many bytes the tasks that have not ended take.'),
    outbox: z
      .object({ entries: z.int(), oldestAt: time })
      .optional()
      .describe('What follows from the ends of tasks and has not been forwarded yet. Absent if there is nothing.'),
    oldestWaiting: z
      .object({
        id: z.string(),
        task: z.string(),
        enqueuedAt: time,
        readyAt: time.describe(
          'Since when the task has been ready to start: its enqueueing, the end of its delay, or its last start or request for a retry.',
        ),
      })
      .optional()
      .describe(
        'The waiting task that has been ready for the longest time, whether or not it may start. A task that is waiting behind others with a higher priority is not considered. Absent if no task is waiting.',
      ),
    blockedTasks: z
      .int()
      .describe(
        'How many waiting tasks could not start, however many slots are free, because of a limit, a throttle, permits or an open circuit breaker. May be too low if more than 100 lanes take turns.',
      ),
    rates: z
      .object({
        in: z.number().describe('How many tasks were enqueued per second.'),
        out: z.number().describe('How many tasks ended per second, in any status.'),
        overMs: z.int().describe('The period over which the rates were measured, in ms: from 1 s to 1 min.'),
      })
      .describe(
        'How fast tasks enter and leave the queue. The API process compares its counters with those of an earlier request or, if there is none, with those 1 s later.',
      ),
  })
  .meta({ id: 'Queue' })

export type QueueStats = z.infer<typeof queueStatsSchema>

export const queuePageSchema = z
  .object({ now: time.describe("The current time on Redis's clock."), queues: z.array(queueStatsSchema) })
  .meta({ id: 'Queues' })

export type QueuePage = z.infer<typeof queuePageSchema>

export const queuesQuerySchema = z.strictObject({ queue: queueText.optional() })

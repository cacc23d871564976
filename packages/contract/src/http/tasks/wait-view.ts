// Defines what a task waits for as the API returns it.
import { z } from 'zod'
import { DRAIN_MODES } from '../../fleet/commands.ts'
import type { TaskRecord } from '../../task/task-record.ts'
import { MAX_AHEAD, type WaitsFor } from '../../task/waits-for.ts'
import { optionalTime } from '../times.ts'
import { waitText } from './wait-text.ts'

const time = z.iso.datetime()
const count = z.int()
const text = z.string().describe('What the task waits for, in words that follow "waits for".')
const ahead = count.describe(
  `How many tasks start before this one. ${MAX_AHEAD.toLocaleString('en')} means at least this many.`,
)
const aheadAlike = count.describe(
  'How many tasks with the same concurrency key and the same needs start before this one. 1,000 means at least this many.',
)
const workers = count.describe('How many workers serve the queue.')

const of = <K extends WaitsFor['kind'], F extends z.ZodRawShape>(kind: K, meaning: string, fields: F) =>
  z.object({ kind: z.literal(kind), text, ...fields }).describe(meaning)

export const waitViewSchema = z
  .discriminatedUnion('kind', [
    of('scheduled', 'The task is due at `until`.', { until: time }),
    of('retry', 'The next attempt is due at `until`.', { until: time, attempt: count, maxAttempts: count }),
    of('unsupported', 'The last worker that fetched the task could not run it. It is due again at `until`.', {
      until: time,
      worker: z.string(),
      code: z.string().describe('Why, such as `unknown_task`. The last attempt has the message.'),
    }),
    of('quarantine', 'The task is in quarantine, and no worker had room for it. It is due again at `until`.', {
      until: time,
    }),
    of('recovery', 'The worker of the task was lost, and the leader has not returned the task to the queue yet.', {}),
    of('paused', 'The queue is paused. `since` and `by` are absent if they are not known.', {
      since: time.optional(),
      by: z.string().optional(),
    }),
    of('drain', 'A command is draining the queue, or has drained it.', {
      mode: z.enum(DRAIN_MODES),
      since: time,
      by: z.string().optional(),
    }),
    of('outbox', "The queue's outbox is full.", {}),
    of('no_worker', 'No live worker serves the queue. `since` is absent if none has within 30 days.', {
      since: time.optional(),
    }),
    of('workers_draining', 'All workers of the queue are shutting down.', { workers }),
    of('workers_paused', 'All workers of the queue are paused.', { workers }),
    of('workers_not_ready', 'No worker of the queue can fetch tasks. One of them reports the `reason`.', {
      workers,
      reason: z.string(),
    }),
    of('workers_reserved', 'All workers of the queue run only the tasks or the group that they were given.', {
      workers,
    }),
    of('throttle', 'A handler has throttled the queue until `until`.', { until: time }),
    of('queue_rate', 'The rate limit of the queue allows the next start at `until`.', {
      until: time,
      max: count,
      perMs: count,
    }),
    of('queue_concurrency', 'The queue runs as many tasks as its concurrency `limit` allows.', { limit: count, ahead }),
    of('slot', 'The task waits for a free slot. `busy` of the `slots` of the queue are in use.', {
      slots: count,
      busy: count,
      ahead,
    }),
    of('turn', "It is not the turn of the task's concurrency key.", { ahead: aheadAlike }),
    of('concurrency', 'The concurrency key runs as many tasks as its limit allows.', { ahead: aheadAlike }),
    of(
      'rate',
      'The rate limit of the concurrency key allows the next start at `until`, or a throttle of the key ends then.',
      {
        until: time.optional(),
        ahead: aheadAlike,
      },
    ),
    of('permits', 'Too few of the permits `limiter` are free.', { limiter: z.string(), ahead: aheadAlike }),
    of('definition', 'The task definition `limiter` runs as many tasks as its `concurrency` allows.', {
      limiter: z.string(),
      ahead: aheadAlike,
    }),
    of(
      'breaker',
      'The circuit breaker of `service` lets the task start at `until` at the earliest. Without `until`, it stays open until a request closes it.',
      {
        service: z.string(),
        until: time.optional(),
        ahead: aheadAlike,
      },
    ),
  ])
  .meta({ id: 'WaitsFor' })

export const WAIT_KINDS = waitViewSchema.options.map(({ shape }) => shape.kind.value)

export type WaitView = z.infer<typeof waitViewSchema>

export function waitView(wait: WaitsFor, task: Pick<TaskRecord, 'queue' | 'concurrencyKey'>): WaitView {
  const { since, until } = { since: undefined, until: undefined, ...wait }
  return {
    ...wait,
    ...optionalTime('since', since),
    ...optionalTime('until', until),
    text: waitText(wait, task),
  } as WaitView
}

// Defines the fleet over HTTP: queues, workers, pools and slots.
import { z } from 'zod'
import { LOG_LEVELS } from '../definition/log.ts'
import { POOL_STATE_LABELS, POOL_STATES, type PoolState, SLOT_STATE_LABELS, SLOT_STATES } from '../task/states.ts'
import { breakersView } from './breakers-view.ts'
import { DRAIN_MODES } from './commands.ts'
import { queueText, workerText } from './fleet-names.ts'
import { limitersView } from './limiters-view.ts'

/** The states of a pool that has ended. */
export const ENDED_POOL_STATES = [
  'ONLINE_DONE',
  'INCOMPLETE_DONE',
  'SHUTDOWN',
  'TERMINATE_TIMEOUT',
  'RECOVER_ERR',
] as const satisfies readonly PoolState[]

const time = z.iso.datetime()

/** One slot. All times come from Redis's clock. */
export const slotViewSchema = z
  .object({
    worker: z.string(),
    queue: z.string(),
    slot: z.int(),
    state: z.enum(SLOT_STATES),
    label: z.enum(SLOT_STATES.map((state) => SLOT_STATE_LABELS[state])).describe('`state` in plain words.'),
    since: time,
    task: z
      .object({
        id: z.string(),
        task: z.string(),
        fencingToken: z.int(),
        kind: z.enum(['short', 'long']).optional().describe("Absent if the task is not in this API's catalogue."),
        onInterrupt: z
          .enum(['requeue', 'fail'])
          .optional()
          .describe('What happens to the task if a drain interrupts it.'),
        timeoutAt: time
          .optional()
          .describe("When the attempt's timeout expires. Absent if the attempt has no timeout."),
      })
      .optional(),
  })
  .meta({ id: 'Slot' })

export type SlotView = z.infer<typeof slotViewSchema>

export const poolViewSchema = z
  .object({
    worker: z.string(),
    queue: z.string(),
    state: z.enum(POOL_STATES),
    label: z.enum(POOL_STATES.map((state) => POOL_STATE_LABELS[state])).describe('`state` in plain words.'),
    paused: z.boolean(),
    concurrency: z.int().describe('How many slots the pool has, not counting slots that are stopping.'),
    busy: z.int(),
    stuckHandlers: z.int().describe('How many handlers are still running after their attempt has ended.'),
    notReady: z.string().optional().describe('Why the pool is not fetching tasks.'),
    drainSettings: z
      .object({ mode: z.enum(DRAIN_MODES), timeoutMs: z.int(), graceMs: z.int() })
      .optional()
      .describe("How the pool drains on SIGTERM. Absent if the worker's version does not report it."),
  })
  .meta({ id: 'Pool' })

export type PoolView = z.infer<typeof poolViewSchema>

export const workerViewSchema = z
  .object({
    worker: z.string(),
    host: z.string(),
    pid: z.int(),
    version: z.string(),
    startedAt: time,
    seenAt: time.describe("The time of the worker's last heartbeat."),
    alive: z.boolean().describe('False if the worker has missed three heartbeats.'),
    draining: z.boolean(),
    skewMs: z
      .number()
      .describe(
        "How far the worker's clock is ahead of Redis's, in ms. The value is negative if the worker's clock is behind.",
      ),
    stalls: z
      .object({
        count: z.int(),
        stalledMs: z.int().describe('How long the event loop was blocked in all.'),
        lastTask: z.string().optional().describe('The task that blocked it last. Absent if no task did.'),
      })
      .optional()
      .describe("How the worker's event loop was blocked within the last minute. Absent if it was not."),
    drainTimeoutMs: z.int(),
    graceMs: z.int(),
    pools: z.array(poolViewSchema.omit({ worker: true })),
  })
  .meta({ id: 'Worker' })

export type WorkerView = z.infer<typeof workerViewSchema>

export const queueViewSchema = z
  .object({
    queue: z.string(),
    admission: z
      .enum(['open', 'closed'])
      .describe("`closed` means that the queue's fleet is draining and new tasks are rejected."),
    paused: z.boolean(),
    outboxFull: z
      .literal(true)
      .optional()
      .describe('Present if the workers fetch no tasks because the outbox of the queue is full.'),
    drain: z.object({ mode: z.enum(DRAIN_MODES), since: time, command: z.string() }).optional(),
    concurrency: z.int().optional().describe('How many tasks may run at once across all workers. Absent if unlimited.'),
    rate: z.object({ max: z.int(), perMs: z.int() }).optional(),
    perConcurrencyKey: z
      .object({
        concurrency: z.int().optional().describe('How many tasks of each concurrency key may run at once.'),
        rate: z
          .object({ max: z.int(), perMs: z.int(), burst: z.int() })
          .optional()
          .describe('How many tasks of each concurrency key may start per period. `burst` of them may start at once.'),
        ofSingleKeys: z.int().describe('How many limits were set for single keys.'),
      })
      .optional()
      .describe(
        "The limits of concurrency keys across all workers. The queue's definition or commands have set them. Absent if there are none.",
      ),
    limiters: limitersView,
    breakers: breakersView,
    maxTasks: z
      .int()
      .optional()
      .describe(
        "How many tasks may be waiting, scheduled or retrying. Absent if no command has set this limit. It replaces the one in the queue's definition.",
      ),
    maxBytes: z
      .int()
      .optional()
      .describe(
        "How many bytes the tasks that have not ended may take. Absent if no command has set this limit. It replaces the one in the queue's definition.",
      ),
    maxAgeMs: z
      .int()
      .optional()
      .describe(
        "How long the task that starts next may have been waiting, in ms. Absent if no command has set this limit. It replaces the one in the queue's definition.",
      ),
    pools: z.int().describe('How many pools the live workers have.'),
    slots: z.int(),
    busy: z.int(),
  })
  .meta({ id: 'QueueFleet' })

export type QueueView = z.infer<typeof queueViewSchema>

const logLevelViewSchema = z
  .object({
    level: z.enum(LOG_LEVELS),
    until: time.describe('When each process uses the level of its settings again.'),
    by: z.string().describe('Who sent the command.'),
    command: z.string().describe('The id of the command, as returned by GET /v1/commands.'),
  })
  .meta({ id: 'FleetLogLevel' })

export const fleetViewSchema = z
  .object({
    now: time.describe("The current time on Redis's clock."),
    logLevel: logLevelViewSchema
      .optional()
      .describe('The log level of all workers and API processes, if a command has set one that is still in force.'),
    queues: z.array(queueViewSchema),
    workers: z.array(workerViewSchema),
  })
  .meta({ id: 'Fleet' })

export type FleetView = z.infer<typeof fleetViewSchema>

export const poolPageSchema = z.object({ pools: z.array(poolViewSchema) }).meta({ id: 'Pools' })
export const slotPageSchema = z.object({ slots: z.array(slotViewSchema) }).meta({ id: 'Slots' })

export type PoolPage = z.infer<typeof poolPageSchema>
export type SlotPage = z.infer<typeof slotPageSchema>

export const poolQuerySchema = z.strictObject({ queue: queueText.optional(), worker: workerText.optional() })
export const slotQuerySchema = poolQuerySchema.extend({ state: z.enum(SLOT_STATES).optional() })
export const fleetQuerySchema = z.strictObject({ queue: queueText.optional() })

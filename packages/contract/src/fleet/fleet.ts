// The fleet over HTTP: what is told of queues, processes, pools and workers.
import { z } from 'zod'
import { POOL_STATES, type PoolState, WORKER_STATES } from '../task/states.ts'
import { DRAIN_MODES } from './commands.ts'
import { processText, queueText } from './fleet-names.ts'

/** The states of a pool that takes and runs nothing any more. */
export const ENDED_POOL_STATES = [
  'ONLINE_DONE',
  'INCOMPLETE_DONE',
  'SHUTDOWN',
  'TERMINATE_TIMEOUT',
  'RECOVER_ERR',
] as const satisfies readonly PoolState[]

const time = z.iso.datetime()

/** One worker. Times are Redis's. */
export const workerViewSchema = z
  .object({
    process: z.string(),
    queue: z.string(),
    worker: z.int(),
    state: z.enum(WORKER_STATES),
    since: time,
    task: z
      .object({
        id: z.string(),
        task: z.string(),
        start: z.int(),
        kind: z.enum(['short', 'long']).optional().describe('Absent where the task is not of this catalogue.'),
        onInterrupt: z.enum(['hand_back', 'fail']).optional().describe('What a drain that interrupts it makes of it.'),
        endsBy: time.optional().describe('When its run timeout passes; absent where it has none.'),
      })
      .optional(),
  })
  .meta({ id: 'Worker' })

export type WorkerView = z.infer<typeof workerViewSchema>

export const poolViewSchema = z
  .object({
    process: z.string(),
    queue: z.string(),
    state: z.enum(POOL_STATES),
    paused: z.boolean(),
    concurrency: z.int().describe('Workers that are not told to end.'),
    busy: z.int(),
    leftovers: z.int().describe('Handlers that go on after their attempt has ended.'),
    notReady: z.string().optional().describe('Why it takes no tasks.'),
  })
  .meta({ id: 'Pool' })

export type PoolView = z.infer<typeof poolViewSchema>

export const processViewSchema = z
  .object({
    process: z.string(),
    host: z.string(),
    pid: z.int(),
    version: z.string(),
    startedAt: time,
    seenAt: time.describe('Its last sign of life.'),
    alive: z.boolean().describe('False: it has been silent for three signs of life.'),
    draining: z.boolean(),
    skewMs: z.number().describe("How far its clock is ahead of Redis's; negative: behind."),
    drainTimeoutMs: z.int(),
    graceMs: z.int(),
    pools: z.array(poolViewSchema.omit({ process: true })),
  })
  .meta({ id: 'Process' })

export type ProcessView = z.infer<typeof processViewSchema>

export const queueViewSchema = z
  .object({
    queue: z.string(),
    intake: z.enum(['open', 'closed']).describe('Closed: its fleet drains, and new tasks are refused.'),
    paused: z.boolean(),
    drain: z.object({ mode: z.enum(DRAIN_MODES), since: time, command: z.string() }).optional(),
    concurrency: z.int().optional().describe('Of the whole fleet; absent: no limit.'),
    rate: z.object({ max: z.int(), perMs: z.int() }).optional(),
    pools: z.int().describe('Of live processes.'),
    workers: z.int(),
    busy: z.int(),
  })
  .meta({ id: 'QueueFleet' })

export type QueueView = z.infer<typeof queueViewSchema>

export const fleetViewSchema = z
  .object({ now: time.describe("Redis's."), queues: z.array(queueViewSchema), processes: z.array(processViewSchema) })
  .meta({ id: 'Fleet' })

export type FleetView = z.infer<typeof fleetViewSchema>

export const poolPageSchema = z.object({ pools: z.array(poolViewSchema) }).meta({ id: 'Pools' })
export const workerPageSchema = z.object({ workers: z.array(workerViewSchema) }).meta({ id: 'Workers' })

export type PoolPage = z.infer<typeof poolPageSchema>
export type WorkerPage = z.infer<typeof workerPageSchema>

export const poolQuerySchema = z.strictObject({ queue: queueText.optional(), process: processText.optional() })
export const workerQuerySchema = poolQuerySchema.extend({ state: z.enum(WORKER_STATES).optional() })
export const fleetQuerySchema = z.strictObject({ queue: queueText.optional() })

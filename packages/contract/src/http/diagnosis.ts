// Defines GET /v1/diagnosis: what is wrong with the installation, why it matters, and what to do about it.
import { z } from 'zod'

const time = z.iso.datetime()

/**
 * What a diagnosis examines. The checks of Redis come first, then those of configuration, versions and workers, and then those of
 * queues and schedules.
 */
export const DIAGNOSIS_CHECKS = [
  'redis_connection',
  'redis_version',
  'redis_persistence',
  'redis_writes',
  'redis_lost_tasks',
  'redis_eviction',
  'redis_memory_limit',
  'redis_memory',
  'redis_encoding',
  'redis_permissions',
  'redis_connections',
  'redis_latency',
  'clocks',
  'configuration',
  'versions',
  'catalogues',
  'workers',
  'event_loops',
  'leader',
  'unserved_queues',
  'stalled_queues',
  'limited_queues',
  'limited_tasks',
  'missing_limits',
  'full_queues',
  'paused_queues',
  'open_breakers',
  'unattached_workers',
  'lost_tasks',
  'failing_tasks',
  'dead_tasks',
  'poison_tasks',
  'outboxes',
  'schedules',
  'different_schedules',
] as const

export type DiagnosisCheck = (typeof DIAGNOSIS_CHECKS)[number]

export const findingSchema = z
  .object({
    check: z.enum(DIAGNOSIS_CHECKS).describe('The check that has found it.'),
    severity: z
      .enum(['error', 'warning'])
      .describe('`error`: tasks do not run, or may be lost. `warning`: they soon may, or something is unusual.'),
    problem: z.string().describe('What is wrong, in one sentence.'),
    reason: z.string().describe('Why it matters.'),
    advice: z.string().describe('What to do about it.'),
    queue: z.string().optional(),
    worker: z.string().optional(),
    schedule: z.string().optional(),
    node: z.string().optional().describe('The node of a Redis Cluster.'),
  })
  .meta({ id: 'Finding', description: 'Something that is wrong with the installation.' })

export type Finding = z.infer<typeof findingSchema>

export const diagnosisSchema = z
  .object({
    now: time.describe("The current time on Redis's clock, or the API's estimate of it if Redis cannot be used."),
    findings: z.array(findingSchema).describe('The errors first, and then the warnings.'),
    passed: z.array(z.enum(DIAGNOSIS_CHECKS)).describe('The checks that have found nothing.'),
    skipped: z
      .array(z.enum(DIAGNOSIS_CHECKS))
      .describe(
        'The checks that could not be carried out, because Redis cannot be used or does not permit the commands that they need.',
      ),
  })
  .meta({ id: 'Diagnosis' })

export type Diagnosis = z.infer<typeof diagnosisSchema>

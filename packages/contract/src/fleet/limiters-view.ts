// Defines how the limiters of a queue are shown: its permits, and the caps of its task definitions.
import { z } from 'zod'

/** The permits of a resource, and the cap of a task definition. */
const LIMITER_KINDS = ['permits', 'definition'] as const

export type LimiterKind = (typeof LIMITER_KINDS)[number]

export const limiterView = z.object({
  kind: z
    .enum(LIMITER_KINDS)
    .describe('`permits`: the permits of a resource. `definition`: the `concurrency` of a task definition.'),
  name: z.string().describe('The name of the permits or of the definition.'),
  capacity: z.int().describe('How many permits there are, or how many tasks of the definition may run at once.'),
  inUse: z
    .int()
    .describe('How many of these permits are held by active tasks, or how many tasks of the definition are active.'),
})

export const limitersView = z
  .array(limiterView)
  .optional()
  .describe(
    "The queue's permits, and the `concurrency` of its task definitions, across all workers. Definitions or commands have set them. Absent if there are none.",
  )

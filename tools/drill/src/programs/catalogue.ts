// The drills' own tasks: they take as long as they are told, and hold up what they are told to.
import { defineCatalogue, defineTask } from '@bullpen/contract'
import { z } from 'zod'

const output = z.object({ start: z.int() })
const queue = 'drill'
const timeout = '5m'

export const work = defineTask({
  name: 'drill.work',
  queue,
  timeout,
  input: z.object({
    ms: z.int(),
    listens: z.boolean(),
    /** How long it takes when it is started again; as long as before unless it is given. */
    againMs: z.int().optional(),
    /** What its first start ends with, and how long the next one is to wait. */
    again: z.object({ by: z.enum(['retry', 'snooze']), afterMs: z.int() }).optional(),
    /** The first that this process starts holds its event loop for so long; all others end at once. */
    blocks: z.object({ process: z.string(), ms: z.int() }).optional(),
  }),
  output,
})

/** In a thread of its own, whose event loop it holds all the while. */
export const apart = defineTask({
  name: 'drill.apart',
  queue,
  timeout,
  isolation: 'thread',
  input: z.object({ ms: z.int() }),
  output,
})

export const catalogue = defineCatalogue(work, apart)

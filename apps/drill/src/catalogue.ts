// The drills' own task: it takes as long as it is told.
import { defineCatalogue, defineTask } from '@bullpen/contract'
import { z } from 'zod'

export const work = defineTask({
  name: 'drill.work',
  queue: 'drill',
  timeout: '5m',
  input: z.object({ ms: z.int(), listens: z.boolean() }),
  output: z.object({ start: z.int() }),
})

export const catalogue = defineCatalogue(work)

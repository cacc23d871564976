// math.factorial: n!, exact for every allowed n.
import { defineTask } from '@bullpen/contract'
import { z } from 'zod'

export const mathFactorial = defineTask({
  name: 'math.factorial',
  queue: 'cpu',
  kind: 'short',
  summary: 'n! for n from 0 to 1000.',
  input: z.object({ n: z.int().min(0).max(1_000) }),
  // Text, because JSON numbers are doubles and 23! needs more digits than a double has.
  output: z.object({ value: z.string().regex(/^[1-9]\d*$/) }),
  retry: { maxAttempts: 1 },
})

// math.factorial: computes n! exactly for every allowed n.
import { defineTask } from '@bullpen/contract'
import { z } from 'zod'

export const mathFactorial = defineTask({
  name: 'math.factorial',
  queue: 'cpu',
  kind: 'short',
  summary: 'Computes n! for n from 0 to 1000.',
  input: z.object({ n: z.int().min(0).max(1_000) }),
  // The value is text because JSON numbers are doubles, and 23! has more digits than a double can represent.
  output: z.object({ value: z.string().regex(/^[1-9]\d*$/) }),
  retry: { maxAttempts: 1 },
})

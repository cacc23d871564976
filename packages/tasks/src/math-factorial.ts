// The contract of math.factorial: goapp's own example, exact for every allowed number.
import { defineTask } from '@bullpen/contract'
import { z } from 'zod'

export const mathFactorial = defineTask({
  name: 'math.factorial',
  queue: 'cpu',
  kind: 'short',
  summary: 'n! for n from 0 to 1000.',
  input: z.object({ n: z.int().min(0).max(1_000) }),
  // 23! no longer fits a double, so JSON can't carry it as a number.
  output: z.object({ value: z.string().regex(/^[1-9]\d*$/) }),
  retry: { maxAttempts: 1 },
})

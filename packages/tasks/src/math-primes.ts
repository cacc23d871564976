// math.primes: counts the primes below a limit, in a thread, because it would otherwise block the worker's event loop for seconds.
import { defineTask } from '@bullpen/contract'
import { z } from 'zod'

export const mathPrimes = defineTask({
  name: 'math.primes',
  queue: 'cpu',
  kind: 'long',
  isolation: 'thread',
  summary: 'Counts the primes below a limit of at most 1,000,000,000.',
  input: z.object({ below: z.int().min(0).max(1_000_000_000) }),
  output: z.object({
    primes: z.int().nonnegative(),
    thread: z.int().describe("The number of the thread that has counted. The worker's own thread is 0."),
  }),
  // The largest limit takes some 10 s on an idle core.
  timeout: '5m',
  expectedDuration: '5s',
  retry: { maxAttempts: 3 },
})

import { defineHandler, defineTask } from '@bullpen/contract'
import { z } from 'zod'

export const count = defineTask({
  name: 'primes.count',
  queue: 'cpu',
  input: z.object({ below: z.int(), hoard: z.boolean().default(false) }),
  output: z.object({ primes: z.int() }),
  isolation: 'process',
  memoryLimit: '96MiB',
  timeout: '20s',
  grace: '100ms',
  retry: { maxAttempts: 1 },
})

export default defineHandler(count, import.meta.url, ({ input }) => {
  const hoard: string[] = []
  while (input.hoard) hoard.push('x'.repeat(1_000) + hoard.length) // never ends, and frees no memory
  let primes = 0
  for (let n = 2; n < input.below; n++) {
    let divisor = 2
    while (divisor * divisor <= n && n % divisor !== 0) divisor++
    if (divisor * divisor > n) primes++
  }
  return { primes }
})

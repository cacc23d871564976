import { defineCatalogue, defineTask } from '@bullpen/contract'
import { z } from 'zod'

export const welcome = defineTask({
  name: 'email.welcome',
  queue: 'email',
  input: z.object({ to: z.email(), name: z.string().default('you') }),
  output: z.object({ greeting: z.string() }),
  timeout: '30s',
  retry: { maxAttempts: 3, backoff: { initialDelay: '1s' } },
})

export const report = defineTask({
  name: 'report.build',
  queue: 'reports',
  input: z.object({ pages: z.int() }),
  output: z.object({ pages: z.int() }),
  timeout: '5m',
})

export const catalogue = defineCatalogue(welcome, report)

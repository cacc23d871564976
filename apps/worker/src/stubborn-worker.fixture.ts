// A worker process whose handlers are slow on purpose: one listens to its signal, one does not, one blocks its process.
import { setTimeout as sleep } from 'node:timers/promises'
import { defineCatalogue, defineHandler, defineTask } from '@bullpen/contract'
import { z } from 'zod'
import { createWorker, runUntilSignalled } from './index.ts'

const schemas = { input: z.object({ ms: z.int() }), output: z.object({ start: z.int() }) }
const listening = defineTask({ name: 'slow.listening', queue: 'slow', timeout: '1m', ...schemas })
const deaf = defineTask({ name: 'slow.deaf', queue: 'slow', timeout: '1m', ...schemas })

export const slowTasks = defineCatalogue(listening, deaf)

if (process.argv[1] === import.meta.filename) {
  const handlers = {
    'slow.listening': defineHandler(listening, import.meta.url, async ({ input, start, signal }) => {
      await sleep(input.ms, undefined, { signal })
      return { start }
    }),
    'slow.deaf': defineHandler(deaf, import.meta.url, async ({ input, start }) => {
      await sleep(input.ms)
      return { start }
    }),
  }
  const [redisUrl, namespace] = process.argv.slice(2)
  const config = { redisUrl, namespace, port: 0, drainTimeout: '500ms', grace: '500ms', pools: { slow: 4 } } as const
  process.exit(await runUntilSignalled(createWorker({ catalogue: slowTasks, handlers, config })))
}

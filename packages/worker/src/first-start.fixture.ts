// A worker program like the one in the README, with a resource that fails to open if the test requests it, or with a port set
// in code.
import { defineCatalogue, defineHandler, defineTask } from '@bullpen/contract'
import { z } from 'zod'
import { createWorker, runUntilSignalled, type WorkerConfig, workerConfig } from './index.ts'

const greet = defineTask({ name: 'first.greet', queue: 'first', input: z.object({}), output: z.object({}) })
const { FIRST_RESOURCE, FIRST_PORT, FIRST_MODE } = process.env
const config: WorkerConfig = { ...workerConfig(), ...(FIRST_PORT !== undefined && { port: FIRST_PORT }) }
const worker = createWorker({
  catalogue: defineCatalogue(greet),
  handlers: { 'first.greet': defineHandler(greet, import.meta.url, () => ({})) },
  resources: {
    database: {
      open() {
        if (FIRST_RESOURCE !== undefined) throw new Error(FIRST_RESOURCE)
      },
    },
  },
  config,
})

process.exit(await runUntilSignalled(worker, FIRST_MODE === 'online' ? { only: [] } : {}))

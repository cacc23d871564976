// An idle worker process on the Redis whose URL is its first argument.
import { defineCatalogue, defineHandler, defineTask } from '@bullpen/contract'
import { z } from 'zod'
import { createWorker, runUntilSignalled } from './index.ts'

const idle = defineTask({ name: 'idle.none', queue: 'idle', input: z.object({}), output: z.object({}) })
const [redisUrl, namespace] = process.argv.slice(2)
const worker = createWorker({
  catalogue: defineCatalogue(idle),
  handlers: { 'idle.none': defineHandler(idle, import.meta.url, () => ({})) },
  config: { redisUrl, namespace, port: 0 },
})
process.exit(await runUntilSignalled(worker))

// A worker of the benchmark `pipeline-fleet`: node fleet-worker.ts REDIS_URL NAMESPACE. Prints a line when it is ready, and
// runs until it is killed.
import { createWorker } from '@bullpen/worker'
import { CONCURRENCY, catalogue, handlers } from './work.ts'

const [redisUrl = '', namespace = ''] = process.argv.slice(2)
const worker = createWorker({
  catalogue,
  handlers,
  // One more slot than the stage has tasks, for the source.
  config: { redisUrl, namespace, logLevel: 'warn', pools: { bench: CONCURRENCY + 1 }, port: 0 },
})
await worker.start()
console.log('ready')

// A process with a pool that a test kills: its handler completes, fails, snoozes or hangs, by the task's input.
import { defineCatalogue, defineHandler, defineTask, type Log, TaskError } from '@bullpen/contract'
import { realTimePool } from '@bullpen/testkit/internal'
import { z } from 'zod'
import { openConsumer } from '../../consumer.ts'

export const QUEUE = 'model'
const schemas = { input: z.object({ n: z.int() }), output: z.object({ n: z.int() }) }
export const task = defineTask({ name: 'model.task', queue: QUEUE, timeout: '1m', ...schemas })

const silent: Log = { debug() {}, info() {}, warn() {}, error() {} }

if (process.argv[1] === import.meta.filename) {
  const [redisUrl = '', namespace = ''] = process.argv.slice(2)
  const handler = defineHandler(task, import.meta.url, async ({ input: { n }, snooze, signal }) => {
    switch (n % 6) {
      case 0:
        throw new TaskError('busy', '', { retryAfter: '1h' })
      case 1:
        throw new TaskError('gone', '', { retryable: false })
      case 2:
        return snooze('1h')
      case 3:
        return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      default:
        return { n }
    }
  })
  const pool = realTimePool({
    queue: QUEUE,
    concurrency: 3,
    catalogue: defineCatalogue(task),
    handlers: { 'model.task': handler },
    consumer: (runTask, host) =>
      openConsumer(
        { queue: QUEUE, namespace, redisUrl, concurrency: 3, retention: { completed: { ageMs: 60_000 } }, log: silent },
        runTask,
        host,
      ),
  })
  await pool.start()
}

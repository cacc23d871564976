// A process that may lead its namespace and has a pool. A task fails permanently until it has been retried after its death. The
// process prints a line for each task that it starts.
import { writeSync } from 'node:fs'
import { defineCatalogue, defineHandler, defineTask, TaskError } from '@bullpen/contract'
import { realTimePool } from '@bullpen/testkit/internal'
import { z } from 'zod'
import { openPatientBroker } from '../broker/patient-broker.fixture.ts'
import { openConsumer } from '../consumer.ts'
import { silent } from '../setup.fixture.ts'

export const QUEUE = 'graves'
export const KINDS = ['gone', 'refused', 'broken'] as const

/** `kind` is the index of the error's kind, or -1 for a task that succeeds. */
const input = z.object({ kind: z.int(), n: z.int() })
export const task = defineTask({ name: 'graves.task', queue: QUEUE, kind: 'short', input, output: z.unknown() })

if (process.argv[1] === import.meta.filename) {
  const [redisUrl = '', namespace = ''] = process.argv.slice(2)
  const common = { redisUrl, namespace, log: silent }
  const leaderTimes = { leaseMs: 600, renewMs: 200, roundMs: 200 }
  openPatientBroker({ ...common, queues: [QUEUE], sizeLimit: 10_000, admission: 'open', leaderTimes })
  // Writes synchronously, so that a process that is killed has printed every task that it started.
  const handler = defineHandler(task, import.meta.url, ({ id, fencingToken, attempt, input: { kind, n } }) => {
    writeSync(1, `${id} ${fencingToken} ${attempt}\n`)
    const code = KINDS[kind]
    if (code !== undefined && fencingToken === 1) {
      throw new TaskError(code, `no customer ${n}`, { retryable: false })
    }
    return null
  })
  const pool = realTimePool({
    queue: QUEUE,
    concurrency: 4,
    catalogue: defineCatalogue(task),
    handlers: { 'graves.task': handler },
    consumer: (runTask, host) =>
      openConsumer({ ...common, queue: QUEUE, concurrency: 4, retention: {} }, runTask, host),
  })
  await pool.start()
}

// The counterpart of worker-main: a plain BullMQ Worker with its default settings, which runs the same jobs and closes on SIGTERM.
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'bullmq'
import { appendTo } from '../ledger/effects.ts'
import { callProvider } from '../outage/provider.ts'
import { work } from './catalogue.ts'
import type { WorkerArguments } from './worker-arguments.ts'

const { name, ledger, config } = JSON.parse(process.argv[2] ?? '') as WorkerArguments
const append = appendTo(ledger)
const { hostname, port } = new URL(config.redisUrl ?? '')

type Input = { readonly ms?: number; readonly url?: string; readonly again?: object }
/** The data is an envelope, or the input itself. */
type Data = Input & { readonly input?: Input }

const worker = new Worker<Data>(
  work.queue,
  async ({ id = '', attemptsStarted: fencingToken, data }) => {
    append({ what: 'start', id, fencingToken, worker: name, at: Date.now() })
    const { ms = 0, url, again } = data.input ?? data
    await (url === undefined ? sleep(ms) : callProvider(url))
    if (again !== undefined && fencingToken === 1) {
      append({ what: 'failure', id, fencingToken, worker: name, at: Date.now() })
      throw new Error('the input asks for a retry')
    }
    append({ what: 'end', id, fencingToken, worker: name, at: Date.now() })
    return { output: { fencingToken }, process: name }
  },
  {
    connection: { host: hostname, port: Number(port) },
    prefix: `{${config.namespace}.${work.queue}}`,
    concurrency: Number(Object.entries(config.pools ?? {}).find(([queue]) => queue === work.queue)?.[1]),
  },
)
worker.on('error', console.error)
process.once('disconnect', () => process.exit(3))
process.once('SIGTERM', async () => {
  await worker.close()
  process.exit(0)
})
await worker.waitUntilReady()
process.send?.('ready')

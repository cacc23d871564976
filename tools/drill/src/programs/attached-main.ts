// A team's own BullMQ Worker with Bullpen's backend and processor, and the settings that the documentation gives. It runs the same jobs as
// peer-main.
import { bullpenBackend, processor } from '@bullpen/bullmq'
import { defineCatalogue } from '@bullpen/contract'
import { Worker } from 'bullmq'
import { work } from './catalogue.ts'
import { workHandler } from './handlers/work-handlers.ts'
import { ARGUMENTS_VARIABLE, WORKER_PID_VARIABLE, type WorkerArguments } from './worker-arguments.ts'

const given = process.argv[2] ?? ''
process.env[ARGUMENTS_VARIABLE] = given
process.env[WORKER_PID_VARIABLE] = `${process.pid}`
const { config } = JSON.parse(given) as WorkerArguments
const { hostname, port } = new URL(config.redisUrl ?? '')
const catalogue = defineCatalogue(work)
const run = processor(catalogue, { 'drill.work': workHandler })

const worker = new Worker(
  work.queue,
  async (job, token, signal) => run(job, token, signal),
  {
    connection: { host: hostname, port: Number(port) },
    prefix: `{${config.namespace}.${work.queue}}`,
    concurrency: Number(Object.entries(config.pools ?? {}).find(([queue]) => queue === work.queue)?.[1]),
    lockDuration: 5_000,
    lockRenewTime: 1_000,
    stalledInterval: 1_500,
    maxStalledCount: 10,
  },
  bullpenBackend({ catalogue }),
)
worker.on('error', console.error)
worker.on('lockRenewalFailed', (ids) => {
  for (const id of ids) worker.cancelJob(id, 'lock_lost')
})
process.once('disconnect', () => process.exit(3))
process.once('SIGTERM', async () => {
  await worker.close()
  process.exit(0)
})
await worker.waitUntilReady()
process.send?.('ready')

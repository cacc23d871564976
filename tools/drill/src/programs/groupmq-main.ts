// A worker of groupmq, which runs the tasks of the drill `fairness` with its default settings.
import { setTimeout as sleep } from 'node:timers/promises'
import { Queue, Worker } from 'groupmq'
import { Redis } from 'ioredis'
import { appendTo } from '../ledger/effects.ts'
import type { WorkerArguments } from './worker-arguments.ts'

export interface GroupmqData {
  readonly ms: number
}

const { name, ledger, config } = JSON.parse(process.argv[2] ?? '') as WorkerArguments
const { redisUrl = '', namespace = '' } = config
const append = appendTo(ledger)
const redis = new Redis(redisUrl, { maxRetriesPerRequest: null })

const worker = new Worker<GroupmqData>({
  queue: new Queue({ redis, namespace }),
  concurrency: Number(Object.values(config.pools ?? {})[0]),
  async handler({ id, data }) {
    append({ what: 'start', id, fencingToken: 1, worker: name, at: Date.now() })
    await sleep(data.ms)
    append({ what: 'end', id, fencingToken: 1, worker: name, at: Date.now() })
  },
})
worker.on('error', console.error)
process.once('disconnect', () => process.exit(3))
process.once('SIGTERM', () => process.exit(0))
await redis.ping()
process.send?.('ready')

// Measures whether the platform stays as it is under a constant load for minutes: new tasks at a given rate over 50 queues, while a large
// number of tasks is waiting.
//
// Every queue gets the same number of new tasks. The tasks of 25 queues flow: there are slots for all of them, so their times show what
// the platform adds. The other 25 queues have the backlog, divided equally, which is stored before the load begins. Their tasks call a
// service that accepts exactly as many calls per second as there are new tasks, so each of these queues starts and ends tasks all the
// time, and stays as long as it is. Their wait is the length of the backlog by the rate, whatever the platform does, so it is not
// measured.
//
// The load is open: the times count from the moment at which a task should be enqueued, so a platform that cannot keep up is not shown in
// a better light by producers that wait for it. `enqueue` lasts until Redis has stored the task, `wait` until its handler starts, and `end`
// until a caller has the result. One in 50 of the flowing tasks has such a caller, which checks the result.
//
// Ended tasks are removed after a minute, and each queue's event stream keeps about its newest 10,000 entries, which the default rate fills
// within another one. The trend is therefore that of the rows after the first two minutes, or of the later half if there are fewer. At a
// lower rate, the memory of Redis grows for longer before it is constant.
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { redis as overRedis } from '@bullpen/bullmq'
import { createClient } from '@bullpen/client'
import { Redis } from 'ioredis'
import { readRedisCpu } from '../measuring/cpu-time.ts'
import { type Buckets, mergeBuckets, percentileMs } from '../measuring/latency-histogram.ts'
import { type Part, startPart } from '../measuring/part.ts'
import { type SustainResult, type SustainRow, type Time, trendsOf } from './rows.ts'
import {
  catalogue,
  type Done,
  FLOWING,
  nowMs,
  type ProducerOptions,
  QUEUES,
  TASKS,
  TEXT,
  type WorkerOptions,
} from './workload.ts'

export interface SustainOptions {
  readonly redisUrl: string
  readonly minutes: number
  /** New tasks per second over all queues. */
  readonly rate: number
  /** How many tasks wait in the queues with a backlog. */
  readonly waiting: number
  /** The number of worker processes. Each one serves all queues. */
  readonly workers: number
  /** How long a row lasts. */
  readonly interval: number
}

const NAMESPACE = 'sustain'
const WARM_UP_MS = 5_000
const BULK = 1_000
/** How many bulk requests store the backlog at once. */
const BULKS_AT_ONCE = 4

/** Yields a row for each interval, and then the result of all of them. The server's data is deleted at the end. */
export async function* benchSustain(options: SustainOptions): AsyncGenerator<SustainResult> {
  const { redisUrl, rate, workers } = options
  await using opened = new AsyncDisposableStack()
  const redis = opened.adopt(new Redis(redisUrl), (each) => each.disconnect())
  opened.defer(async () => void (await redis.flushall()))
  await storeBacklog(options)

  const start = async (program: string, given: ProducerOptions | WorkerOptions): Promise<Part<unknown>> =>
    opened.adopt(await startPart(join(import.meta.dirname, program), given), (part) => part.stop())
  const common = { redisUrl, namespace: NAMESPACE }
  const backlogRate = rate / QUEUES / workers
  const pool = await Promise.all(
    Array.from({ length: workers }, () => start('worker-part.ts', { ...common, backlogRate })),
  )
  const producer = await start('producer-part.ts', { ...common, rate })
  await producer.ask('begin')
  await sleep(WARM_UP_MS)

  const rows: SustainRow[] = []
  const times: Record<Time, Buckets[]> = { enqueue: [], wait: [], end: [] }
  const count = Math.max(1, Math.round((options.minutes * 60) / options.interval))
  let before = await readAll(redis, producer, pool)
  for (let i = 0; i < count; i++) {
    await sleep(options.interval * 1_000)
    const after = await readAll(redis, producer, pool)
    const row = { ...rowOf(before, after), waiting: await countWaiting(redis) }
    before = after
    times.enqueue.push(after.producer.enqueue)
    times.wait.push(after.workers.wait)
    times.end.push(after.producer.end)
    rows.push(row)
    yield { bench: 'sustain', row: i + 1, ...row }
  }
  const p99 = (time: Time): number => percentileMs(mergeBuckets(times[time]), 0.99)
  yield {
    bench: 'sustain',
    enqueuedPerSecond: rows.reduce((sum, row) => sum + row.enqueuedPerSecond, 0) / rows.length,
    failedCalls: rows.reduce((sum, row) => sum + row.failedCalls, 0),
    p99Ms: { enqueue: p99('enqueue'), wait: p99('wait'), end: p99('end') },
    changePerMinute: trendsOf(rows, options.interval),
  }
}

async function storeBacklog({ redisUrl, waiting }: SustainOptions): Promise<void> {
  const client = createClient({ transport: overRedis(redisUrl, { catalogue, namespace: NAMESPACE }) })
  const backlogged = TASKS.slice(FLOWING)
  const each = Math.round(waiting / backlogged.length)
  const bulks = backlogged.flatMap((task) =>
    Array.from({ length: Math.ceil(each / BULK) }, (_, i) => ({ task, size: Math.min(BULK, each - i * BULK) })),
  )
  const lane = async (): Promise<void> => {
    for (let bulk = bulks.pop(); bulk !== undefined; bulk = bulks.pop()) {
      const inputs = Array.from({ length: bulk.size }, (_, n) => ({ at: nowMs(), n, text: TEXT }))
      const stored = await client.enqueueBulk(bulk.task, inputs)
      const failed = stored.find((result) => 'error' in result)
      if (failed !== undefined) throw new Error(`the backlog cannot be stored: ${JSON.stringify(failed)}`)
    }
  }
  try {
    await Promise.all(Array.from({ length: BULKS_AT_ONCE }, lane))
  } finally {
    await client.close()
  }
}

/** What everything has done since the last reading, and the CPU time that it has used in all. */
interface Reading {
  readonly at: number
  readonly producer: Done
  readonly workers: Done
  /** In µs. */
  readonly redisCpu: number
  readonly redisMiB: number
}

async function readAll(redis: Redis, producer: Part<unknown>, pool: readonly Part<unknown>[]): Promise<Reading> {
  const [cpu, memory, ofProducer, ...ofWorkers] = await Promise.all([
    readRedisCpu(redis),
    redis.info('memory'),
    producer.ask('take'),
    ...pool.map((worker) => worker.ask('take')),
  ])
  const redisMiB = Number(/^used_memory:(\d+)/m.exec(memory)?.[1]) / 2 ** 20
  return { at: performance.now(), producer: ofProducer, workers: sumOf(ofWorkers), redisCpu: cpu, redisMiB }
}

function rowOf(before: Reading, after: Reading): Omit<SustainRow, 'waiting'> {
  const seconds = (after.at - before.at) / 1_000
  const { producer, workers } = after
  const cores = (read: (reading: Reading) => number): number => (read(after) - read(before)) / 1e6 / seconds
  return {
    seconds,
    enqueuedPerSecond: producer.tasks / seconds,
    endedPerSecond: workers.tasks / seconds,
    enqueueP99Ms: percentileMs(producer.enqueue, 0.99),
    waitP99Ms: percentileMs(workers.wait, 0.99),
    endP99Ms: percentileMs(producer.end, 0.99),
    redisCores: cores(({ redisCpu }) => redisCpu),
    producerCores: cores((reading) => reading.producer.cpu),
    workerCores: cores((reading) => reading.workers.cpu),
    redisMiB: after.redisMiB,
    failedCalls: producer.failed,
  }
}

function sumOf(all: readonly Done[]): Done {
  return {
    tasks: all.reduce((sum, { tasks }) => sum + tasks, 0),
    failed: all.reduce((sum, { failed }) => sum + failed, 0),
    cpu: all.reduce((sum, { cpu }) => sum + cpu, 0),
    enqueue: mergeBuckets(all.map(({ enqueue }) => enqueue)),
    wait: mergeBuckets(all.map(({ wait }) => wait)),
    end: mergeBuckets(all.map(({ end }) => end)),
  }
}

async function countWaiting(redis: Redis): Promise<number> {
  const lengths = await Promise.all(TASKS.map(({ queue }) => redis.llen(`{${NAMESPACE}.${queue}}:${queue}:wait`)))
  return lengths.reduce((sum, each) => sum + each, 0)
}

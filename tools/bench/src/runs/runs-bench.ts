// Compares a pipeline across the fleet with a flow of plain BullMQ that does the same work: the items a second, and the most memory that
// Redis and the worker use. A flow stores all of its jobs before the first one starts.
import { fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { RUN_SIDES, type RunDone, type RunLoad, type RunSide } from './workload.ts'

export interface RunsOptions {
  readonly redisUrl: string
  /** How often each side runs, in turn with the other one. */
  readonly pairs: number
  /** How many items pass through the stages one by one. In batches, it is ten times as many. */
  readonly items: number
}

export interface RunsResult extends RunDone, Omit<RunLoad, 'redisUrl' | 'namespace'> {
  /** By how much the memory of Redis grew at most, in MiB. */
  readonly redisMiB: number
}

const BOUND = 100
const BATCH = 100
const SAMPLE_MS = 100

/** Yields a result for each run. The server's data is deleted before and after each of them. */
export async function* benchRuns({ redisUrl, pairs, items }: RunsOptions): AsyncGenerator<RunsResult> {
  const loads = [
    { items, size: 1 },
    { items: 10 * items, size: BATCH },
  ]
  const redis = new Redis(redisUrl)
  try {
    for (const load of loads) {
      for (let pair = 0; pair < pairs; pair++) {
        for (const side of pair % 2 === 0 ? RUN_SIDES : RUN_SIDES.toReversed()) {
          const namespace = `bench-${randomUUID().slice(0, 8)}`
          yield await measure(redis, { side, redisUrl, namespace, bound: BOUND, ...load })
        }
      }
    }
  } finally {
    redis.disconnect()
  }
}

const PROGRAMS: Readonly<Record<RunSide, string>> = { pipeline: 'pipeline-process.ts', flow: 'flow-process.ts' }

async function measure(redis: Redis, load: RunLoad): Promise<RunsResult> {
  await redis.flushall()
  const before = await usedBytes(redis)
  let most = before
  const child = fork(join(import.meta.dirname, PROGRAMS[load.side]), [JSON.stringify(load)], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const sampling = setInterval(() => {
    void usedBytes(redis).then((bytes) => {
      most = Math.max(most, bytes)
    })
  }, SAMPLE_MS)
  try {
    const [done] = await Promise.race([once(child, 'message'), once(child, 'exit').then(() => [undefined])])
    if (done === undefined) throw new Error(`the ${load.side} ended before all items had passed through it`)
    const { redisUrl: _, namespace: _namespace, ...shown } = load
    return { ...shown, ...(done as RunDone), redisMiB: Math.round((most - before) / 2 ** 20) }
  } finally {
    clearInterval(sampling)
    const ended = once(child, 'exit')
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL')
      await ended
    }
    await redis.flushall()
  }
}

async function usedBytes(redis: Redis): Promise<number> {
  return Number(/^used_memory:(\d+)/m.exec(await redis.info('memory'))?.[1])
}

const NAMES: Readonly<Record<RunSide, string>> = { pipeline: 'pipeline', flow: 'flow of plain BullMQ' }

export function describeRuns({ side, items, size, bound, seconds, redisMiB, rssMiB }: RunsResult): string {
  const load = size === 1 ? `${items} items` : `${items} items in batches of ${size}`
  const rate = Math.round(items / seconds).toLocaleString('en-US')
  const limit = side === 'pipeline' ? `, at most ${bound} tasks a stage` : ''
  return `runs ${load.padEnd(32)} ${`${NAMES[side]}${limit}`.padEnd(34)}${seconds.toFixed(1).padStart(7)} s ${rate.padStart(8)} items/s  Redis ${redisMiB} MiB at most, worker ${rssMiB} MiB at most`
}

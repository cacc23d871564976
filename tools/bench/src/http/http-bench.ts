// Measures the platform end to end over HTTP: callers enqueue tasks and wait for their results, with one API process and with 1, 2 and 4
// worker processes.
//
// A call takes two requests: one stores the task, and the other waits for its result. All calls come from one process, which checks every
// result. The CPU time of each part shows what limits the rate: a process has one thread, so it is at its limit when it needs one second of
// CPU time per second. On a machine with few cores, the processes also compete with each other and with Redis.
import { setTimeout as sleep } from 'node:timers/promises'
import { startCpuTime } from '../measuring/cpu-time.ts'
import { median } from '../measuring/pairs.ts'
import type { Part } from '../measuring/part.ts'
import { openSideParts } from '../measuring/side-parts.ts'
import type { CallersOptions, PlatformOptions } from './workload.ts'

export interface HttpOptions {
  readonly redisUrl: string
  /** How many calls are made at once. */
  readonly callers: number
  /** How long each number of workers is measured in each round. */
  readonly seconds: number
  readonly rounds: number
}

/** The CPU time of a part of the platform as a share of the time, so that 1 is a whole core. */
type Cores = Readonly<Record<'api' | 'workers' | 'callers' | 'redis', number>>

interface Measured {
  readonly tasksPerSecond: number
  /** From the call that enqueues a task until its result has arrived, in ms. */
  readonly p50Ms: number
  readonly p99Ms: number
  readonly cores: Cores
}

/** The medians of all rounds. */
export interface HttpResult extends Measured {
  readonly bench: 'http'
  readonly workers: number
  readonly callers: number
  /** The tasks per second of each round. */
  readonly rounds: readonly number[]
}

const WORKERS = [1, 2, 4] as const
const WARM_UP_MS = 3_000

/** Measures all numbers of workers in turn in each round, so that a noisy machine affects all of them. */
export async function* benchHttp({ rounds, ...options }: HttpOptions): AsyncGenerator<HttpResult> {
  const measured = new Map<number, Measured[]>(WORKERS.map((workers) => [workers, []]))
  for (let round = 0; round < rounds; round++) {
    for (const [workers, results] of measured) results.push(await measure(workers, options))
  }
  for (const [workers, results] of measured) {
    const middle = (read: (each: Measured) => number): number => median(results.map(read))
    yield {
      bench: 'http',
      workers,
      callers: options.callers,
      tasksPerSecond: middle(({ tasksPerSecond }) => tasksPerSecond),
      p50Ms: middle(({ p50Ms }) => p50Ms),
      p99Ms: middle(({ p99Ms }) => p99Ms),
      cores: {
        api: middle(({ cores }) => cores.api),
        workers: middle(({ cores }) => cores.workers),
        callers: middle(({ cores }) => cores.callers),
        redis: middle(({ cores }) => cores.redis),
      },
      rounds: results.map(({ tasksPerSecond }) => Math.round(tasksPerSecond)),
    }
  }
}

async function measure(
  workers: number,
  { redisUrl, callers, seconds }: Omit<HttpOptions, 'rounds'>,
): Promise<Measured> {
  await using parts = openSideParts(redisUrl)
  const { redis, namespace } = parts
  const start = <Ready>(program: string, options: object) =>
    parts.start<Ready>(new URL(program, import.meta.url), options)

  const platform: PlatformOptions = { redisUrl, namespace }
  const api = await start<string>('api-part.ts', platform)
  const pool = await Promise.all(Array.from({ length: workers }, () => start('worker-part.ts', platform)))
  const load: CallersOptions = { url: api.ready, callers }
  const calling = await start('callers-part.ts', load)

  const readCpu = async (parts: readonly Part<unknown>[]): Promise<number> =>
    (await Promise.all(parts.map((part) => part.ask('cpu')))).reduce((sum, each) => sum + each, 0)
  const readAll = async () => ({
    api: await readCpu([api]),
    workers: await readCpu(pool),
    callers: await readCpu([calling]),
  })
  await sleep(WARM_UP_MS)
  await calling.ask('begin')
  const redisTime = await startCpuTime(redis)
  const before = await readAll()
  await sleep(seconds * 1_000)
  const after = await readAll()
  const { redis: redisMicros } = await redisTime()
  const { tasks, seconds: tookSeconds, p50Ms, p99Ms } = await calling.ask('end')
  const coresOf = (micros: number): number => micros / tookSeconds / 1e6
  return {
    tasksPerSecond: tasks / tookSeconds,
    p50Ms,
    p99Ms,
    cores: {
      api: coresOf(after.api - before.api),
      workers: coresOf(after.workers - before.workers),
      callers: coresOf(after.callers - before.callers),
      redis: coresOf(redisMicros),
    },
  }
}

export function describeHttp({ workers, callers, tasksPerSecond, p50Ms, p99Ms, cores }: HttpResult): string {
  const rate = Math.round(tasksPerSecond).toLocaleString('en-US')
  const used = Object.entries(cores).map(([part, share]) => `${part} ${share.toFixed(2)}`)
  return [
    `http ${workers} ${workers === 1 ? 'worker: ' : 'workers:'} ${rate.padStart(7)} tasks/s with ${callers} callers`,
    `p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms`,
    `cores used: ${used.join(', ')}`,
  ].join('   ')
}

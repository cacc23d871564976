// Compares an enqueue over HTTP that waits for its result with what a user would write with fastify, BullMQ's `queue.add` and
// `job.waitUntilFinished`.
//
// Each side has a worker process, and the load comes from another process. Only the CPU time of the server and of Redis is counted.
import type { LoadOptions } from '../enqueue/load-part.ts'
import { type Figures, measure } from '../enqueue/measurement.ts'
import type { Listening, ServerOptions } from '../enqueue/server-part.ts'
import type { RequestName } from '../enqueue/workload.ts'
import { type Comparison, compareRounds, describeRatios, measureRounds } from '../measuring/controlled-pairs.ts'
import { openSideParts } from '../measuring/side-parts.ts'
import type { PeerOptions } from './peer-part.ts'
import type { WorkerOptions } from './worker-part.ts'

/** With `enqueue-and-wait`, one request does both. With `enqueue-then-wait`, a second one waits, as our client does. */
export const WAIT_CASES = ['enqueue-and-wait', 'enqueue-then-wait'] as const satisfies readonly RequestName[]
export type WaitCase = (typeof WAIT_CASES)[number]

export interface WaitOptions {
  readonly redisUrl: string
  readonly cases: readonly WaitCase[]
  readonly callers: number
  readonly pairs: number
  /** How long each measurement takes. */
  readonly seconds: number
  /** How long the load runs before each measurement. Defaults to 3. */
  readonly warmUpSeconds?: number
}

const UNITS = { rate: 'tasks/s', p99Ms: 'ms', processCpu: 'µs/task', redisCpu: 'µs/task' } as const
export type WaitFigure = keyof typeof UNITS & keyof Figures
export const WAIT_FIGURES = Object.keys(UNITS) as readonly WaitFigure[]

export interface WaitComparison extends Comparison {
  readonly bench: 'wait'
  readonly case: WaitCase
  readonly figure: WaitFigure
  readonly unit: string
}

/** Yields the comparisons of each case when the case has been measured. */
export async function* benchWait(options: WaitOptions): AsyncGenerator<WaitComparison> {
  for (const name of options.cases) {
    const measureOf = (side: 'bullpen' | 'bullmq') => () => measureSide(side, name, options)
    const rounds = await measureRounds(options.pairs, measureOf('bullpen'), measureOf('bullmq'))
    for (const figure of WAIT_FIGURES) {
      const compared = compareRounds(rounds, (figures) => figures[figure])
      yield { bench: 'wait', case: name, figure, unit: UNITS[figure], ...compared }
    }
  }
}

async function measureSide(
  side: 'bullpen' | 'bullmq',
  requests: WaitCase,
  { redisUrl, callers, seconds, warmUpSeconds = 3 }: WaitOptions,
): Promise<Figures> {
  await using parts = openSideParts(redisUrl)
  const { redis, namespace } = parts
  const [program, given]: [string, ServerOptions | PeerOptions] =
    side === 'bullpen'
      ? ['../enqueue/server-part.ts', { server: 'bullpen', redisUrl, namespace }]
      : ['peer-part.ts', { redisUrl, namespace }]
  const start = <Ready>(file: string, options: object) => parts.start<Ready>(new URL(file, import.meta.url), options)
  const server = await start<Listening>(program, given)
  const worker: WorkerOptions = { worker: side, redisUrl, namespace }
  await start('worker-part.ts', worker)
  const loading: LoadOptions = { port: server.ready.port, connections: callers, requests }
  const load = await start('../enqueue/load-part.ts', loading)
  const times = { warmUpMs: warmUpSeconds * 1_000, measureMs: seconds * 1_000 }
  return await measure({ enqueuing: server, load, redis, ...times })
}

export function describeWait({ case: name, figure, unit, ...compared }: WaitComparison): string {
  const { theirs, ours } = compared
  const digits = theirs < 100 ? 1 : 0
  const values = `${theirs.toFixed(digits).padStart(8)} → ${ours.toFixed(digits).padStart(8)} ${unit.padEnd(8)}`
  return `${`${name}: ${figure}`.padEnd(30)}${values}   ${describeRatios(compared)}`
}

// Compares Bullpen's enqueue with what a user would write with fastify and BullMQ, over HTTP and in the process.
//
// Every measurement starts new processes and uses keys of its own, which are deleted afterwards. The load comes from a third
// process, and the process that enqueues is the only one whose CPU time is counted.
import { type Comparison, compareRounds, describeRatios, measureRounds } from '../measuring/controlled-pairs.ts'
import { openSideParts } from '../measuring/side-parts.ts'
import type { LoadOptions } from './load-part.ts'
import { type Figures, measure } from './measurement.ts'
import type { ProducerName, ProducerOptions } from './producer-part.ts'
import type { Listening, ServerName, ServerOptions } from './server-part.ts'
import type { RequestName } from './workload.ts'

export interface EnqueueOptions {
  readonly redisUrl: string
  readonly cases: readonly EnqueueCase[]
  readonly pairs: number
  /** How long each measurement takes. */
  readonly seconds: number
  /** How long the load runs before each measurement. Defaults to 2. */
  readonly warmUpSeconds?: number
  /** How many requests or calls are made at once. Defaults to 64. */
  readonly connections?: number
  /** The greatest share of the requests that may be refused. Defaults to 0.01. */
  readonly mostRefused?: number
}

export interface EnqueueComparison extends Comparison {
  readonly bench: 'enqueue'
  readonly case: EnqueueCase
  readonly figure: keyof Figures
  readonly unit: string
}

/** What one case compares. */
type Contest =
  | {
      readonly requests: RequestName
      readonly ours: ServerName
      readonly theirs: ServerName
      /** The greatest number of requests that are made at once. */
      readonly mostConnections?: number
    }
  | { readonly ours: ProducerName; readonly theirs: ProducerName }

/** The cases by name. */
const CASES = {
  single: { requests: 'single', ours: 'bullpen', theirs: 'bullmq' },
  // The peer ignores the key.
  idempotent: { requests: 'idempotent', ours: 'bullpen', theirs: 'bullmq' },
  // If more requests of 1,000 tasks were made at once, some would wait for Redis longer than the command timeout.
  bulk: { requests: 'bulk', ours: 'bullpen', theirs: 'bullmq', mostConnections: 4 },
  'client-redis': { ours: 'bullpen', theirs: 'bullmq' },
  // Without Redis, the peer's server shows the highest rate that any API on the same HTTP server can reach.
  limit: { requests: 'single', ours: 'bullpen', theirs: 'fastify' },
} as const satisfies Readonly<Record<string, Contest>>
export type EnqueueCase = keyof typeof CASES

export const ENQUEUE_CASES = Object.keys(CASES) as readonly EnqueueCase[]

const UNITS: Readonly<Record<keyof Figures, string>> = {
  rate: 'tasks/s',
  processCpu: 'µs/task',
  redisCpu: 'µs/task',
  p99Ms: 'ms',
  scripts: 'scripts/task',
}
const FIGURES = Object.keys(UNITS) as readonly (keyof Figures)[]

/** Yields the comparisons of each case when the case has been measured. */
export async function* benchEnqueue(options: EnqueueOptions): AsyncGenerator<EnqueueComparison> {
  for (const name of options.cases) {
    const contest: Contest = CASES[name]
    const rounds = await measureRounds(
      options.pairs,
      () => measureSide(contest, 'ours', options),
      () => measureSide(contest, 'theirs', options),
    )
    for (const figure of FIGURES) {
      // Without Redis, there is nothing to compare.
      if (name === 'limit' && (figure === 'redisCpu' || figure === 'scripts')) continue
      yield {
        bench: 'enqueue',
        case: name,
        figure,
        unit: UNITS[figure],
        ...compareRounds(rounds, (figures) => figures[figure]),
      }
    }
  }
}

async function measureSide(
  contest: Contest,
  side: 'ours' | 'theirs',
  { redisUrl, seconds, warmUpSeconds = 2, connections = 64, mostRefused }: EnqueueOptions,
): Promise<Figures> {
  await using parts = openSideParts(redisUrl)
  const { redis, namespace } = parts
  const limits = { warmUpMs: warmUpSeconds * 1_000, measureMs: seconds * 1_000, mostRefused }
  if ('requests' in contest) {
    const server: ServerOptions = { server: contest[side], redisUrl, namespace }
    const enqueuing = await parts.start<Listening>(new URL('server-part.ts', import.meta.url), server)
    const atOnce = Math.min(connections, contest.mostConnections ?? connections)
    const requests: LoadOptions = { port: enqueuing.ready.port, connections: atOnce, requests: contest.requests }
    const load = await parts.start(new URL('load-part.ts', import.meta.url), requests)
    return await measure({ enqueuing, load, redis, ...limits })
  }
  const producer: ProducerOptions = { producer: contest[side], redisUrl, namespace, inFlight: connections }
  const enqueuing = await parts.start(new URL('producer-part.ts', import.meta.url), producer)
  return await measure({ enqueuing, load: enqueuing, redis, ...limits })
}

export function describeEnqueue({ case: name, figure, unit, ...compared }: EnqueueComparison): string {
  const { theirs, ours } = compared
  const digits = theirs < 100 ? 1 : 0
  const values = `${theirs.toFixed(digits).padStart(8)} → ${ours.toFixed(digits).padStart(8)} ${unit.padEnd(12)}`
  return `${`${name}: ${figure}`.padEnd(26)}${values}   ${describeRatios(compared)}`
}

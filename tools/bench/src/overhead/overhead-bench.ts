// Measures what metrics, logs and traces cost: the CPU time per task of the process and of Redis with them and without them.
//
// The side with metrics is scraped once a second, about fifteen times as often as usual: the worker that runs the tasks, and an API, which
// reads the gauges of the queues from Redis. The log has the level `info`, at which short tasks write no line and long tasks write two, to
// a pipe. Spans are recorded and batched, but not sent. The side without metrics and logs loads a module that does nothing in place of
// Bullpen's telemetry (unobserved.ts), but its events are still created, because attempts are built on them.
import { fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { createApi } from '@bullpen/api'
import { Redis } from 'ioredis'
import type { LoadOptions } from '../enqueue/load-part.ts'
import { measure } from '../enqueue/measurement.ts'
import type { Listening, ServerOptions } from '../enqueue/server-part.ts'
import { API_KEY } from '../enqueue/workload.ts'
import { type Comparison, compareRounds, describeCostRatios, measureRounds } from '../measuring/controlled-pairs.ts'
import { deleteKeys } from '../measuring/delete-keys.ts'
import { startPart } from '../measuring/part.ts'
import { startScrapes } from './scrapes.ts'
import { type Costs, catalogue, type Kind, type WorkerMessage, type WorkerOptions } from './workload.ts'

export interface OverheadOptions {
  readonly redisUrl: string
  readonly cases: readonly OverheadCase[]
  readonly pairs: number
  /** How many tasks a worker runs for each measurement. */
  readonly tasks: number
}

export interface OverheadComparison extends Comparison {
  readonly bench: 'overhead'
  readonly case: OverheadCase
  /** In µs per task, so that a ratio of 1.05 means that what is measured costs 5%. */
  readonly cost: keyof Costs
}

/** What one side has: nothing, metrics and logs, or traces as well. */
const LEVELS = ['off', 'on', 'traced'] as const
type Level = (typeof LEVELS)[number]

interface Contest {
  readonly what: string
  readonly ours: Level
  readonly theirs: Level
  /** The tasks that a worker runs. If omitted, the API enqueues tasks over HTTP. */
  readonly kind?: Kind
}

/** The cases by name. */
const CASES = {
  short: { what: 'metrics and logs, a short task', kind: 'short', ours: 'on', theirs: 'off' },
  long: { what: 'metrics and logs, a long task', kind: 'long', ours: 'on', theirs: 'off' },
  enqueue: { what: 'metrics and logs, an enqueue over HTTP', ours: 'on', theirs: 'off' },
  'short-traced': { what: 'traces as well, a short task', kind: 'short', ours: 'traced', theirs: 'on' },
  'long-traced': { what: 'traces as well, a long task', kind: 'long', ours: 'traced', theirs: 'on' },
} as const satisfies Readonly<Record<string, Contest>>
export type OverheadCase = keyof typeof CASES

export const OVERHEAD_CASES = Object.keys(CASES) as readonly OverheadCase[]

const SERVER = join(import.meta.dirname, '../enqueue/server-part.ts')
const LOAD = join(import.meta.dirname, '../enqueue/load-part.ts')
const UNOBSERVED = ['--import', new URL('./unobserved.ts', import.meta.url).href]
const CONNECTIONS = 64
const ENQUEUE_TIMES = { warmUpMs: 2_000, measureMs: 5_000 }

/** Yields the comparisons of each case when the case has been measured. */
export async function* benchOverhead({
  cases,
  pairs,
  ...options
}: OverheadOptions): AsyncGenerator<OverheadComparison> {
  for (const name of cases) {
    const { kind, ours, theirs }: Contest = CASES[name]
    const side = (level: Level) => () =>
      kind === undefined ? measureApi(level, options) : measureWorker(level, kind, options)
    const rounds = await measureRounds(pairs, side(ours), side(theirs))
    for (const cost of ['process', 'redis'] as const) {
      yield { bench: 'overhead', case: name, cost, ...compareRounds(rounds, (costs) => costs[cost]) }
    }
  }
}

type Limits = Pick<OverheadOptions, 'redisUrl' | 'tasks'>

async function measureWorker(level: Level, kind: Kind, { redisUrl, tasks }: Limits): Promise<Costs> {
  const namespace = newNamespace()
  await using opened = new AsyncDisposableStack()
  const redis = opened.adopt(new Redis(redisUrl), (each) => each.disconnect())
  opened.defer(() => deleteKeys(redis, `{${namespace}*`))
  const silent = { debug() {}, info() {}, warn() {}, error: console.error }
  const config = { redisUrl, namespace, keys: [API_KEY], port: 0, metricsPort: 0 }
  const api = opened.adopt(await createApi({ catalogue, config, log: silent }), (each) => each.close())
  const { metricsUrl } = await api.listen()
  const scrapes = opened.adopt(startScrapes(level === 'off' ? [] : [metricsUrl]), (each) => each.stop())

  const options: WorkerOptions = { redisUrl, namespace, kind, tasks, isTraced: level === 'traced' }
  const child = fork(join(import.meta.dirname, 'worker-process.ts'), [JSON.stringify(options)], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    execArgv: level === 'off' ? UNOBSERVED : [],
  })
  const exited = once(child, 'exit')
  let written = 0
  child.stdout?.on('data', (lines: Buffer) => {
    written += lines.length
  })
  let costs: Costs | undefined
  child.on('message', (message: WorkerMessage) => {
    if ('costs' in message) costs = message.costs
    else if (level !== 'off') scrapes.follow(new URL('/metrics', message.url).href)
  })
  await exited
  if (costs === undefined) throw new Error('the worker ended before it had run its tasks')
  if (level === 'off' && written > 0) throw new Error('the worker has written log lines although its log is off')
  return costs
}

async function measureApi(level: Level, { redisUrl }: Limits): Promise<Costs> {
  const namespace = newNamespace()
  await using opened = new AsyncDisposableStack()
  const redis = opened.adopt(new Redis(redisUrl), (each) => each.disconnect())
  opened.defer(() => deleteKeys(redis, `{${namespace}*`))
  const server: ServerOptions = { server: 'bullpen', redisUrl, namespace }
  const preload = level === 'off' ? UNOBSERVED : []
  const api = opened.adopt(await startPart<Listening>(SERVER, server, preload), (part) => part.stop())
  const { port, metricsUrl } = api.ready
  const requests: LoadOptions = { port, connections: CONNECTIONS, requests: 'single' }
  const load = opened.adopt(await startPart(LOAD, requests), (part) => part.stop())
  const scraped = level === 'off' || metricsUrl === undefined ? [] : [metricsUrl]
  opened.adopt(startScrapes(scraped), (each) => each.stop())
  const figures = await measure({ enqueuing: api, load, redis, ...ENQUEUE_TIMES })
  return { process: figures.processCpu, redis: figures.redisCpu }
}

const newNamespace = (): string => `bench-${randomUUID().slice(0, 8)}`

export function describeOverhead({ case: name, cost, ...compared }: OverheadComparison): string {
  const { theirs, ours } = compared
  const times = `${theirs.toFixed(1).padStart(7)} → ${ours.toFixed(1).padStart(7)} µs/task`
  return `${`${CASES[name].what}: ${cost}`.padEnd(50)}${times}   ${describeCostRatios(compared)}`
}

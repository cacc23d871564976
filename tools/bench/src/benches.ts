// Lists all benchmarks, with what each of them accepts on the command line.
import { benchAgainst, describeCosts } from './against/against-bench.ts'
import { benchEnqueue, describeEnqueue, ENQUEUE_CASES, type EnqueueCase } from './enqueue/enqueue-bench.ts'
import { benchEvents, describeEvents } from './events/events-bench.ts'
import { benchFollowUps, describeFollowUps } from './follow-ups/follow-ups-bench.ts'
import { benchHttp, describeHttp } from './http/http-bench.ts'
import { benchIdle, describeIdle } from './idle/idle-bench.ts'
import { benchPipeline } from './in-process/pipeline-bench.ts'
import { benchRunner } from './in-process/runner-bench.ts'
import { asTable } from './measuring/report.ts'
import { benchMemory, describeMemory } from './memory/memory-bench.ts'
import { benchOverhead, describeOverhead, OVERHEAD_CASES, type OverheadCase } from './overhead/overhead-bench.ts'
import { benchPipelineFleet, describePipelineFleet } from './pipeline-fleet/pipeline-fleet-bench.ts'
import { benchRuns, describeRuns } from './runs/runs-bench.ts'
import { benchScrape, describeScrape } from './scrape/scrape-bench.ts'
import { describeSustain } from './sustain/rows.ts'
import { benchSustain } from './sustain/sustain-bench.ts'
import { benchLaneMemory, describeLaneMemory } from './turns/lane-memory.ts'
import { benchTurns, describeTurns } from './turns/turns-bench.ts'
import { benchWait, describeWait, WAIT_CASES, type WaitCase } from './wait/wait-bench.ts'
import { benchWorker, describeWorker, WORKER_CASES, type WorkerCase } from './worker/worker-bench.ts'

export interface BenchInput {
  readonly redisUrl: string
  readonly operands: readonly string[]
  /** Returns the value of an option that the benchmark has. */
  number(option: string): number
}

export interface Bench {
  /** The operands as the usage shows them. */
  readonly operands?: string
  /** Returns whether the operands are accepted. Without it, there must be none. */
  accepts?(operands: readonly string[]): boolean
  /** The options, each of which takes a positive number, with their defaults. */
  readonly options?: Readonly<Record<string, number>>
  /** Set if the benchmark deletes all data of the server, which must therefore be empty. */
  readonly deletesData?: true
  /** Yields each result with the text that describes it. */
  run(input: BenchInput): AsyncGenerator<Described>
}

export interface Described {
  readonly result: object
  readonly text: string
}

const isCase = (text: string): text is EnqueueCase => ENQUEUE_CASES.some((each) => each === text)
const isWaitCase = (text: string): text is WaitCase => WAIT_CASES.some((each) => each === text)
const isWorkerCase = (text: string): text is WorkerCase => WORKER_CASES.some((each) => each === text)
const isOverheadCase = (text: string): text is OverheadCase => OVERHEAD_CASES.some((each) => each === text)

export const BENCHES: Readonly<Record<string, Bench>> = {
  worker: {
    operands: `[${WORKER_CASES.join('|')}]…`,
    accepts: (operands) => operands.every(isWorkerCase),
    options: { slots: 50, pairs: 11, seconds: 2 },
    run({ redisUrl, operands, number }) {
      const cases = operands.length === 0 ? WORKER_CASES : operands.filter(isWorkerCase)
      const limits = { slots: number('slots'), pairs: number('pairs'), seconds: number('seconds') }
      return described(benchWorker({ redisUrl, cases, ...limits }), describeWorker)
    },
  },
  runner: { run: () => described(benchRunner(), asTable) },
  pipeline: { run: () => described(benchPipeline(), asTable) },
  'pipeline-fleet': {
    options: { rounds: 5 },
    run: ({ redisUrl, number }) =>
      described(benchPipelineFleet({ redisUrl, rounds: number('rounds') }), describePipelineFleet),
  },
  runs: {
    options: { pairs: 3, items: 100_000 },
    deletesData: true,
    run: ({ redisUrl, number }) =>
      described(benchRuns({ redisUrl, pairs: number('pairs'), items: number('items') }), describeRuns),
  },
  enqueue: {
    operands: `[${ENQUEUE_CASES.join('|')}]…`,
    accepts: (operands) => operands.every(isCase),
    options: { pairs: 5, seconds: 10 },
    run({ redisUrl, operands, number }) {
      const cases = operands.length === 0 ? ENQUEUE_CASES : operands.filter(isCase)
      const limits = { pairs: number('pairs'), seconds: number('seconds') }
      return described(benchEnqueue({ redisUrl, cases, ...limits }), describeEnqueue)
    },
  },
  wait: {
    operands: `[${WAIT_CASES.join('|')}]…`,
    accepts: (operands) => operands.every(isWaitCase),
    options: { callers: 64, pairs: 5, seconds: 10 },
    run({ redisUrl, operands, number }) {
      const cases = operands.length === 0 ? WAIT_CASES : operands.filter(isWaitCase)
      const limits = { callers: number('callers'), pairs: number('pairs'), seconds: number('seconds') }
      return described(benchWait({ redisUrl, cases, ...limits }), describeWait)
    },
  },
  http: {
    options: { callers: 64, seconds: 10, rounds: 3 },
    run({ redisUrl, number }) {
      const limits = { callers: number('callers'), seconds: number('seconds'), rounds: number('rounds') }
      return described(benchHttp({ redisUrl, ...limits }), describeHttp)
    },
  },
  sustain: {
    options: { minutes: 10, rate: 2_000, waiting: 500_000, workers: 2, interval: 60 },
    deletesData: true,
    run({ redisUrl, number }) {
      const load = { minutes: number('minutes'), rate: number('rate'), waiting: number('waiting') }
      const shape = { workers: number('workers'), interval: number('interval') }
      return described(benchSustain({ redisUrl, ...load, ...shape }), describeSustain)
    },
  },
  overhead: {
    operands: `[${OVERHEAD_CASES.join('|')}]…`,
    accepts: (operands) => operands.every(isOverheadCase),
    options: { pairs: 5, tasks: 20_000 },
    run({ redisUrl, operands, number }) {
      const cases = operands.length === 0 ? OVERHEAD_CASES : operands.filter(isOverheadCase)
      const limits = { pairs: number('pairs'), tasks: number('tasks') }
      return described(benchOverhead({ redisUrl, cases, ...limits }), describeOverhead)
    },
  },
  against: {
    operands: 'CHECKOUT',
    accepts: ({ length }) => length === 1,
    options: { pairs: 11, tasks: 12_000 },
    run: ({ redisUrl, operands: [checkout = ''], number }) =>
      described(benchAgainst({ redisUrl, checkout, pairs: number('pairs'), tasks: number('tasks') }), describeCosts),
  },
  turns: {
    operands: '[CHECKOUT]',
    accepts: ({ length }) => length <= 1,
    options: { pairs: 11, tasks: 12_000, keys: 1_000, waiting: 100_000 },
    deletesData: true,
    async *run({ redisUrl, operands: [checkout], number }) {
      const [keys, limits] = [number('keys'), { redisUrl, pairs: number('pairs'), tasks: number('tasks') }]
      yield* described(benchTurns({ ...limits, keys }), describeTurns)
      yield* described(benchLaneMemory({ redisUrl, keys, tasks: number('waiting') }), describeLaneMemory)
      // Tasks without a concurrency key, in a queue without turns.
      if (checkout !== undefined) yield* described(benchAgainst({ ...limits, checkout }), describeCosts)
    },
  },
  'follow-ups': {
    options: { pairs: 11, tasks: 4_000 },
    run: ({ redisUrl, number }) =>
      described(benchFollowUps({ redisUrl, pairs: number('pairs'), tasks: number('tasks') }), describeFollowUps),
  },
  scrape: {
    options: { queues: 50, waiting: 200, scrapes: 20 },
    deletesData: true,
    run({ redisUrl, number }) {
      const limits = { queues: number('queues'), waiting: number('waiting'), scrapes: number('scrapes') }
      return described(benchScrape({ redisUrl, ...limits }), describeScrape)
    },
  },
  memory: { deletesData: true, run: ({ redisUrl }) => described(benchMemory(redisUrl), describeMemory) },
  events: {
    options: { readers: 1_000, 'queue-readers': 10, rate: 1_000, seconds: 20 },
    deletesData: true,
    run({ redisUrl, number }) {
      const readers = { readers: number('readers'), queueReaders: number('queue-readers') }
      const load = { rate: number('rate'), seconds: number('seconds') }
      return described(benchEvents({ redisUrl, ...readers, ...load }), describeEvents)
    },
  },
  idle: {
    operands: '[CHECKOUT]',
    accepts: ({ length }) => length <= 1,
    options: { workers: 20, queues: 10, seconds: 60, blocked: 100_000 },
    deletesData: true,
    run({ redisUrl, operands: [checkout], number }) {
      const limits = { workers: number('workers'), queues: number('queues'), seconds: number('seconds') }
      return described(benchIdle({ redisUrl, checkout, blocked: number('blocked'), ...limits }), describeIdle)
    },
  },
}

async function* described<T extends object>(
  results: AsyncIterable<T>,
  describe: (result: T) => string,
): AsyncGenerator<Described> {
  for await (const result of results) yield { result, text: describe(result) }
}

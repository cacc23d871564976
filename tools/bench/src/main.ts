// `bench NAME [--json]` runs one benchmark, or all of those that print a table, with the Redis that REDIS_URL names.
import { parseArgs } from 'node:util'
import { benchAgainst, describeCosts } from './against.ts'
import { benchEnqueue, describeEnqueue, ENQUEUE_CASES, type EnqueueCase } from './enqueue/enqueue-bench.ts'
import { benchEvents, describeEvents } from './events/events-bench.ts'
import { benchFollowUps, describeFollowUps } from './follow-ups/follow-ups-bench.ts'
import { benchIdle, describeIdle } from './idle.ts'
import { benchMemory, describeMemory } from './memory.ts'
import { benchPipeline } from './pipeline.ts'
import { benchPipelineFleet, describePipelineFleet } from './pipeline-fleet/pipeline-fleet-bench.ts'
import { asTable, type Result } from './report.ts'
import { benchRunner } from './runner.ts'
import { benchRuns, describeRuns } from './runs/runs-bench.ts'
import { benchWorker } from './worker.ts'

const TABLES: Readonly<Record<string, (redisUrl: string) => AsyncGenerator<Result>>> = {
  worker: benchWorker,
  runner: benchRunner,
  pipeline: benchPipeline,
}
const USAGE = `usage: REDIS_URL=redis://… bench [all|${Object.keys(TABLES).join('|')}] [--json]
       REDIS_URL=redis://… bench enqueue [${ENQUEUE_CASES.join('|')}]… [--pairs 5] [--seconds 10] [--json]
       REDIS_URL=redis://… bench against CHECKOUT [--pairs 11] [--tasks 12000] [--json]
       REDIS_URL=redis://… bench follow-ups [--pairs 11] [--tasks 4000] [--json]
       REDIS_URL=redis://… bench pipeline-fleet [--rounds 5] [--json]
       REDIS_URL=redis://… bench runs [--pairs 3] [--items 100000] [--json]
       REDIS_URL=redis://… bench memory [--json]
       REDIS_URL=redis://… bench events [--readers 1000] [--queue-readers 10] [--rate 1000] [--seconds 20] [--json]
       REDIS_URL=redis://… bench idle [CHECKOUT] [--workers 20] [--queues 10] [--seconds 60] [--json]`

const NUMBERS = [
  'pairs',
  'rounds',
  'tasks',
  'workers',
  'queues',
  'seconds',
  'readers',
  'queue-readers',
  'rate',
  'items',
] as const

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: 'boolean', default: false },
    pairs: { type: 'string' },
    rounds: { type: 'string' },
    tasks: { type: 'string' },
    workers: { type: 'string' },
    queues: { type: 'string' },
    seconds: { type: 'string' },
    readers: { type: 'string' },
    'queue-readers': { type: 'string' },
    rate: { type: 'string' },
    items: { type: 'string' },
  },
})
const [name = 'all', ...others] = positionals
const [checkout, ...more] = others
const redisUrl = process.env['REDIS_URL']
const isCase = (text: string): text is EnqueueCase => ENQUEUE_CASES.some((each) => each === text)

if (redisUrl === undefined || !NUMBERS.every((option) => numberOr(option, 1) > 0)) {
  fail()
} else if (name === 'enqueue') {
  const cases = others.filter(isCase)
  if (cases.length < others.length) fail()
  else {
    const limits = { pairs: numberOr('pairs', 5), seconds: numberOr('seconds', 10) }
    const chosen = cases.length === 0 ? ENQUEUE_CASES : cases
    await print(benchEnqueue({ redisUrl, cases: chosen, ...limits }), describeEnqueue)
  }
} else if (name === 'against') {
  if (checkout === undefined || more.length > 0) fail()
  else {
    const limits = { pairs: numberOr('pairs', 11), tasks: numberOr('tasks', 12_000) }
    await print(benchAgainst({ redisUrl, checkout, ...limits }), describeCosts)
  }
} else if (name === 'follow-ups') {
  if (others.length > 0) fail()
  else {
    const limits = { pairs: numberOr('pairs', 11), tasks: numberOr('tasks', 4_000) }
    await print(benchFollowUps({ redisUrl, ...limits }), describeFollowUps)
  }
} else if (name === 'pipeline-fleet') {
  if (others.length > 0) fail()
  else await print(benchPipelineFleet({ redisUrl, rounds: numberOr('rounds', 5) }), describePipelineFleet)
} else if (name === 'idle') {
  if (more.length > 0) fail()
  else {
    const limits = {
      workers: numberOr('workers', 20),
      queues: numberOr('queues', 10),
      seconds: numberOr('seconds', 60),
    }
    await print(benchIdle({ redisUrl, checkout, ...limits }), describeIdle)
  }
} else if (name === 'events') {
  if (others.length > 0) fail()
  else {
    const load = {
      readers: numberOr('readers', 1_000),
      queueReaders: numberOr('queue-readers', 10),
      rate: numberOr('rate', 1_000),
      seconds: numberOr('seconds', 20),
    }
    await print(benchEvents({ redisUrl, ...load }), describeEvents)
  }
} else if (name === 'runs') {
  if (others.length > 0) fail()
  else {
    const limits = { pairs: numberOr('pairs', 3), items: numberOr('items', 100_000) }
    await print(benchRuns({ redisUrl, ...limits }), describeRuns)
  }
} else if (name === 'memory') {
  if (others.length > 0) fail()
  else await print(benchMemory(redisUrl), describeMemory)
} else {
  const chosen = name === 'all' ? Object.values(TABLES) : [TABLES[name]].filter((each) => each !== undefined)
  if (others.length > 0 || chosen.length === 0) fail()
  else for (const bench of chosen) await print(bench(redisUrl), asTable)
}

function numberOr(option: (typeof NUMBERS)[number], otherwise: number): number {
  return values[option] === undefined ? otherwise : Number(values[option])
}

async function print<T>(results: AsyncIterable<T>, describe: (result: T) => string): Promise<void> {
  for await (const result of results) console.log(values.json ? JSON.stringify(result) : describe(result))
}

function fail(): void {
  console.error(USAGE)
  process.exitCode = 2
}

// Measures one checkout: node against-side.ts CHECKOUT REDIS_URL short|long TASKS. Prints a JSON object with the CPU time per
// task in µs, used by this process and by Redis, for enqueueing tasks and for running them to completion.
import { randomBytes, randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import type * as Bullmq from '@bullpen/bullmq'
import type * as Contract from '@bullpen/contract'
import type * as ContractInternal from '@bullpen/contract/internal'
import type * as EngineInternal from '@bullpen/engine/internal'
import type * as Worker from '@bullpen/worker'
import type * as Ioredis from 'ioredis'
import type * as Zod from 'zod'
import type { SideCosts } from './against.ts'
import { startCpuTime } from './cpu-time.ts'

/**
 * Every package is loaded from the given checkout but has the types of this one, so both checkouts must use the same names for
 * everything that this file uses.
 */
const [checkout = '', redisUrl = '', kind = 'short', tasksText = '1'] = process.argv.slice(2)
const tasks = Number(tasksText)
const IN_FLIGHT = 64
const SLOTS = 50

async function load<M>(...files: readonly string[]): Promise<M> {
  const found = files.map((file) => join(checkout, file)).filter((file) => existsSync(file))
  if (found.length === 0) throw new Error(`${checkout} has none of ${files.join(', ')}`)
  const modules = await Promise.all(found.map((file) => import(pathToFileURL(file).href)))
  return Object.assign({}, ...modules) as M
}

const contract = await load<typeof Contract & typeof ContractInternal & OldNames>(
  'packages/contract/src/index.ts',
  'packages/contract/src/internal.ts',
)
/** The names that version 0.1.0 uses. */
interface OldNames {
  readonly makeTaskId?: typeof ContractInternal.createTaskId
}
const engine = await load<typeof EngineInternal>('packages/engine/src/index.ts', 'packages/engine/src/internal.ts')
const bullmq = await load<typeof Bullmq>('packages/bullmq/src/index.ts')
const { createWorker } = await load<typeof Worker>('packages/worker/src/index.ts', 'apps/worker/src/index.ts')
const { z } = createRequire(join(checkout, 'packages/contract/package.json'))('zod') as typeof Zod
const { Redis } = createRequire(join(checkout, 'packages/bullmq/package.json'))('ioredis') as typeof Ioredis

const common = {
  name: 'bench.noop',
  queue: 'bench',
  input: z.object({ n: z.int() }),
  output: z.object({ n: z.int() }),
} as const
const noop =
  kind === 'short' ? contract.defineTask({ ...common, kind }) : contract.defineTask({ ...common, timeout: '1m' })
const catalogue = contract.defineCatalogue(noop)
let left = 0
let done = Promise.withResolvers<void>()
const end = (n: number): { n: number } => {
  left--
  if (left === 0) done.resolve()
  return { n }
}
const handle =
  kind === 'short'
    ? ({ input }: { input: { n: number } }) => end(input.n)
    : async ({ input }: { input: { n: number } }) => end(input.n)
const handlers = { 'bench.noop': contract.defineHandler(noop, import.meta.url, handle) }
const log = { debug() {}, info() {}, warn() {}, error: console.error }
const namespace = `against-${randomUUID().slice(0, 8)}`
const options = { redisUrl, namespace, queues: catalogue.queues, sizeLimit: 65_536, maxBytes: 65_536, log }
const broker = bullmq.openBroker(options)
const redis = new Redis(redisUrl)
const createTaskId = contract.createTaskId ?? contract.makeTaskId

function newTask(n: number): Parameters<typeof broker.enqueue>[0] {
  const now = Date.now()
  const id = createTaskId('bench', now, randomBytes(10))
  return engine.newTask(noop, { n }, {}, { id, enqueuedAt: now, caller: 'only', correlationId: undefined })
}

async function enqueueAll(): Promise<void> {
  let next = 0
  const one = async (): Promise<void> => {
    while (next < tasks) await broker.enqueue(newTask(next++))
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, one))
}

async function measure(): Promise<SideCosts> {
  const enqueueing = await startCpuTime(redis)
  await enqueueAll()
  const enqueue = await enqueueing()
  left = tasks
  done = Promise.withResolvers()
  const config = { redisUrl, namespace, logLevel: 'warn', pools: { bench: SLOTS }, port: 0 } as const
  const worker = createWorker({ catalogue, handlers, config })
  await worker.start()
  const running = await startCpuTime(redis)
  await done.promise
  const run = await running()
  await worker.drain()
  return {
    'process, enqueue': enqueue.process / tasks,
    'process, run': run.process / tasks,
    'redis, enqueue': enqueue.redis / tasks,
    'redis, run': run.redis / tasks,
  }
}

for (let isOpen = false; !isOpen; ) {
  isOpen = await broker.ping().then(
    () => true,
    () => sleep(20, false),
  )
}
await measure() // Warms up, in the same process and with the same number of tasks.
console.log(JSON.stringify(await measure()))
await Promise.all(broker.boardQueues.map((queue) => queue.obliterate({ force: true })))
process.exit(0)

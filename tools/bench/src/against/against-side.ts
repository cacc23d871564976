// Measures one checkout: node against-side.ts CHECKOUT REDIS_URL short|long TASKS. Prints a JSON object with the CPU time per
// task in µs, used by this process and by Redis, for enqueueing tasks and for running them to completion.
import { randomBytes, randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type * as Bullmq from '@bullpen/bullmq'
import type * as Contract from '@bullpen/contract'
import type * as ContractInternal from '@bullpen/contract/internal'
import type * as EngineInternal from '@bullpen/engine/internal'
import type * as Worker from '@bullpen/worker'
import type * as Ioredis from 'ioredis'
import type * as Zod from 'zod'
import { createCountdown, printTaskCosts } from '../measuring/task-costs.ts'

/**
 * Every package is loaded from the given checkout but has the types of this one, so both checkouts must use the same names for
 * everything that this file uses.
 */
const [checkout = '', redisUrl = '', kind = 'short', tasksText = '1'] = process.argv.slice(2)
const tasks = Number(tasksText)

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
const long = contract.defineTask({ ...common, timeout: '1m' })
/** Without events, which older checkouts do not have, so that both do the same work. */
const longWithoutEvents = long.events ? contract.defineTask({ ...common, timeout: '1m', events: false }) : long
const noop = kind === 'short' ? contract.defineTask({ ...common, kind }) : longWithoutEvents
const catalogue = contract.defineCatalogue(noop)
const countdown = createCountdown()
const end = (n: number): { n: number } => {
  countdown.end()
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
const createTaskId = contract.createTaskId ?? contract.makeTaskId

function newTask(n: number): Parameters<typeof broker.enqueue>[0] {
  const now = Date.now()
  const id = createTaskId('bench', now, randomBytes(10))
  return engine.newTask(noop, { n }, {}, { id, enqueuedAt: now, caller: 'only', correlationId: undefined })
}

await printTaskCosts({
  redis: new Redis(redisUrl),
  broker,
  tasks,
  countdown,
  enqueue: (n) => broker.enqueue(newTask(n)),
  createWorker: (slots) =>
    createWorker({
      catalogue,
      handlers,
      config: { redisUrl, namespace, logLevel: 'warn', pools: { bench: slots }, port: 0 },
    }),
})

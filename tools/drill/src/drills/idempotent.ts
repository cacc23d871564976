// Drill `idempotent`: many callers send the same request with one idempotency key to several API processes, while some of these
// are killed and others lose Redis's replies.
import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type BullmqBroker, openBroker } from '@bullpen/bullmq'
import type { Accepted, Log, TaskId } from '@bullpen/contract'
import { catalogue, mathFactorial } from '@bullpen/tasks'
import type { Drill } from '../drill.ts'
import { openRedis } from '../drill-setup.ts'
import { type ApiProcess, startApis } from '../idempotent/api-processes.ts'
import { type Calls, startCallers } from '../idempotent/callers.ts'
import { idempotentFigures, type KeyResult } from '../idempotent/idempotent-figures.ts'
import type { Figures } from '../ledger/figures.ts'
import { type Random, randomFrom } from '../ledger/random.ts'
import { followQueue } from '../programs/queue-events.ts'
import { openPrograms } from '../programs/shipped-programs.ts'

/** Every key is used by all callers, first while the task is scheduled or running, and again after it has completed. */
const PLANS = {
  small: { keys: 1, callers: 100 },
  full: { keys: 5, callers: 500 },
} as const
type Plan = (typeof PLANS)[keyof typeof PLANS]

const PROCESSES = 4
/** Longer than the API waits for Redis, so that the API responds with 503 before the connection is reset. */
const HOLD_MS = 1_200
/** The longest time from the first task to a fault that does not wait for the API. */
const FAULT_WITHIN_MS = 300
const STATE_WITHIN_MS = 30_000
/** How long a fault waits for a request that it can hit. */
const PENDING_WITHIN_MS = 2_000
const POLL_MS = 10

const silent: Log = { debug() {}, info() {}, warn() {}, error: console.error }

export const idempotent: Drill = {
  name: 'idempotent',
  target: () => ({
    text: 'one task per key, and the same response for every caller, during the faults and after the task has completed; every fault hits requests',
    atMost: { differentResponses: 0, firstResponsesRepeated: 0, unanswered: 0, faultsWithoutEffect: 0 },
  }),
  known: undefined,
  comparable: false, // plain BullMQ has no API
  run: (scale, seed) => callWithKeys(PLANS[scale], randomFrom(seed)),
}

interface Setting {
  readonly apis: readonly ApiProcess[]
  readonly broker: BullmqBroker
  readonly apiKey: string
  readonly callers: number
  readonly random: Random
}

async function callWithKeys({ keys, callers }: Plan, random: Random): Promise<Figures> {
  const dir = mkdtempSync(join(tmpdir(), 'bullpen-drill-idempotent-'))
  const log = join(dir, 'programs.log')
  const redis = await openRedis()
  const apiKey = randomBytes(16).toString('hex')
  const programs = openPrograms({
    log,
    env: {
      REDIS_URL: redis.url,
      BULLPEN_API_KEYS: apiKey,
      BULLPEN_API_PORT: '0',
      BULLPEN_API_METRICS_PORT: '0',
      BULLPEN_WORKER_PORT: '0',
      BULLPEN_WORKER_POOLS: `${mathFactorial.queue}=5`,
    },
  })
  const { queue } = mathFactorial
  const events = followQueue(redis.url, `{bullpen.${queue}}:${queue}:events`)
  // This broker is connected to Redis directly, so that the drill sees what is stored while the APIs get no replies.
  const broker = openBroker({
    redisUrl: redis.url,
    namespace: 'bullpen',
    queues: catalogue.queues,
    sizeLimit: 10_000,
    log: silent,
    leads: false,
  })
  try {
    const [apis] = await Promise.all([startApis(programs, redis.url, PROCESSES), programs.start('worker')])
    try {
      const setting = { apis: apis.all, broker, apiKey, callers, random }
      const results: KeyResult[] = []
      for (let n = 0; n < keys; n++) results.push(await callWithKey(setting, n))
      await events.close()
      return idempotentFigures(results, await stored(broker), events.completions)
    } finally {
      await apis.close()
    }
  } catch (error) {
    console.error(readFileSync(log, 'utf8').slice(-20_000))
    throw error
  } finally {
    await programs.close()
    await events.close()
    await broker.close()
    await redis.end()
    rmSync(dir, { recursive: true, force: true })
  }
}

/** Makes the calls with the n-th key, and injects the faults. */
async function callWithKey(setting: Setting, n: number): Promise<KeyResult> {
  const { apis, broker, apiKey, callers, random } = setting
  const request = {
    method: 'POST',
    headers: {
      authorization: `Bearer ${apiKey}`,
      'content-type': 'application/json',
      'idempotency-key': `"${randomUUID()}"`,
    },
    // The delay is long enough that the faults begin before the task runs.
    body: JSON.stringify({ task: mathFactorial.name, input: { n: 20 }, delay: '1s' }),
  }
  const call = () => startCallers({ apis, callers, request })
  let faultsWithoutEffect = 0
  const untilHit = async (calls: Calls, api: ApiProcess): Promise<void> => {
    const isHit = await holdsWithin(PENDING_WITHIN_MS, async () => calls.pendingAt(api) > 0)
    if (!isHit) faultsWithoutEffect++
  }

  // No API gets a reply from Redis until the task is stored, so that the first response is always lost.
  for (const { proxy } of apis) proxy.cutAnswers()
  const first = call()
  const isStored = await holdsWithin(STATE_WITHIN_MS, async () => (await stored(broker)) > n)
  if (!isStored) throw new Error(`no task was stored within ${STATE_WITHIN_MS} ms`)
  const [killed, killedToo, reset, held] = shuffled(apis, random)
  await Promise.all([
    ...[killed, killedToo].map(async (api) => {
      await sleep(random() * FAULT_WITHIN_MS)
      await untilHit(first, api)
      await api.replace()
    }),
    (async () => {
      await sleep(random() * FAULT_WITHIN_MS)
      await untilHit(first, reset)
      reset.proxy.reset()
    })(),
    (async () => {
      await untilHit(first, held)
      await sleep(HOLD_MS)
      held.proxy.reset()
    })(),
  ])
  const during = await first.accepted
  const id = during[0] === undefined ? undefined : (JSON.parse(during[0].body) as Accepted).id
  const limit = AbortSignal.timeout(STATE_WITHIN_MS)
  const task = id === undefined ? undefined : await broker.waitUntilFinished(id as TaskId, limit)

  // Half of the APIs lose Redis's replies again.
  const cut = [killed, held]
  for (const { proxy } of cut) proxy.cutAnswers()
  const second = call()
  await Promise.all(
    cut.map(async (api) => {
      await untilHit(second, api)
      await sleep(HOLD_MS)
      api.proxy.reset()
    }),
  )
  const after = await second.accepted
  return {
    responses: [...during, ...after],
    unanswered: 2 * callers - during.length - after.length,
    unknown: first.unknown() + second.unknown(),
    faultsWithoutEffect,
    task,
  }
}

/** Returns how many tasks are stored, whatever their status. */
async function stored(broker: BullmqBroker): Promise<number> {
  return Object.values(await broker.counts(mathFactorial.queue)).reduce((sum, count) => sum + count, 0)
}

/** Returns whether the condition became true in time. */
async function holdsWithin(withinMs: number, holds: () => Promise<boolean>): Promise<boolean> {
  const deadline = performance.now() + withinMs
  while (!(await holds())) {
    if (performance.now() > deadline) return false
    await sleep(POLL_MS)
  }
  return true
}

type FourApis = readonly [ApiProcess, ApiProcess, ApiProcess, ApiProcess]

function shuffled(apis: readonly ApiProcess[], random: Random): FourApis {
  const drawn = apis.map((api) => ({ api, at: random() })).toSorted((a, b) => a.at - b.at)
  // The drill always starts four API processes, which the type of a mapped array cannot express.
  return drawn.map(({ api }) => api) as unknown as FourApis
}

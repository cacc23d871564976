// Drill `idempotent`: many callers send the same request with one idempotency key to several API processes, while some of these
// are killed and others lose Redis's replies.
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { BullmqBroker } from '@bullpen/bullmq'
import type { Accepted, TaskId } from '@bullpen/contract'
import { mathFactorial } from '@bullpen/tasks'
import type { Drill } from '../../drill.ts'
import { type ApiProcess, startApis } from '../../environment/api-processes.ts'
import { withPrograms } from '../../environment/programs-setup.ts'
import type { Figures } from '../../figures/figures.ts'
import { holdsWithin } from '../../holds-within.ts'
import { type Calls, startCallers } from '../../idempotent/callers.ts'
import { idempotentFigures, type KeyResult } from '../../idempotent/idempotent-figures.ts'
import { type Random, randomFrom, shuffled } from '../../ledger/random.ts'

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
const PENDING_WITHIN_MS = 30_000

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

type FourApis = readonly [ApiProcess, ApiProcess, ApiProcess, ApiProcess]

interface Setting {
  readonly apis: readonly ApiProcess[]
  readonly broker: BullmqBroker
  readonly apiKey: string
  readonly callers: number
  readonly random: Random
}

function callWithKeys({ keys, callers }: Plan, random: Random): Promise<Figures> {
  const { queue } = mathFactorial
  const env = { BULLPEN_WORKER_POOLS: `${queue}=5` }
  return withPrograms({ drill: 'idempotent', queue, env }, async ({ redisUrl, apiKey, programs, broker, events }) => {
    const [apis] = await Promise.all([startApis(programs, redisUrl, PROCESSES), programs.start('worker')])
    try {
      const setting = { apis: apis.all, broker, apiKey, callers, random }
      const results: KeyResult[] = []
      for (let n = 0; n < keys; n++) results.push(await callWithKey(setting, n))
      await events.close()
      return idempotentFigures(results, await stored(broker), events.completions)
    } finally {
      await apis.close()
    }
  })
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
  await untilConnected(setting)
  const call = () => startCallers({ apis, callers, request })
  let faultsWithoutEffect = 0
  const untilHit = async (calls: Calls, api: ApiProcess): Promise<void> => {
    const isHit = await holdsWithin(PENDING_WITHIN_MS, () => calls.pendingAt(api) > 0)
    if (!isHit) faultsWithoutEffect++
  }

  // No API gets a reply from Redis until the task is stored, so that the first response is always lost.
  for (const { proxy } of apis) proxy.cutAnswers()
  const first = call()
  const isStored = await holdsWithin(STATE_WITHIN_MS, async () => (await stored(broker)) > n)
  if (!isStored) throw new Error(`no task was stored within ${STATE_WITHIN_MS} ms`)
  // The drill always starts four API processes, which the type of the list cannot express.
  const [killed, killedToo, reset, held] = shuffled(apis, random) as unknown as FourApis
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

/**
 * Resolves when every API process reaches Redis. A process that does not reach it rejects requests at once, so that no fault could hit
 * them.
 */
async function untilConnected({ apis, apiKey }: Setting): Promise<void> {
  const headers = { authorization: `Bearer ${apiKey}` }
  const reads = async (api: ApiProcess): Promise<boolean> => {
    const response = await fetch(`${api.url()}/v1/queues`, { headers }).catch(() => undefined)
    await response?.arrayBuffer()
    return response?.status === 200
  }
  const connected = await Promise.all(apis.map((api) => holdsWithin(STATE_WITHIN_MS, () => reads(api))))
  if (connected.includes(false)) throw new Error(`an API did not reach Redis within ${STATE_WITHIN_MS} ms`)
}

/** Returns how many tasks are stored, whatever their status. */
async function stored(broker: BullmqBroker): Promise<number> {
  return Object.values(await broker.counts(mathFactorial.queue)).reduce((sum, count) => sum + count, 0)
}

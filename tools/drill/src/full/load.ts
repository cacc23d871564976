// Stores large tasks as fast as they are accepted: through several producers, and over HTTP through an API.
import { setTimeout as sleep } from 'node:timers/promises'
import { openBroker } from '@bullpen/bullmq'
import { type Accepted, BullpenError, type Log, type Problem } from '@bullpen/contract'
import type { Broker } from '@bullpen/engine'
import type { DrillApi } from '../environment/drill-api.ts'
import { enqueueOne } from '../ledger/load.ts'
import { catalogue, work } from '../programs/catalogue.ts'

/** Tasks take long enough that some are left when there is room again. */
const INPUT = { ms: 100, listens: false, padding: 'x'.repeat(10_000) }
const SIZE_LIMIT = 20_000
/** How long a caller waits after it was refused, in ms. */
const RETRY_MS = 100
const RESPONSE_MS = 5_000

const silent: Log = { debug() {}, info() {}, warn() {}, error: console.error }

export interface LoadOptions {
  readonly redisUrl: string
  readonly namespace: string
  readonly queueMemoryShare: number
  readonly api: Pick<DrillApi, 'url' | 'key'>
  readonly producers: number
  /** How many tasks each producer, and the API, are asked to store at once. */
  readonly callers: number
}

export interface LoadInProgress {
  /** The number of tasks that were refused so far because Redis was full. The API's responses had the status 503. */
  refused(): { readonly byProducers: number; readonly overHttp: number }
  /** Stops the load and returns the ids of the tasks that were accepted. Idempotent. */
  stop(): Promise<readonly string[]>
}

/** Tries to store a task. Returns its id, 'full' if it was refused because Redis is full, or undefined if its outcome is unknown. */
type Store = () => Promise<string | undefined>

export function startLoad({ api, producers, callers, ...options }: LoadOptions): LoadInProgress {
  const common = { ...options, queues: catalogue.queues, sizeLimit: SIZE_LIMIT, log: silent, leads: false }
  const brokers = Array.from({ length: producers }, () => openBroker(common))
  const accepted: string[] = []
  const refused = { byProducers: 0, overHttp: 0 }
  let isOver = false

  const call = async (store: Store, by: keyof typeof refused): Promise<void> => {
    while (!isOver) {
      const outcome = await store()
      if (outcome === 'full') refused[by]++
      else if (outcome !== undefined) accepted.push(outcome)
      // A caller that does not know the outcome continues with another task.
      if (outcome === 'full' || outcome === undefined) await sleep(RETRY_MS)
    }
  }
  const start = (store: Store, by: keyof typeof refused) => Array.from({ length: callers }, () => call(store, by))
  const calls = brokers.flatMap((broker) => start(() => storeDirectly(broker), 'byProducers'))
  const done = Promise.all([...calls, ...start(() => storeOverHttp(api), 'overHttp')])
  // A failure is reported when the load is stopped.
  done.catch(() => {})
  let stopped: Promise<readonly string[]> | undefined
  const stop = async (): Promise<readonly string[]> => {
    isOver = true
    await done.finally(() => Promise.all(brokers.map((broker) => broker.close())))
    return accepted
  }
  return { refused: () => refused, stop: () => (stopped ??= stop()) }
}

async function storeDirectly(broker: Broker): Promise<string | undefined> {
  try {
    return await enqueueOne(broker, work, INPUT)
  } catch (error) {
    const code = error instanceof BullpenError ? error.code : undefined
    if (code === 'redis_full') return 'full'
    // A connection rejects commands until it is open, and when Redis takes too long on a busy machine.
    if (code === 'redis_unavailable') return undefined
    throw error
  }
}

async function storeOverHttp({ url, key }: Pick<DrillApi, 'url' | 'key'>): Promise<string | undefined> {
  const request = {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ task: work.name, input: INPUT }),
    signal: AbortSignal.timeout(RESPONSE_MS),
  }
  const response = await fetch(`${url}/v1/tasks`, request).catch((error: unknown) => {
    // On a busy machine, the API may not respond in time.
    if (error instanceof DOMException) return undefined
    throw error
  })
  if (response === undefined || response.status === 408) return undefined
  const body = (await response.json()) as Accepted | Problem
  if ('id' in body) return body.id
  const { code } = body as Problem
  if (response.status === 503 && code === 'redis_full') return 'full'
  if (response.status === 503 && code === 'redis_unavailable') return undefined
  throw new Error(`the API responded with ${response.status}: ${JSON.stringify(body)}`)
}

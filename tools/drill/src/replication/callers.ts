// Enqueues tasks over HTTP at a steady rate, and keeps how each call ended. A call that fails is not repeated.
import { setTimeout as sleep } from 'node:timers/promises'
import type { DrillApi } from '../environment/drill-api.ts'
import { work } from '../programs/catalogue.ts'

export interface Call {
  /** Unix time in ms at which the call began. */
  readonly begunAt: number
  /** Unix time in ms at which the call ended. */
  readonly endedAt: number
  /** The API that it called. */
  readonly api: DrillApi
  /** The id of the task, if the API has acknowledged one. */
  readonly id: string | undefined
}

export interface Callers {
  /** The calls that have ended so far. */
  readonly calls: readonly Call[]
  /** How many calls have begun so far. */
  begun(): number
  /** Makes no further calls. Resolves with all when they have ended. */
  stop(): Promise<readonly Call[]>
}

const TICK_MS = 10
/** Longer than an API takes to respond, whatever Redis does. */
const CALL_MS = 30_000

/** The callers take turns at the APIs. Each task takes `taskMs`. */
export function startCallers(apis: readonly DrillApi[], ratePerSecond: number, taskMs: number): Callers {
  const calls: Call[] = []
  const sent: Promise<void>[] = []
  let isStopped = false

  const call = async (api: DrillApi): Promise<void> => {
    const begunAt = Date.now()
    const id = await enqueue(api, taskMs).catch(() => undefined)
    calls.push({ begunAt, endedAt: Date.now(), api, id })
  }
  const calling = (async () => {
    const startedAt = performance.now()
    while (!isStopped) {
      const due = Math.ceil(((performance.now() - startedAt) / 1_000) * ratePerSecond)
      while (sent.length < due) sent.push(call(apis[sent.length % apis.length] as DrillApi))
      await sleep(TICK_MS)
    }
  })()

  return {
    calls,
    begun: () => sent.length,
    async stop() {
      isStopped = true
      await calling
      await Promise.all(sent)
      return calls
    },
  }
}

/** Returns the id of the accepted task. */
async function enqueue({ url, key }: DrillApi, ms: number): Promise<string | undefined> {
  const response = await fetch(new URL('/v1/tasks', url), {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ task: work.name, input: { ms, listens: false } }),
    signal: AbortSignal.timeout(CALL_MS),
  })
  const { id } = (await response.json()) as { readonly id?: string }
  return response.status === 202 ? id : undefined
}

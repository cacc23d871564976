// Calls API processes over HTTP to store tasks, and records what the caller of each task learned.
import type { Accepted, Problem, ProducerOptions } from '@bullpen/contract'
import { mathFactorial } from '@bullpen/tasks'
import type { ApiProcess } from '../environment/api-processes.ts'

export type Outcome =
  | { readonly kind: 'accepted'; readonly id: string }
  /** The API has rejected or dropped the task. */
  | { readonly kind: 'refused' }
  /** The API has responded that it does not know whether the task is stored. `id` is the id that the response names. */
  | { readonly kind: 'unknown'; readonly id: string | undefined }
  | { readonly kind: 'no_response' }

export interface Call {
  /** Distinguishes this call from all others. It is stored with the task. */
  readonly name: string
  readonly api: ApiProcess
  readonly outcome: Outcome
  /** When the caller learned the outcome, in ms on the monotonic clock. */
  readonly endedAt: number
}

export interface Caller {
  call(api: ApiProcess, options: ProducerOptions): Promise<Call>
  /** The calls that have ended. */
  readonly calls: readonly Call[]
  /** Returns how many calls of this process have not ended. */
  pendingAt(api: ApiProcess): number
}

/** Longer than any call waits for room, and for Redis. */
const RESPONSE_MS = 40_000

export function createCaller(apiKey: string): Caller {
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' }
  const calls: Call[] = []
  const pending = new Map<ApiProcess, number>()
  let names = 0

  const count = (api: ApiProcess, by: 1 | -1): void => void pending.set(api, (pending.get(api) ?? 0) + by)

  async function post(api: ApiProcess, body: string): Promise<Outcome> {
    try {
      const signal = AbortSignal.timeout(RESPONSE_MS)
      const response = await fetch(`${api.url()}/v1/tasks`, { method: 'POST', headers, body, signal })
      return outcomeOf(response.status, await response.text())
    } catch (error) {
      // Only a failed request has such an error. Its task may be stored.
      if (error instanceof TypeError || error instanceof DOMException) return { kind: 'no_response' }
      throw error
    }
  }

  return {
    calls,
    async call(api, options) {
      const name = `${++names}`
      count(api, 1)
      const task = { task: mathFactorial.name, input: { n: 20 }, meta: { call: name }, ...options }
      const outcome = await post(api, JSON.stringify(task))
      count(api, -1)
      const call = { name, api, outcome, endedAt: performance.now() }
      calls.push(call)
      return call
    },
    pendingAt: (api) => pending.get(api) ?? 0,
  }
}

/** @throws Error if no fault explains the response. */
function outcomeOf(status: number, text: string): Outcome {
  const body = JSON.parse(text) as Accepted | Problem
  switch (status) {
    case 202:
      return { kind: 'accepted', id: (body as Accepted).id }
    case 200:
    case 429:
    // On a busy machine, a request may take too long to arrive.
    case 408:
      return { kind: 'refused' }
    case 503:
      if ((body as Problem).code === 'redis_unavailable') return { kind: 'unknown', id: (body as Problem).taskId }
  }
  throw new Error(`the API responded with ${status}: ${text}`)
}

// Makes the calls of many callers that share one idempotency key. Each caller repeats its request until an API accepts it.
import { setTimeout as sleep } from 'node:timers/promises'
import type { ApiProcess } from '../environment/api-processes.ts'

export interface CallerOptions {
  readonly apis: readonly ApiProcess[]
  readonly callers: number
  readonly request: RequestInit
}

export interface AcceptedResponse {
  readonly body: string
  /** Whether the API marked the response as the repetition of an earlier one. */
  readonly isReplayed: boolean
}

export interface Calls {
  /** Resolves when every caller has an accepted response, or has given up after a minute. */
  readonly accepted: Promise<readonly AcceptedResponse[]>
  /** Returns how many requests are waiting for a response of this process. */
  pendingAt(api: ApiProcess): number
  /** Returns how many requests ended without a response, or with one that leaves open whether the task was stored. */
  unknown(): number
}

const GIVE_UP_MS = 60_000
const RESPONSE_MS = 5_000
const PAUSE_MS = 50

/** Starts all callers at once. Each caller begins with a different process, and moves on to the next process after a failure. */
export function startCallers({ apis, callers, request }: CallerOptions): Calls {
  const pending = new Map<ApiProcess, number>()
  const giveUpAt = performance.now() + GIVE_UP_MS
  let unknown = 0

  const count = (api: ApiProcess, by: 1 | -1): void => void pending.set(api, (pending.get(api) ?? 0) + by)

  async function callOnce(api: ApiProcess, url: string): Promise<AcceptedResponse | undefined> {
    count(api, 1)
    const response = await post(url, request).catch(() => undefined)
    count(api, -1)
    // On a busy machine, a request may take too long to arrive (408).
    if (response === undefined || response.status === 503 || response.status === 408) {
      unknown++
      return undefined
    }
    const { status, body, isReplayed } = response
    // No fault explains any other response.
    if (status !== 202) throw new Error(`the API responded with ${status}: ${body}`)
    return { body, isReplayed }
  }

  async function call(caller: number): Promise<AcceptedResponse | undefined> {
    for (let n = caller; performance.now() < giveUpAt; n++) {
      const api = apis[n % apis.length]
      const url = api?.url()
      const accepted = api === undefined || url === undefined ? undefined : await callOnce(api, url)
      if (accepted !== undefined) return accepted
      await sleep(PAUSE_MS)
    }
    return undefined
  }

  const accepted = Promise.all(Array.from({ length: callers }, (_, caller) => call(caller)))
  return {
    accepted: accepted.then((responses) => responses.filter((response) => response !== undefined)),
    pendingAt: (api) => pending.get(api) ?? 0,
    unknown: () => unknown,
  }
}

async function post(url: string, request: RequestInit) {
  const response = await fetch(`${url}/v1/tasks`, { ...request, signal: AbortSignal.timeout(RESPONSE_MS) })
  const isReplayed = response.headers.get('idempotency-replayed') === 'true'
  return { status: response.status, body: await response.text(), isReplayed }
}

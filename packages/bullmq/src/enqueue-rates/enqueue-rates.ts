// Limits how fast each API key may enqueue tasks, across all API processes.
//
// A request usually spends a token that the process holds (./rate-lease.ts), without a round trip. If the process needs more
// tokens, its requests wait for one script, which they share, and are then served in the order in which they arrived.
import type { EnqueueRate } from '@bullpen/contract'
import { type DefinedEnqueueRate, type EnqueueRates, msUntilTokens, rateExceeded } from '@bullpen/engine/internal'
import { enqueueRateKey, fleetKeys } from '../keys.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import { leaseTokensScript } from '../store/scripts.ts'
import { readEnqueueRates } from './commanded-rates.ts'
import {
  afterReply,
  afterSpending,
  batchOf,
  decideOnRate,
  type LeaseReply,
  NO_LEASE,
  type RateLease,
  type WantedTokens,
  wantedTokens,
} from './rate-lease.ts'

/** The maximum age of the rates that commands have set, while tasks are enqueued, in ms. */
const READ_EVERY_MS = 2_000

export interface EnqueueRatesOptions {
  readonly redis: Commander
  readonly namespace: string
  /** The limit of each API key, unless a command has set another one. */
  readonly defined: DefinedEnqueueRate
  /** Runs a command once the namespace is known to be compatible, and limits how long the caller waits for the reply. */
  readonly call: <T>(run: () => Promise<T>) => Promise<T>
  /**
   * Whether the rates that commands have set are read whenever the connection is established, so that the first request does not
   * have to wait for them. If such a read fails, the next request repeats it. Defaults to false.
   */
  readonly readsOnConnect?: boolean
}

/** A request that waits for tokens. */
interface Waiting {
  readonly tasks: number
  resolve(): void
  reject(error: unknown): void
}

/** What this process knows about one API key. */
interface ApiKeyState {
  readonly name: string
  readonly rate: EnqueueRate
  lease: RateLease
  /** The waiting requests, which are served first in, first out. While there are any, a script is in progress. */
  waiting: Waiting[]
}

export function createEnqueueRates(options: EnqueueRatesOptions): EnqueueRates {
  const { redis, namespace, defined, call } = options
  const now = (): number => performance.now()
  const states = new Map<string, ApiKeyState>()
  let commanded: ReadonlyMap<string, EnqueueRate> | undefined
  let readAt = Number.NEGATIVE_INFINITY
  let reading: Promise<void> | undefined

  const read = (): Promise<void> => {
    reading ??= call(() => readEnqueueRates(redis, fleetKeys(namespace)))
      .then((rates) => {
        commanded = rates
      })
      .finally(() => {
        reading = undefined
        readAt = now()
      })
    return reading
  }
  if (options.readsOnConnect === true) redis.on('ready', () => void read().catch(() => {}))

  const lease = async ({ name, rate }: ApiKeyState, wanted: WantedTokens): Promise<LeaseReply> => {
    const args = { max: rate.max, per: rate.perMs, ...wanted }
    const bucket = enqueueRateKey(namespace, name)
    const [granted, left] = await call(() => runScript(redis, leaseTokensScript, { bucket }, args))
    return { granted, left: Number(left) }
  }

  function stateOf(name: string, rate: EnqueueRate): ApiKeyState {
    const known = states.get(name)
    if (known !== undefined && known.rate.max === rate.max && known.rate.perMs === rate.perMs) return known
    const state: ApiKeyState = { name, rate, lease: NO_LEASE, waiting: [] }
    states.set(name, state)
    return state
  }

  /** Serves a request from the tokens that the process holds. Returns false if the process has to ask Redis for tokens. */
  function serve(state: ApiKeyState, tasks: number): boolean {
    const { name, rate } = state
    const decision = decideOnRate(state.lease, tasks, now(), rate)
    if (decision.kind === 'refuse') {
      throw rateExceeded({ apiKeyName: name, rate, wanted: tasks, retryAfterMs: decision.retryAfterMs })
    }
    if (decision.kind === 'spend') state.lease = afterSpending(state.lease, tasks)
    return decision.kind === 'spend'
  }

  /** Serves the waiting requests for which the process does not have to ask Redis again. */
  function serveWaiting(state: ApiKeyState): void {
    state.waiting = state.waiting.filter((request) => {
      try {
        if (!serve(state, request.tasks)) return true
        request.resolve()
      } catch (error) {
        request.reject(error)
      }
      return false
    })
  }

  /** Asks Redis for tokens until no request waits. */
  async function ask(state: ApiKeyState): Promise<void> {
    try {
      while (state.waiting.length > 0) {
        const tasks = state.waiting.reduce((sum, request) => sum + request.tasks, 0)
        const wanted = wantedTokens(state.lease, tasks, now(), state.rate)
        const reply = await lease(state, wanted)
        state.lease = afterReply(state.lease, reply, wanted, now(), state.rate)
        serveWaiting(state)
      }
    } catch (error) {
      for (const request of state.waiting) request.reject(error)
      state.waiting = []
    }
  }

  /** Takes more tokens than a process may hold, for this request alone. */
  async function takeAlone(state: ApiKeyState, tasks: number): Promise<void> {
    const { name, rate } = state
    const { granted, left } = await lease(state, { needed: tasks, least: tasks, ahead: 0 })
    if (granted === tasks) return
    throw rateExceeded({ apiKeyName: name, rate, wanted: tasks, retryAfterMs: msUntilTokens(left, tasks, rate) })
  }

  function takeWithin(name: string, rate: EnqueueRate, tasks: number): Promise<void> | undefined {
    if (tasks > rate.max) throw rateExceeded({ apiKeyName: name, rate, wanted: tasks, retryAfterMs: 0 })
    const state = stateOf(name, rate)
    if (tasks > batchOf(rate)) return takeAlone(state, tasks)
    if (state.waiting.length === 0 && serve(state, tasks)) return undefined
    return new Promise((resolve, reject) => {
      state.waiting.push({ tasks, resolve, reject })
      if (state.waiting.length === 1) void ask(state)
    })
  }

  const rateOf = (apiKeyName: string): EnqueueRate | undefined => commanded?.get(apiKeyName) ?? defined(apiKeyName)

  function takeNow(apiKeyName: string, tasks: number): Promise<void> | undefined {
    const rate = rateOf(apiKeyName)
    return rate === undefined ? undefined : takeWithin(apiKeyName, rate, tasks)
  }

  function take(apiKeyName: string, tasks: number): Promise<void> | undefined {
    if (commanded === undefined) return read().then(() => takeNow(apiKeyName, tasks))
    if (now() - readAt <= READ_EVERY_MS) return takeNow(apiKeyName, tasks)
    // If this read fails, the rates that are already known apply.
    const reading = read().catch(() => {})
    // A request with a limit waits for the read, so that it is not refused because of a rate that has been raised.
    return rateOf(apiKeyName) === undefined ? undefined : reading.then(() => takeNow(apiKeyName, tasks))
  }

  return { take }
}

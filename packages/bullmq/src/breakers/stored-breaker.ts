// Stores the circuit breakers of a queue: the hash `breakers` has one field for each service, with the breaker, its
// settings and who has set it by hand. Workers store the settings of their definition when they start, so every process
// can read and set a breaker.
import type { BreakerSettings, BreakersOf } from '@bullpen/contract'
import { type CommandSpec, DEFAULT_BREAKER } from '@bullpen/contract/internal'
import {
  type Breaker,
  type BreakerStatus,
  type Bucket,
  breakerStatus,
  type StoredBreaker,
} from '@bullpen/engine/internal'
import type { ChainableCommander } from 'ioredis'
import type { QueueKeys } from '../keys.ts'
import type { ScriptRunner } from '../scripts/script.ts'
import { defineBreakersScript } from '../store/scripts.ts'

/** The beginning of the name of each setting of a queue that sets a breaker by hand. */
export const BREAKER_SETTING = 'breaker:'

/**
 * The stored JSON. The scripts read and write it, too. An empty Lua table has the JSON of an object, so there are no
 * lists.
 */
interface Stored {
  readonly breaker: Exclude<Breaker, { readonly state: 'closed' }> | StoredClosed
  readonly settings: StoredSettings
  readonly setBy?: BreakerStatus['setBy']
}

/** The settings that the scripts need. What a failed and a slow call are is decided in the worker. */
type StoredSettings = Omit<BreakerSettings, 'slowCallMs' | 'failureCodes'>

type StoredClosed = Omit<Extract<Breaker, { readonly state: 'closed' }>, 'buckets'> & {
  /** The numbers of calls, failures and slow calls, by the beginning of their bucket. */
  readonly buckets: Readonly<Record<string, readonly [calls: number, failures: number, slow: number]>>
}

export function encodeSettings(settings: BreakerSettings): string {
  const { failureRate, slowCallRate, minimumCalls, windowMs, openMs, maxOpenMs, probes } = settings
  const stored: StoredSettings = { failureRate, slowCallRate, minimumCalls, windowMs, openMs, maxOpenMs, probes }
  return JSON.stringify(stored)
}

export function decodeBreaker(text: string): StoredBreaker {
  const { breaker, settings, setBy }: Stored = JSON.parse(text)
  const decoded = { settings: { ...settings, slowCallMs: undefined, failureCodes: undefined }, setBy }
  if (breaker.state !== 'closed') return { ...decoded, breaker }
  const buckets = Object.entries(breaker.buckets).map(
    ([at, [calls, failures, slow]]): Bucket => ({ at: Number(at), calls, failures, slow }),
  )
  return { ...decoded, breaker: { ...breaker, buckets: buckets.sort((a, b) => a.at - b.at) } }
}

/**
 * Stores the settings of the breakers of a queue's definition. They replace those that another process has stored if
 * `replaces` is true, and the breakers that the definition does not have are deleted, so that the worker that started
 * last decides. Takes one round trip.
 */
export async function defineBreakers(
  run: ScriptRunner,
  { base, breakers }: Pick<QueueKeys, 'base' | 'breakers'>,
  defined: BreakersOf,
  { replaces }: { readonly replaces: boolean },
): Promise<void> {
  const settings = Object.entries(defined).flatMap(([service, each]) => [service, encodeSettings(each)])
  await run(defineBreakersScript, { stored: breakers }, { base, replaces: replaces ? '1' : '' }, settings)
}

/**
 * Returns the name and the value of the setting for a breaker's mode. The default settings apply until a worker has
 * stored those of the definition.
 */
export function breakerSettings({ service, to }: Extract<CommandSpec, { action: 'breaker' }>, by: string): string[] {
  const settings = encodeSettings(DEFAULT_BREAKER)
  return [`${BREAKER_SETTING}${service}`, JSON.stringify({ mode: to, by, settings })]
}

/** How many commands {@link addBreakerReads} adds. */
export const BREAKER_READS = 2

/** Adds the commands that read the breakers of a queue, and the time. */
export function addBreakerReads(pipeline: ChainableCommander, { breakers }: QueueKeys): void {
  pipeline.hgetall(breakers).time()
}

/** Decodes the replies to {@link addBreakerReads}. Returns undefined if the queue has no breakers. */
export function decodeBreakers([stored, time]: readonly unknown[]): readonly BreakerStatus[] | undefined {
  const services = Object.entries(stored as Readonly<Record<string, string>>)
  if (services.length === 0) return undefined
  const [seconds, micros] = time as readonly [string, string]
  const now = Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000)
  return services
    .map(([service, text]) => breakerStatus(service, decodeBreaker(text), now))
    .sort((one, other) => (one.service < other.service ? -1 : 1))
}

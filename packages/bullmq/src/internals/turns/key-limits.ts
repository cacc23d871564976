// Stores the limits of a queue's concurrency keys, and the capacities of its limiters.
//
// The limits of the catalogue and those that commands have set are stored in the queue's `settings`: the former as JSON
// in two fields (`definedKeyLimits` and `definedCapacities`), and the latter as one field for each limit, so that an
// older command never overwrites a newer one. The scripts that start tasks read neither. They read the hashes
// `key-limits` and `capacities`, which are derived whenever one of the two changes, and which do not exist if there are
// no limits. A command's limit replaces that of the catalogue. The limit of a key replaces the one that all keys have.
import type { ConcurrencyKeyLimits, PerConcurrencyKey, StartRate } from '@bullpen/contract'
import type { QueueSettings } from '@bullpen/engine/internal'
import type { ChainableCommander } from 'ioredis'
import type { QueueKeys } from '../../keys.ts'
import type { ScriptRunner } from '../../scripts/script.ts'
import { defineLimitsScript } from '../../store/scripts.ts'

/** The beginning of the name of each setting that limits concurrency keys. */
export const KEY_LIMIT_SETTING = 'keyLimit:'
/** The beginning of the name of each setting that sets the capacity of a limiter. */
export const CAPACITY_SETTING = 'capacity:'

/**
 * Returns the names and values of the settings for the limits of a key or, without `key`, of every key. 'none' removes
 * a limit.
 */
export function keyLimitSettings(
  limits: { readonly [Name in keyof ConcurrencyKeyLimits]: ConcurrencyKeyLimits[Name] | 'none' },
  key?: string,
): string[] {
  return fieldsOf(limits, key).flatMap(([field, value]) => [`${KEY_LIMIT_SETTING}${field}`, value])
}

/** Returns the name and the value of the setting for the capacity of a limiter. 'none' removes it. */
export function capacitySetting(limiter: string, capacity: number | 'none'): string[] {
  return [`${CAPACITY_SETTING}${limiter}`, encode(capacity, String)]
}

/** The limits of a queue in the catalogue. */
export interface DefinedLimits {
  /** Undefined if the queue does not limit its concurrency keys. */
  readonly keyLimits: PerConcurrencyKey | undefined
  /** By the name of the limiter (../../store/lua/includes/limits/limiters.lua). */
  readonly capacities: Readonly<Record<string, number>>
}

/**
 * Stores the limits of the catalogue. They replace those that another process has stored if `replaces` is true, so that
 * the worker that started last decides. Takes one round trip.
 */
export async function defineLimits(
  run: ScriptRunner,
  { base, settings }: Pick<QueueKeys, 'base' | 'settings'>,
  { keyLimits, capacities }: DefinedLimits,
  { replaces }: { readonly replaces: boolean },
): Promise<void> {
  const sorted = Object.entries(capacities).toSorted(([one], [other]) => (one < other ? -1 : 1))
  const args = {
    base,
    keyLimits: encodeKeyLimits(keyLimits),
    capacities: JSON.stringify(Object.fromEntries(sorted.map(([limiter, capacity]) => [limiter, String(capacity)]))),
    replaces: replaces ? '1' : '',
  }
  await run(defineLimitsScript, { settings }, args)
}

/** Encodes the limits of the catalogue as JSON. */
function encodeKeyLimits(limits: PerConcurrencyKey | undefined): string {
  const { keys = {}, ...all } = limits ?? {}
  const own = Object.entries(keys).flatMap(([key, each]) => fieldsOf(each, key))
  return JSON.stringify(Object.fromEntries([...fieldsOf(all), ...own]))
}

type Fields = readonly (readonly [field: string, value: string])[]

/** Returns the fields of `key-limits`. */
function fieldsOf({ concurrency, rate }: Parameters<typeof keyLimitSettings>[0], key?: string): Fields {
  const suffix = key === undefined ? '' : `:${key}`
  return [
    ...(concurrency === undefined ? [] : [[`concurrency${suffix}`, encode(concurrency, String)] as const]),
    ...(rate === undefined ? [] : [[`rate${suffix}`, encode(rate, encodeRate)] as const]),
  ]
}

function encode<T>(limit: T | 'none', encodeLimit: (limit: T) => string): string {
  return limit === 'none' ? '' : encodeLimit(limit)
}

/** See ../../store/lua/includes/limits/key-limits.lua. */
const encodeRate = ({ max, perMs, burst }: StartRate): string => `${max}/${perMs}/${burst}`

/** How many commands {@link addKeyLimitReads} adds. */
export const KEY_LIMIT_READS = 2

/** Adds the commands that read the limits of every key. O(1): the limits of single keys are only counted. */
export function addKeyLimitReads(pipeline: ChainableCommander, { keyLimits }: QueueKeys): void {
  pipeline.hmget(keyLimits, 'concurrency', 'rate').hlen(keyLimits)
}

/** Decodes the replies to {@link addKeyLimitReads}. Returns undefined if there are no limits. */
export function decodeKeyLimits([all, count]: readonly unknown[]): QueueSettings['perConcurrencyKey'] {
  if (count === 0) return undefined
  const [concurrency, rate] = all as (string | null)[]
  const found = [concurrency, rate].filter((limit) => limit != null)
  return {
    concurrency: concurrency == null ? undefined : Number(concurrency),
    rate: rate == null ? undefined : decodeStartRate(rate),
    ofSingleKeys: Number(count) - found.length,
  }
}

/** Decodes a stored rate. */
export function decodeStartRate(stored: string): StartRate {
  const [max = 0, perMs = 0, burst = 0] = stored.split('/').map(Number)
  return { max, perMs, burst }
}

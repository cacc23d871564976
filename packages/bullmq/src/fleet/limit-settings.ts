// Reads which limits of a queue commands have set, and which limits of its concurrency keys and limiters apply, with what has
// set each of them.
import type { LimitSource, StartRate } from '@bullpen/contract'
import { MAX_SINGLE_KEYS } from '@bullpen/contract/internal'
import { type LimitInForce, type LimitSettings, limiterOf } from '@bullpen/engine/internal'
import { CAPACITY_SETTING, decodeStartRate, KEY_LIMIT_SETTING } from '../internals/turns/key-limits.ts'
import type { QueueKeys } from '../keys.ts'
import { answersOf } from '../queries/read-together.ts'
import { pairsOf } from '../scripts/pairs.ts'
import type { Commander } from '../scripts/script.ts'
import { addSettingsReads, decodeApiKeyLimits, decodeSettings } from './queue-settings.ts'

/** How many limits of single keys one HSCAN reads, about. If there are fewer, it reads all of them. */
const SCAN = 1_000

/** See `Fleet.limitSettings`. `apiKeyNames` are those whose limits are read. */
export async function readLimitSettings(
  redis: Commander,
  keys: QueueKeys,
  apiKeyNames: readonly string[],
): Promise<LimitSettings> {
  const pipeline = redis.pipeline().hscan(keys.keyLimits, 0, 'COUNT', SCAN)
  addSettingsReads(pipeline, keys)
  const [scanned, ...answers] = answersOf(await pipeline.exec())
  const settings = decodeSettings(answers)
  const [, fields] = scanned as [cursor: string, fields: string[]]
  const own = ownLimits(fields)

  const commanded = await read(redis, keys.settings, [
    ...apiKeyNames.flatMap((name) => [`enqueueRate:${name}`, `maxUnfinishedTasks:${name}`]),
    ...['', ...own.map(({ key }) => `:${key}`)].flatMap((suffix) => [
      `${KEY_LIMIT_SETTING}concurrency${suffix}`,
      `${KEY_LIMIT_SETTING}rate${suffix}`,
    ]),
    ...(settings.limiters ?? []).map((limiter) => `${CAPACITY_SETTING}${limiterOf(limiter)}`),
  ])
  const sourceOf = (setting: string): LimitSource => (Object.hasOwn(commanded, setting) ? 'command' : 'definition')
  const inForce = <T>(field: string, value: T | undefined): LimitInForce<T> | undefined =>
    value === undefined ? undefined : { value, source: sourceOf(`${KEY_LIMIT_SETTING}${field}`) }
  return {
    settings,
    limiters: settings.limiters?.map((limiter) => ({
      ...limiter,
      source: sourceOf(`${CAPACITY_SETTING}${limiterOf(limiter)}`),
    })),
    perApiKey: decodeApiKeyLimits(commanded),
    perConcurrencyKey: {
      concurrency: inForce('concurrency', settings.perConcurrencyKey?.concurrency),
      rate: inForce('rate', settings.perConcurrencyKey?.rate),
    },
    singleKeys: own.map(({ key, concurrency, rate }) => ({
      key,
      concurrency: inForce(`concurrency:${key}`, concurrency),
      rate: inForce(`rate:${key}`, rate),
    })),
  }
}

interface OwnLimits {
  readonly key: string
  readonly concurrency?: number | undefined
  readonly rate?: StartRate | undefined
}

/** Collects the limits of single keys from fields and values of `key-limits`. */
function ownLimits(flat: readonly string[]): readonly OwnLimits[] {
  const own = new Map<string, OwnLimits>()
  for (const [field, value] of pairsOf(flat)) {
    const at = field.indexOf(':')
    if (at < 0) continue
    const key = field.slice(at + 1)
    const limit = field.startsWith('rate') ? { rate: decodeStartRate(value) } : { concurrency: Number(value) }
    own.set(key, { key, ...own.get(key), ...limit })
  }
  return [...own.values()].sort((a, b) => (a.key < b.key ? -1 : 1)).slice(0, MAX_SINGLE_KEYS)
}

/** Returns the fields that exist. */
async function read(
  redis: Commander,
  hash: string,
  fields: readonly string[],
): Promise<Readonly<Record<string, string>>> {
  const values = await redis.hmget(hash, ...fields)
  return Object.fromEntries(fields.flatMap((field, i) => (values[i] == null ? [] : [[field, values[i]]])))
}

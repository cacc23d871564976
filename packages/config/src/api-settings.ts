// The settings of an API, and the rules across them.
import {
  API_KEY_NAME,
  API_KEY_NAME_FORM,
  ENQUEUE_RATE_FORM,
  MIN_API_KEY_LENGTH,
  readEnqueueRate,
  suggestion,
} from '@bullpen/contract/internal'
import { z } from 'zod'
import { jsonFault, parseJson } from './json-syntax.ts'
import { LOG_SETTINGS } from './log-settings.ts'
import { type NamedKey, readNamedKey } from './named-key.ts'
import { REDIS_RULES, REDIS_SETTINGS } from './redis-settings.ts'
import { durationOr, listeningHost, trueOrFalse, wholeNumberOr } from './setting-types.ts'
import type { PartialSettings, SettingsOf, SettingsRule, SettingsTable } from './settings.ts'

/**
 * A key is used in a header, in a link and in a comma-separated list, so it is limited to the characters of RFC 6750, which do
 * not include a comma.
 */
const keySchema = z
  .string()
  .min(MIN_API_KEY_LENGTH)
  .regex(/^[A-Za-z0-9._~+/=-]+$/)

const KEY_FORM = `at least ${MIN_API_KEY_LENGTH} characters: letters, digits and . _ ~ + / = -`

const namedKeySchema = z.string().refine((entry) => {
  const { name, text } = readNamedKey(entry)
  return API_KEY_NAME.test(name) && keySchema.safeParse(text).success
})

/** The limits of every API key that does not have limits of its own. */
export const EVERY_KEY = '*'
/** The name of the development key. */
export const DEV_KEY_NAME = 'dev'

const limitedNameSchema = z.union([z.literal(EVERY_KEY), z.string().regex(API_KEY_NAME)])

const limitsSchema = z.strictObject({
  enqueueRate: z
    .string()
    .refine((text) => text === 'none' || readEnqueueRate(text) !== undefined)
    .optional(),
})

const limitsByNameSchema = z.record(limitedNameSchema, limitsSchema).optional()

/** The type of the parameter is what a program may pass. */
const keyLimitsSchema = z.preprocess(
  (given: string | Readonly<z.input<typeof limitsByNameSchema>>, context) => parseJson(given, context),
  limitsByNameSchema,
)

const LIMITS_FORM = `a JSON object with limits by the name of the API key, such as {"shop":{"enqueueRate":"100/1s"}}; enqueueRate is ${ENQUEUE_RATE_FORM}, or "none"`

/** Describes valid limits, and says which of these are wrong. Does not repeat an invalid name, because it may be an API key. */
function expectedLimits(given: unknown): string {
  const parsed = parseJson(given)
  const limits = typeof parsed === 'object' && parsed !== null ? Object.entries(parsed) : []
  const isName = (text: string): boolean => limitedNameSchema.safeParse(text).success
  const nameForm = limits.every(([name]) => isName(name))
    ? ''
    : `; a name is "*" or the name of an API key: ${API_KEY_NAME_FORM}`
  const wrong = limits.filter(([name, value]) => isName(name) && !limitsSchema.safeParse(value).success)
  return `${LIMITS_FORM}${jsonFault(given)}${nameForm}${wrong.map(([name]) => `; the limits of '${name}' are not valid`).join('')}`
}

/**
 * Returns the schema of a list, which is separated by commas in the environment. The type of the parameter is what a program may
 * pass.
 */
function listOf<T extends z.ZodType>(entry: T) {
  return z.preprocess(
    (given: string | readonly z.input<T>[] | undefined) =>
      typeof given === 'string'
        ? given
            .split(',')
            .map((text) => text.trim())
            .filter((text) => text !== '')
        : given,
    z.array(entry).default([]),
  )
}

const originSchema = z
  .string()
  .refine((text) => /^https?:/.test(text) && URL.canParse(text) && new URL(text).origin === text)

export const API_SETTINGS = {
  ...REDIS_SETTINGS,
  ...LOG_SETTINGS,
  environment: {
    env: 'BULLPEN_ENV',
    schema: z.enum(['development', 'production']).default('production'),
    expected: '"development" or "production"',
    help: 'In development, the API generates a key that is accepted only from this machine. In production, at least one key must be set.',
  },
  host: {
    env: 'BULLPEN_API_HOST',
    ...listeningHost,
    help: 'The address that the API listens on. Use 0.0.0.0 in a container.',
  },
  port: {
    env: 'BULLPEN_API_PORT',
    ...wholeNumberOr(8080, 0, 65_535),
    help: 'The port that the API listens on. Use 0 to pick any free port.',
  },
  metricsHost: {
    env: 'BULLPEN_API_METRICS_HOST',
    ...listeningHost,
    help: 'The address on which metrics are served. Metrics do not require a key, so do not expose this address outside the cluster.',
  },
  metricsPort: {
    env: 'BULLPEN_API_METRICS_PORT',
    ...wholeNumberOr(9464, 0, 65_535),
    help: 'The port on which metrics are served. Use 0 to pick any free port.',
  },
  keys: {
    env: 'BULLPEN_API_KEYS',
    schema: listOf(namedKeySchema),
    expected: `keys separated by commas, each of ${KEY_FORM}; in front of a key, there may be a name and a colon; a name is ${API_KEY_NAME_FORM}`,
    secret: true,
    help: 'The API keys, separated by commas. Each key must have at least 20 characters, and may have a name: `shop:KEY`. Commands, limits and audit records use the name. Several keys may have the same name, for example while you replace one with another.',
  },
  keyLimits: {
    env: 'BULLPEN_API_KEY_LIMITS',
    schema: keyLimitsSchema,
    expected: expectedLimits,
    // An API key may have been written in place of its name.
    secret: true,
    help: 'The limits of API keys, by their names, as a JSON object: `{"shop":{"enqueueRate":"100/1s"}}`. The name `*` stands for every other key. See [Limits of an API key](../how-to/api-keys.md).',
  },
  devKey: {
    env: 'BULLPEN_API_DEV_KEY',
    schema: keySchema.optional(),
    expected: `a key of ${KEY_FORM}`,
    secret: true,
    help: 'The API key for development, which is accepted only from this machine. If unset, the API generates a random key and prints it on standard error.',
  },
  bodyLimit: {
    env: 'BULLPEN_API_BODY_LIMIT',
    ...wholeNumberOr(262_144, 1_024, 16_777_216),
    help: 'The maximum size of a request body, in bytes. This is also the maximum size of each task.',
  },
  bulkBodyLimit: {
    env: 'BULLPEN_API_BULK_BODY_LIMIT',
    ...wholeNumberOr(4_194_304, 1_024, 16_777_216),
    help: 'The maximum size of the body of `POST /v1/tasks/bulk`, in bytes.',
  },
  minBodyRate: {
    env: 'BULLPEN_API_MIN_BODY_RATE',
    ...wholeNumberOr(16_384, 256, 16_777_216),
    help: 'The minimum rate at which a request body must arrive after its first 3 s, in bytes per second. The API responds to a slower request with 408 and closes its connection. At the default rate, a body of 4 MiB may take about 4 minutes.',
  },
  corsOrigins: {
    env: 'BULLPEN_API_CORS_ORIGINS',
    schema: listOf(originSchema),
    expected: 'origins separated by commas, such as https://shop.example.com, without a path',
    help: 'The origins whose pages may call the API from scripts, separated by commas. Anyone who can open one of these pages can read the API key that its scripts use.',
  },
  idempotencyLife: {
    env: 'BULLPEN_API_IDEMPOTENCY_LIFE',
    ...durationOr('24h', '1s'),
    help: 'How long the first response to each Idempotency-Key is remembered, for queues whose definition does not set it. If you change it, keys that were remembered before are not found any more, so a repeated request stores a second task. Remembered keys take up memory in Redis: see [the calculation](../how-to/http-api.md#idempotency-keys).',
  },
  idempotencyMemoryShare: {
    env: 'BULLPEN_API_IDEMPOTENCY_MEMORY_SHARE',
    ...wholeNumberOr(25, 1, 95),
    help: "The percentage of Redis's memory that remembered Idempotency-Keys may take. Beyond it, requests with a new key are rejected. See [the calculation](../how-to/http-api.md#idempotency-keys).",
  },
  memoryWatermark: {
    env: 'BULLPEN_API_MEMORY_WATERMARK',
    ...wholeNumberOr(80, 1, 95),
    help: "The percentage of Redis's memory at which the API stops accepting tasks. The memory is maxmemory or, if maxmemory is 0, the machine's memory. The rest is reserved for the workers, which need it to finish the accepted tasks. See [Redis is full](../runbook/redis-full.md).",
  },
  queueMemoryShare: {
    env: 'BULLPEN_API_QUEUE_MEMORY_SHARE',
    ...wholeNumberOr(50, 1, 100),
    help: "The percentage of Redis's memory that the unfinished tasks of one queue may take, so that no queue can use up the memory that the others need. It applies to queues for which neither the definition nor a command sets `maxBytes`. See [Backpressure](../how-to/backpressure.md).",
  },
  allowBoardChanges: {
    env: 'BULLPEN_API_ALLOW_BOARD_CHANGES',
    ...trueOrFalse(false),
    help: 'Whether the buttons of Bull Board may retry and delete dead tasks, and pause and resume queues. Otherwise, the board is read-only. See [Use Bull Board](../how-to/bull-board.md).',
  },
  grafanaUrl: {
    env: 'BULLPEN_API_GRAFANA_URL',
    schema: z.url({ protocol: /^https?$/ }).optional(),
    expected: 'an http or https URL, such as https://grafana.example.com/d/bullpen-fleet',
    help: 'The address of the dashboards, to which Bull Board has a link. If unset, the board has no such link. See [Monitor with Prometheus](../how-to/monitoring.md#import-the-dashboards).',
  },
  allowEviction: {
    env: 'BULLPEN_API_ALLOW_EVICTION',
    ...trueOrFalse(false),
    help: 'Whether to accept tasks even though Redis may delete them because its maxmemory-policy is not noeviction. In development, the API always accepts tasks.',
  },
} as const satisfies SettingsTable

export type ApiSettings = SettingsOf<typeof API_SETTINGS>
/** The settings as a program passes them. Each setting is optional. */
export type ApiConfig = PartialSettings<typeof API_SETTINGS>

export const API_RULES: readonly SettingsRule<typeof API_SETTINGS>[] = [
  ...REDIS_RULES,
  ({ environment, devKey }) =>
    environment === 'production' && devKey !== undefined
      ? 'devKey (BULLPEN_API_DEV_KEY) is for development only; in production, set keys (BULLPEN_API_KEYS) instead, or set environment (BULLPEN_ENV) to development'
      : undefined,
  ({ environment, keys }) =>
    environment === 'production' && keys.length === 0
      ? 'keys (BULLPEN_API_KEYS) is empty, but in production the API needs at least one key; set a key, or set environment (BULLPEN_ENV) to development to let the API generate a key for this machine'
      : undefined,
  ({ keys }) => sameKeyTwice(keys),
  ({ keys, devKey }) => devKeyTwice(keys, devKey),
  ({ keys, devKey }) => fingerprintAsName(keys, devKey),
  ({ keys, keyLimits = {} }) => {
    const names = [...keys.map((entry) => readNamedKey(entry).name), DEV_KEY_NAME]
    const unknown = Object.keys(keyLimits).find((name) => name !== EVERY_KEY && !names.includes(name))
    return unknown === undefined
      ? undefined
      : `keyLimits (BULLPEN_API_KEY_LIMITS) has limits for '${unknown}', but no key in keys (BULLPEN_API_KEYS) has this name, and no key without a name has this fingerprint${suggestion(unknown, names)}`
  },
  ({ host, port, metricsHost, metricsPort }) =>
    port !== 0 && port === metricsPort && host === metricsHost
      ? `port (BULLPEN_API_PORT) and metricsPort (BULLPEN_API_METRICS_PORT) are both ${port}; metrics must be served on a separate port`
      : undefined,
]

interface Entry extends NamedKey {
  /** The position in the setting `keys`. The first entry is 1. */
  readonly entry: number
}

const readEntries = (keys: readonly string[]): readonly Entry[] =>
  keys.map((entry, i) => ({ ...readNamedKey(entry), entry: i + 1 }))

/** If two entries are the same key under different names, only the name of the first one would be used, and only its limits. */
function sameKeyTwice(keys: readonly string[]): string | undefined {
  const named = readEntries(keys)
  for (const key of named) {
    const other = named.find(({ name, text }) => text === key.text && name !== key.name)
    if (other !== undefined) {
      return `entries ${key.entry} ('${key.name}') and ${other.entry} ('${other.name}') of keys (BULLPEN_API_KEYS) are the same key under two names; keep one of them (a key without a name is named by its fingerprint)`
    }
  }
  return undefined
}

/** If the development key were also in `keys`, it would be accepted from everywhere. */
function devKeyTwice(keys: readonly string[], devKey: string | undefined): string | undefined {
  const same = readEntries(keys).find(({ text }) => text === devKey)
  return same === undefined
    ? undefined
    : `devKey (BULLPEN_API_DEV_KEY) is also entry ${same.entry} ('${same.name}') of keys (BULLPEN_API_KEYS), and would be accepted from everywhere; the development key must be a key of its own, so change one of the two, or remove devKey to let the API generate a key`
}

/** A key without a name is known by its fingerprint. If another key had it as its name, audit records and limits would mix the two up. */
function fingerprintAsName(keys: readonly string[], devKey: string | undefined): string | undefined {
  const named = readEntries(keys)
  for (const { name, text, entry } of named) {
    const other = named.find((each) => each.fingerprint === name && each.text !== text)
    const isOfDevKey = devKey !== undefined && readNamedKey(devKey).fingerprint === name
    if (other === undefined && !isOfDevKey) continue
    const owner = other === undefined ? 'devKey (BULLPEN_API_DEV_KEY)' : `entry ${other.entry}`
    return `entry ${entry} of keys (BULLPEN_API_KEYS) has the name '${name}', which is the fingerprint of ${owner}; choose another name, because audit records and limits could not distinguish the two keys`
  }
  return undefined
}

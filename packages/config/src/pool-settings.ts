// The settings that a single pool of a worker may have, and how they combine with those of the worker.
import { DRAIN_MODES, ISOLATIONS, nearest, QUEUE_NAME } from '@bullpen/contract/internal'
import { z } from 'zod'
import { jsonFault, parseJson } from './json-syntax.ts'
import { durationFrom, expectedDuration, noLimit, oneOf, wholeNumber } from './setting-types.ts'

const duration = { schema: durationFrom('1ms'), expected: expectedDuration('1ms') }
const durationOrNone = { schema: z.union([noLimit, duration.schema]), expected: expectedDuration('1ms', 'none') }

/** Each has the same meaning as the worker's setting with this name. Isolation is only a setting of pools. */
const POOL_TABLE = {
  taskTimeout: durationOrNone,
  heartbeatTimeout: durationOrNone,
  queueTimeout: durationOrNone,
  totalTimeout: durationOrNone,
  grace: duration,
  drainMode: oneOf(DRAIN_MODES),
  drainTimeout: duration,
  maxStuckHandlers: wholeNumber(0, 10_000),
  maxOutputBytes: wholeNumber(1_024, 16_777_216),
  isolation: oneOf(ISOLATIONS),
}

const NAMES = Object.keys(POOL_TABLE)

const settingsSchema = z.strictObject(schemasIn(POOL_TABLE)).partial()

const byQueueSchema = z.record(z.string().regex(QUEUE_NAME), settingsSchema).optional()

/** The type of the parameter is what a program may pass. */
const schema = z.preprocess(
  (given: string | Readonly<z.input<typeof byQueueSchema>>, context) => parseJson(given, context),
  byQueueSchema,
)

export type PoolSettings = z.output<typeof settingsSchema>
/** The settings that pools may have, in the form in which the worker has them. */
type Shared = Exclude<keyof PoolSettings, 'isolation'>

const FORM = `a JSON object with the settings of pools by queue, such as {"reports":{"taskTimeout":"1h","drainMode":"soft"}}; the settings of a pool are ${NAMES.join(', ')}`

export const POOL_SETTINGS = {
  poolSettings: {
    env: 'BULLPEN_WORKER_POOL_SETTINGS',
    schema,
    expected: (given: unknown) => `${FORM}${jsonFault(given)}${faultsIn(parseJson(given))}`,
    help: `Settings of individual pools, which take precedence over the settings of the worker: ${FORM}. The isolation is inline, thread or process, and applies to long tasks. What a definition sets takes precedence.`,
  },
} as const

/** Returns the settings of the pool for a queue: its own, and for the others those of the worker. */
export function settingsOfPool<
  S extends { readonly poolSettings?: Readonly<Record<string, PoolSettings>> | undefined },
>(settings: S & Readonly<Record<Shared, unknown>>, queue: string): S & Pick<PoolSettings, 'isolation'> {
  const { poolSettings = {} } = settings
  return { ...settings, ...(Object.hasOwn(poolSettings, queue) ? poolSettings[queue] : {}) }
}

function schemasIn<T extends Readonly<Record<string, { readonly schema: z.ZodType }>>>(table: T) {
  const schemas = Object.entries(table).map(([name, type]) => [name, type.schema] as const)
  return Object.fromEntries(schemas) as { readonly [N in keyof T]: T[N]['schema'] }
}

/** Says which of the settings are wrong. */
function faultsIn(given: unknown): string {
  const { error } = schema.safeParse(given)
  const faults = (error?.issues ?? []).flatMap(({ path: [queue, setting], ...issue }) => {
    if (queue === undefined) return []
    if (issue.code === 'unrecognized_keys') {
      return issue.keys.map((key) => `${key} of '${String(queue)}' is not a setting of a pool${didYouMean(key)}`)
    }
    if (setting === undefined) return [queueFault(String(queue))]
    return [settingFault(String(queue), setting as keyof typeof POOL_TABLE, given)]
  })
  return faults.map((fault) => `; ${fault}`).join('')
}

function queueFault(queue: string): string {
  return QUEUE_NAME.test(queue)
    ? `'${queue}' has no settings; expected an object such as {"drainMode":"soft"}`
    : `'${queue}' is not the name of a queue`
}

function settingFault(queue: string, setting: keyof typeof POOL_TABLE, given: unknown): string {
  const value = (given as Readonly<Record<string, Readonly<Record<string, unknown>>>>)[queue]?.[setting]
  const { expected } = POOL_TABLE[setting]
  const accepted = typeof expected === 'string' ? expected : expected(value)
  return `${setting} of '${queue}' is ${JSON.stringify(value)}; expected ${accepted}`
}

function didYouMean(key: string): string {
  const near = nearest(key, NAMES)
  return near === undefined ? '' : `; did you mean ${near}?`
}

// The settings that a single pool of a worker may have, and how they combine with those of the worker.
import { DRAIN_MODES, ISOLATIONS, nearest, QUEUE_NAME } from '@bullpen/contract/internal'
import { z } from 'zod'
import { durationFrom, noLimit, wholeNumber } from './setting-types.ts'

const duration = durationFrom('1ms')
const durationOrNone = z.union([noLimit, duration])

/** Each has the same meaning as the worker's setting with this name. Isolation is only a setting of pools. */
const POOL_SCHEMAS = {
  taskTimeout: durationOrNone,
  heartbeatTimeout: durationOrNone,
  queueTimeout: durationOrNone,
  totalTimeout: durationOrNone,
  grace: duration,
  drainMode: z.enum(DRAIN_MODES),
  drainTimeout: duration,
  maxStuckHandlers: wholeNumber(0, 10_000).schema,
  maxOutputBytes: wholeNumber(1_024, 16_777_216).schema,
  isolation: z.enum(ISOLATIONS),
}

const NAMES = Object.keys(POOL_SCHEMAS)

const settingsSchema = z.strictObject(POOL_SCHEMAS).partial()

const byQueueSchema = z.record(z.string().regex(QUEUE_NAME), settingsSchema).optional()

/** The type of the parameter is what a program may pass. */
const schema = z.preprocess(
  (given: string | Readonly<z.input<typeof byQueueSchema>>) => parseJson(given),
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
    expected: (given: unknown) => `${FORM}${faultsIn(parseJson(given))}`,
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

/** Says which of the settings are wrong. */
function faultsIn(given: unknown): string {
  const { error } = byQueueSchema.safeParse(given)
  const faults = (error?.issues ?? []).flatMap(({ path: [queue, setting], ...issue }) => {
    if (queue === undefined) return []
    if (issue.code === 'unrecognized_keys') {
      return issue.keys.map((key) => `${key} of '${String(queue)}' is not a setting of a pool${didYouMean(key)}`)
    }
    return [
      setting === undefined
        ? `'${String(queue)}' is not valid`
        : `${String(setting)} of '${String(queue)}' is not valid`,
    ]
  })
  return faults.map((fault) => `; ${fault}`).join('')
}

function didYouMean(key: string): string {
  const near = nearest(key, NAMES)
  return near === undefined ? '' : `; did you mean ${near}?`
}

/** Returns a text that is not JSON unchanged, so that the schema rejects it. */
function parseJson(given: unknown): unknown {
  if (typeof given !== 'string') return given
  try {
    return JSON.parse(given)
  } catch {
    return given
  }
}

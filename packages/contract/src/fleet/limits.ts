// Defines over HTTP which limits of a queue are in force, the state of its circuit breakers, and which of its concurrency keys
// have the most waiting or active tasks.
import { z } from 'zod'
import { cursorSchema, limitSchema } from '../http/queries.ts'
import { breakersView } from './breakers-view.ts'
import { concurrencyKeyText } from './fleet-names.ts'
import { limiterView } from './limiters-view.ts'

/** How concurrency keys are sorted: by how many of their tasks wait, or are active. The largest number comes first. */
export const KEY_ORDERS = ['backlog', 'active'] as const

export type KeyOrder = (typeof KEY_ORDERS)[number]

/** What has set a limit that is in force. A limit of a command replaces that of the queue's definition. */
const LIMIT_SOURCES = ['definition', 'command'] as const

export type LimitSource = (typeof LIMIT_SOURCES)[number]

/** What may keep a concurrency key from starting a task. A handler throttles the key of its task by throwing `rateLimited`. */
const KEY_BLOCKS = ['concurrency', 'rate', 'throttle'] as const

export type KeyBlock = (typeof KEY_BLOCKS)[number]

/** How many weights and limits of single keys are shown. */
export const MAX_SINGLE_KEYS = 100

const time = z.iso.datetime()

const source = z.enum(LIMIT_SOURCES).describe('What has set the limit: a definition, or a command.')
const max = z.object({ max: z.int(), source })
const rate = z.object({ max: z.int(), perMs: z.int(), source })
const startRate = rate.extend({
  burst: z.int().describe('How many tasks may start at once after a period without starts.'),
})
const isOwn = z.boolean().describe('True if the limit was set for this key, and false if it is the limit of every key.')

const apiKeyLimits = {
  enqueueRate: rate.optional(),
  maxUnfinishedTasks: max.optional(),
}

const limits = z.object({
  concurrency: max.optional().describe('How many tasks may run at once across all workers.'),
  rate: rate.optional().describe('How many tasks may start per period across all workers.'),
  maxTasks: max.optional().describe('How many tasks may be waiting, scheduled or retrying.'),
  maxBytes: max
    .optional()
    .describe(
      "How many bytes the tasks that have not ended may take. If absent, the API's `queueMemoryShare` applies.",
    ),
  maxAgeMs: max.optional().describe('How long the task that starts next may have been waiting, in ms.'),
  perApiKey: z
    .object({
      ...apiKeyLimits,
      apiKeys: z
        .array(z.object({ name: z.string(), ...apiKeyLimits }))
        .describe('The API keys for which a command has set other limits.'),
    })
    .optional()
    .describe(
      'How many tasks each API key may enqueue into the queue per period, and have in it until they end. The limits of API keys in all queues together are not included.',
    ),
  perConcurrencyKey: z
    .object({
      concurrency: max.optional(),
      rate: startRate.optional(),
      ofSingleKeys: z.int().describe('How many limits were set for single keys.'),
      singleKeys: z
        .array(z.object({ key: z.string(), concurrency: max.optional(), rate: startRate.optional() }))
        .describe(`The keys with limits of their own. If there are more than ${MAX_SINGLE_KEYS}, only some of them.`),
    })
    .optional()
    .describe('How many tasks of each concurrency key may run at once, and start per period.'),
  limiters: z
    .array(limiterView.extend({ source }))
    .optional()
    .describe(
      "The queue's permits, and the `concurrency` of its task definitions, across all workers. Absent if there are none.",
    ),
  weights: z
    .object({
      ofSingleKeys: z.int().describe('How many keys have a weight other than 1.'),
      singleKeys: z
        .array(z.object({ key: z.string(), weight: z.number() }))
        .describe(`The keys with the largest weights, in descending order. At most ${MAX_SINGLE_KEYS}.`),
    })
    .optional()
    .describe("The weights of the concurrency keys in the queue's definition. Absent if it has no `fairness`."),
})

const keyView = z
  .object({
    key: z.string(),
    weight: z.number().optional().describe('How many tasks the key starts for each task of a key with the weight 1.'),
    waiting: z.int().describe('How many tasks of the key wait for their turn.'),
    active: z.int().describe('How many tasks of the key are active.'),
    concurrency: max
      .extend({ isOwn })
      .optional()
      .describe('How many tasks of the key may run at once. Absent if unlimited.'),
    rate: startRate.extend({ isOwn }).optional().describe('How many tasks of the key may start per period.'),
    blockedBy: z
      .array(z.enum(KEY_BLOCKS))
      .describe(
        'Why the key may start no task at the moment: because of its limits, or because a handler has throttled it. If empty, the key only waits for its turn and a slot.',
      ),
    nextStartAt: time
      .optional()
      .describe('When the rate and the throttle of the key allow its next start. Absent if they allow one now.'),
  })
  .describe('A concurrency key of a queue.')

export const limitsViewSchema = z
  .object({
    queue: z.string(),
    now: time.describe("The current time on Redis's clock."),
    paused: z.boolean().describe('True if the queue is paused, so that no key starts a task.'),
    takesTurns: z
      .boolean()
      .describe(
        'True if the queue is defined with `fairness`, so that its concurrency keys take turns. If false, keys cannot be limited, and `keys` contains only those whose tasks were enqueued while the queue took turns.',
      ),
    limits,
    breakers: breakersView,
    keys: z.object({
      waitingKeys: z.int().describe('How many concurrency keys have waiting tasks.'),
      waitingTasks: z.int().describe('How many tasks these keys have waiting.'),
      items: z.array(keyView),
      exact: z
        .boolean()
        .describe(
          'False if the queue has too many keys with waiting tasks, or too many active tasks, to examine all of them.',
        ),
      next: z.string().optional().describe('The `cursor` of the next page. Absent if this is the last page.'),
    }),
  })
  .meta({ id: 'Limits' })

export type LimitsView = z.infer<typeof limitsViewSchema>

/** The query parameters of GET /v1/queues/{queue}/limits. */
export const limitsQuerySchema = z
  .strictObject({
    concurrencyKey: concurrencyKeyText.optional().describe('Show only this concurrency key.'),
    sort: z
      .enum(KEY_ORDERS)
      .optional()
      .describe(
        '`backlog`: the keys with the most waiting tasks first (default). `active`: those with the most active tasks.',
      ),
    limit: limitSchema,
    cursor: cursorSchema.optional(),
  })
  .refine(({ concurrencyKey, sort, cursor }) => concurrencyKey === undefined || (sort ?? cursor) === undefined, {
    path: ['concurrencyKey'],
    error: 'selects a single key; omit sort and cursor',
  })

// Defines the tasks that the drills run. Their input determines how long they take and what they block.
import {
  defineCatalogue,
  definePipeline,
  defineQueue,
  defineReducer,
  defineSource,
  defineTask,
} from '@bullpen/contract'
import { z } from 'zod'
import { KEY_LIMITS, NEEDS, PERMITS } from '../exactness/key-limits.ts'

const output = z.object({ fencingToken: z.int() })
const queue = 'drill'
const timeout = '5m'

const workSchemas = {
  input: z.object({
    ms: z.int(),
    listens: z.boolean(),
    /** How long later attempts take. Defaults to the duration of the first attempt. */
    againMs: z.int().optional(),
    /** How the first attempt ends, and how long the next one has to wait. */
    again: z.object({ by: z.enum(['retry', 'snooze']), afterMs: z.int() }).optional(),
    /** The first attempt in this worker blocks the worker's event loop for `ms`. Every other attempt ends immediately. */
    blocks: z.object({ worker: z.string(), ms: z.int() }).optional(),
    /** The number of the task, which the ledger names. */
    of: z.int().optional(),
    /** Only takes memory. */
    padding: z.string().optional(),
  }),
  output,
}

export const work = defineTask({ name: 'drill.work', queue, timeout, ...workSchemas })
/** The same work in two further queues, so that it can be spread over the nodes of a Redis Cluster. */
export const secondWork = defineTask({ name: 'drill.second-work', queue: 'drill-second', timeout, ...workSchemas })
export const thirdWork = defineTask({ name: 'drill.third-work', queue: 'drill-third', timeout, ...workSchemas })
/** The same work in a queue whose concurrency keys take turns. */
export const tenantWork = defineTask({
  name: 'drill.tenant-work',
  queue: defineQueue({ name: 'drill-tenants', fairness: true }),
  timeout,
  ...workSchemas,
})
const limitedQueue = defineQueue({
  name: 'drill-limited',
  limits: { perConcurrencyKey: KEY_LIMITS, permits: PERMITS },
})
const limited = { queue: limitedQueue, timeout, ...workSchemas } as const
/** The same work in a queue that limits how many tasks of each concurrency key run at once, without permits and with some. */
export const limitedWork = defineTask({ name: 'drill.limited-work', ...limited })
export const lightWork = defineTask({ name: 'drill.light-work', ...limited, permits: NEEDS.light })
export const heavyWork = defineTask({ name: 'drill.heavy-work', ...limited, permits: NEEDS.heavy })
/** The same work in the queues for which the manifests of Kubernetes have workers. */
export const mailWork = defineTask({ name: 'drill.mail-work', queue: 'mail', timeout, ...workSchemas })
export const filesWork = defineTask({ name: 'drill.files-work', queue: 'files', timeout, ...workSchemas })

/**
 * Where a booking can stop: before and after it registers its compensation, after the step that the compensation undoes, and
 * before its end.
 */
export const POSITIONS = ['registering', 'registered', 'stepped', 'ending'] as const

/** Takes a step that a compensation undoes, and then succeeds or fails for good. */
export const booking = defineTask({
  name: 'drill.booking',
  queue,
  timeout,
  input: z.object({
    of: z.int(),
    /** How long the attempt takes after the step. */
    ms: z.int(),
    /** Whether a compensation is registered before the step. */
    undoes: z.boolean(),
    fails: z.boolean(),
    /** Where the first attempt stops until the file exists or, without a file, until its worker dies. */
    stop: z.object({ at: z.enum(POSITIONS), until: z.string().optional() }).optional(),
  }),
  output,
})

/**
 * These tasks only note that they run for the task or the group with a number. Each has a queue that keeps its last completed
 * task only.
 */
export const after = numbered('after')
export const closing = numbered('closing')
export const undo = numbered('undo')

function numbered<Name extends string>(name: Name) {
  return defineTask({
    name: `drill.${name}`,
    queue: defineQueue({ name: `drill-${name}`, retention: { completed: { count: 1 } } }),
    timeout,
    input: z.object({ of: z.int() }),
    output,
  })
}

export type Work =
  | typeof work
  | typeof secondWork
  | typeof thirdWork
  | typeof tenantWork
  | typeof limitedWork
  | typeof lightWork
  | typeof heavyWork
  | typeof mailWork
  | typeof filesWork

/** Runs in a thread and blocks that thread's event loop. */
export const isolated = defineTask({
  name: 'drill.isolated',
  queue,
  timeout,
  isolation: 'thread',
  input: z.object({ ms: z.int() }),
  output,
})

/** Blocks the event loop of its worker. */
export const hog = defineTask({ name: 'drill.hog', queue, timeout, input: z.object({ ms: z.int() }), output })

/** Calls a provider that may be down. It has enough attempts for plain BullMQ to survive the longest outage. */
export const call = defineTask({
  name: 'drill.call',
  queue,
  timeout,
  input: z.object({ url: z.url() }),
  output,
  retry: { maxAttempts: 10, backoff: { type: 'exponential', initialDelay: '1s' } },
})

/** How the circuit breaker of {@link guardedCall} opens, and how often it lets a task probe the provider. */
export const GUARD = { minimumCalls: 10, openFor: '1s', maxOpenFor: '1s' } as const
const guardedQueue = defineQueue({ name: 'drill-guarded', breakers: { provider: GUARD } })

/** The same call in a queue with a circuit breaker. */
export const guardedCall = defineTask({
  name: 'drill.guarded-call',
  queue: guardedQueue,
  dependsOn: ['provider'],
  timeout,
  input: z.object({ url: z.url() }),
  output,
  retry: { maxAttempts: 10, backoff: { type: 'exponential', initialDelay: '1s' } },
})

/** Does not call the provider, in the same queue. */
export const besideCalls = defineTask({
  name: 'drill.beside-calls',
  queue: guardedQueue,
  timeout,
  input: z.object({}),
  output,
})

export const PILLS = ['kill', 'abort', 'memory', 'loop'] as const

/** Ends or blocks the process that runs it. */
export const pill = defineTask({
  name: 'drill.pill',
  queue,
  timeout: '2s',
  grace: '100ms',
  retry: { maxAttempts: 1 },
  input: z.object({ how: z.enum(PILLS) }),
  output,
})

/** The codes of twelve kinds of error. */
export const ERRORS = [
  'http_503',
  'http_404',
  'econnreset',
  'etimedout',
  'card_declined',
  'card_expired',
  'address_unknown',
  'out_of_stock',
  'quota_exceeded',
  'bad_signature',
  'file_missing',
  'sqlstate_23505',
] as const

/** Dead after its first attempt. When the task is retried, it succeeds, as after a fix. */
export const broken = defineTask({
  name: 'drill.broken',
  queue,
  kind: 'short',
  input: z.object({ error: z.enum(ERRORS), customer: z.int() }),
  output,
})

const tree = z.object({
  directory: z.string(),
  /** Whether the source can resume after an item. Otherwise, it yields all files again. */
  hasCursors: z.boolean(),
})
const digestSchema = z.object({ path: z.string(), md5: z.string() })

export const walk = defineSource({
  name: 'drill.walk',
  queue: 'drill-trees',
  input: tree,
  item: z.object({ path: z.string() }),
})

export const digestFile = defineTask({
  name: 'drill.digest-file',
  queue: 'drill-files',
  timeout,
  input: z.object({ path: z.string() }),
  output: digestSchema,
})

export const sortByPath = defineReducer({
  name: 'drill.sort-by-path',
  queue: 'drill-trees',
  timeout,
  input: tree,
  item: digestSchema,
  output: z.object({ text: z.string(), misordered: z.int() }),
})

/** How many files are digested at a time, on all workers together. */
export const DIGESTS = 20

/** Lists the MD5 of every file below a directory. */
export const digestTree = definePipeline('drill.digest-tree')
  .source(walk)
  .map(digestFile, { concurrency: DIGESTS })
  .reduce(sortByPath)

/** The same, but a file that takes long does not hold up the files after it. */
export const digestTreeUnordered = definePipeline('drill.digest-tree-unordered', { ordered: false })
  .source(walk)
  .map(digestFile, { concurrency: DIGESTS })
  .reduce(sortByPath)

export const catalogue = defineCatalogue(
  work,
  secondWork,
  thirdWork,
  tenantWork,
  limitedWork,
  lightWork,
  heavyWork,
  mailWork,
  filesWork,
  booking,
  after,
  closing,
  undo,
  isolated,
  hog,
  call,
  guardedCall,
  besideCalls,
  pill,
  broken,
  walk,
  digestFile,
  sortByPath,
  digestTree,
  digestTreeUnordered,
)

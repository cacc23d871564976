// The worker's settings: what each is called, what it may be, and which of them contradict each other.

import { type Duration, milliseconds } from '@bullpen/contract'
import { contradictionIn, QUEUE_NAME } from '@bullpen/contract/internal'
import { z } from 'zod'
import { LOG_SETTINGS } from './log-settings.ts'
import { REDIS_SETTINGS } from './redis-settings.ts'
import {
  type PartialSettings,
  type SettingsOf,
  type SettingsRule,
  type SettingsTable,
  wholeNumber,
} from './settings.ts'

function durationFrom(shortest: Duration) {
  return z.string().superRefine((text, context) => {
    try {
      if (milliseconds(text) >= milliseconds(shortest)) return
      context.addIssue({ code: 'custom', message: `the shortest is '${shortest}'` })
    } catch (error) {
      context.addIssue({ code: 'custom', message: error instanceof Error ? error.message : String(error) })
    }
  })
}

const durationSchema = durationFrom('1ms')

/** 0 is cores x 2. */
const concurrencySchema = wholeNumber(0, 10_000)

const POOL_FORM = 'pools are written as queue=concurrency, separated by commas, such as cpu=4,files=20'

/** `cpu=4,files=20`, or an object of the same. Text of another form stays text, for the record to refuse. */
const poolsSchema = z.preprocess(
  (given) => (typeof given === 'string' && /^[^=,]+=[^=,]+(,[^=,]+=[^=,]+)*$/.test(given) ? readPools(given) : given),
  z
    .record(z.string().regex(QUEUE_NAME, POOL_FORM), concurrencySchema, POOL_FORM)
    .refine((pools) => Object.keys(pools).length > 0, 'there is no pool in it; leave it out to work every queue')
    .optional(),
)

/** A queue that is named twice keeps both values, joined, which no concurrency is. */
function readPools(text: string): Record<string, string> {
  const pools: Record<string, string> = {}
  for (const [queue = '', size = ''] of text.split(',').map((pool) => pool.split('=').map((part) => part.trim()))) {
    pools[queue] = queue in pools ? `${pools[queue]} and ${size}` : size
  }
  return pools
}

export const WORKER_SETTINGS = {
  ...REDIS_SETTINGS,
  ...LOG_SETTINGS,
  pools: {
    env: 'BULLPEN_WORKER_POOLS',
    schema: poolsSchema,
    help: 'Which queues this process works, and how many tasks at once: cpu=4,files=20. 0 is cores x 2. Unset: every queue of the catalogue, 0 each.',
  },
  taskTimeout: {
    env: 'BULLPEN_WORKER_TASK_TIMEOUT',
    schema: z.union([z.literal('none'), durationSchema]).default('5m'),
    help: 'The run timeout of a long task that says none of its own.',
  },
  heartbeatTimeout: {
    env: 'BULLPEN_WORKER_HEARTBEAT_TIMEOUT',
    schema: z.union([z.literal('none'), durationSchema]).default('none'),
    help: 'The longest time between two signs of life of a long task that says none of its own.',
  },
  queueTimeout: {
    env: 'BULLPEN_WORKER_QUEUE_TIMEOUT',
    schema: z.union([z.literal('none'), durationSchema]).default('none'),
    help: 'How long a long task that says nothing of it may wait for its first start; looked at when it is taken.',
  },
  totalTimeout: {
    env: 'BULLPEN_WORKER_TOTAL_TIMEOUT',
    schema: z.union([z.literal('none'), durationSchema]).default('none'),
    help: 'The whole life, over all attempts, of a long task that says none of its own.',
  },
  maxStuckHandlers: {
    env: 'BULLPEN_WORKER_MAX_STUCK_HANDLERS',
    schema: wholeNumber(0, 10_000).default(10),
    help: 'Of one pool: handlers that go on after their attempt has ended. With more than these the pool takes no tasks and is not ready.',
  },
  maxChildBytes: {
    env: 'BULLPEN_WORKER_MAX_CHILD_BYTES',
    schema: wholeNumber(1_024, 16_777_216).default(262_144),
    help: 'The most bytes that a task which a handler enqueues may take in Redis.',
  },
  grace: {
    env: 'BULLPEN_WORKER_GRACE',
    schema: durationSchema.default('5s'),
    help: 'How long a signalled task may take to end, after its timeout and at the deadline of a drain.',
  },
  drainTimeout: {
    env: 'BULLPEN_WORKER_DRAIN_TIMEOUT',
    schema: durationSchema.default('20s'),
    help: 'How long running tasks may go on after SIGTERM before they are signalled.',
  },
  terminationGrace: {
    env: 'BULLPEN_WORKER_TERMINATION_GRACE',
    schema: durationSchema.default('30s'),
    help: "When the platform kills the process: Kubernetes' terminationGracePeriodSeconds.",
  },
  completedRetention: {
    env: 'BULLPEN_WORKER_COMPLETED_RETENTION',
    schema: durationSchema.default('24h'),
    help: 'How long a completed task can be looked up. Dead ones are kept.',
  },
  maxOutputBytes: {
    env: 'BULLPEN_WORKER_MAX_OUTPUT_BYTES',
    schema: wholeNumber(1_024, 16_777_216).default(262_144),
    help: 'The largest output of a task as JSON, in bytes; a larger one is a panic, invalid_output.',
  },
  eventLoopStallWarning: {
    env: 'BULLPEN_WORKER_EVENT_LOOP_STALL_WARNING',
    schema: z.union([z.literal('none'), durationFrom('500ms')]).default('1s'),
    help: 'How long the event loop may stand still before the log names the task that blocks it.',
  },
  eventLoopStallLimit: {
    env: 'BULLPEN_WORKER_EVENT_LOOP_STALL_LIMIT',
    schema: z.union([z.literal('none'), durationFrom('1s')]).default('30s'),
    help: 'How long the event loop may stand still before its tasks are left to other processes.',
  },
  host: {
    env: 'BULLPEN_WORKER_HOST',
    schema: z.string().min(1).default('127.0.0.1'),
    help: 'The address of the probes and metrics; 0.0.0.0 in a container.',
  },
  port: {
    env: 'BULLPEN_WORKER_PORT',
    schema: wholeNumber(0, 65_535).default(9465),
    help: 'The port of the probes and metrics; 0 takes a free one.',
  },
} as const satisfies SettingsTable

export type WorkerSettings = SettingsOf<typeof WORKER_SETTINGS>
/** What a program passes: every setting may be left out. */
export type WorkerConfig = PartialSettings<typeof WORKER_SETTINGS>

/** What closing resources and connections may take, after the tasks have ended. */
export const CLOSING_MS = 2_000

export const WORKER_RULES: readonly SettingsRule<typeof WORKER_SETTINGS>[] = [
  ({ taskTimeout, heartbeatTimeout, queueTimeout, totalTimeout }) => {
    const ms = (limit: string): number | 'none' => (limit === 'none' ? limit : milliseconds(limit))
    return contradictionIn({
      timeoutMs: ms(taskTimeout),
      heartbeatMs: ms(heartbeatTimeout),
      queueMs: ms(queueTimeout),
      totalMs: ms(totalTimeout),
    })?.replace(/^timeout|(?<= )timeout/g, 'taskTimeout')
  },
  ({ drainTimeout, grace, terminationGrace }) => {
    const needed = milliseconds(drainTimeout) + milliseconds(grace) + CLOSING_MS
    return needed <= milliseconds(terminationGrace)
      ? undefined
      : `drainTimeout (BULLPEN_WORKER_DRAIN_TIMEOUT, ${drainTimeout}), grace (BULLPEN_WORKER_GRACE, ${grace}) and ${CLOSING_MS / 1_000}s for closing do not fit in terminationGrace (BULLPEN_WORKER_TERMINATION_GRACE, ${terminationGrace}): the platform would kill the process while it drains`
  },
]

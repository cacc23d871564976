// The settings of a worker, and the rules across them.
import { milliseconds } from '@bullpen/contract'
import { contradictionIn, QUEUE_NAME } from '@bullpen/contract/internal'
import { z } from 'zod'
import { LOG_SETTINGS } from './log-settings.ts'
import { REDIS_SETTINGS } from './redis-settings.ts'
import { durationOr, durationOrNone, wholeNumber, wholeNumberOr } from './setting-types.ts'
import type { PartialSettings, SettingsOf, SettingsRule, SettingsTable } from './settings.ts'

/** `cpu=4,files=20`, or an object of the same. Text of another form stays text, which the record refuses. */
const poolsSchema = z.preprocess(
  (given) => (typeof given === 'string' && /^[^=,]+=[^=,]+(,[^=,]+=[^=,]+)*$/.test(given) ? readPools(given) : given),
  z
    .record(z.string().regex(QUEUE_NAME), wholeNumber(0, 10_000).schema)
    .refine((pools) => Object.keys(pools).length > 0)
    .optional(),
)

/** A queue that is named twice keeps both values, joined, which is no whole number. */
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
    expected: 'each queue once with its concurrency, a whole number from 0 to 10000, such as cpu=4,files=20',
    help: 'The queues that this worker works, and how many tasks of each run at once: cpu=4,files=20. 0 means twice the number of CPU cores. Unset: every queue of the catalogue, with 0.',
  },
  taskTimeout: {
    env: 'BULLPEN_WORKER_TASK_TIMEOUT',
    ...durationOrNone('5m'),
    help: 'The run timeout of long tasks whose definition has none.',
  },
  heartbeatTimeout: {
    env: 'BULLPEN_WORKER_HEARTBEAT_TIMEOUT',
    ...durationOrNone('none'),
    help: 'The longest time between two heartbeats of long tasks whose definition has no heartbeat timeout.',
  },
  queueTimeout: {
    env: 'BULLPEN_WORKER_QUEUE_TIMEOUT',
    ...durationOrNone('none'),
    help: 'How long a long task whose definition has no queue timeout may wait for its first attempt; checked when it is fetched.',
  },
  totalTimeout: {
    env: 'BULLPEN_WORKER_TOTAL_TIMEOUT',
    ...durationOrNone('none'),
    help: 'How long all attempts of a long task whose definition has no total timeout may take, from its enqueueing.',
  },
  maxStuckHandlers: {
    env: 'BULLPEN_WORKER_MAX_STUCK_HANDLERS',
    ...wholeNumberOr(10, 0, 10_000),
    help: 'How many stuck handlers a pool tolerates: handlers that still run after their attempt has ended. With more, the pool fetches no tasks and is not ready.',
  },
  maxChildBytes: {
    env: 'BULLPEN_WORKER_MAX_CHILD_BYTES',
    ...wholeNumberOr(262_144, 1_024, 16_777_216),
    help: 'The largest task that a handler may enqueue, in bytes as stored in Redis.',
  },
  grace: {
    env: 'BULLPEN_WORKER_GRACE',
    ...durationOr('5s'),
    help: 'How long a signalled task may take to end, after its timeout or at the deadline of a drain.',
  },
  drainTimeout: {
    env: 'BULLPEN_WORKER_DRAIN_TIMEOUT',
    ...durationOr('20s'),
    help: 'How long running tasks may continue after SIGTERM before they are signalled.',
  },
  terminationGrace: {
    env: 'BULLPEN_WORKER_TERMINATION_GRACE',
    ...durationOr('30s'),
    help: 'How long the platform waits after SIGTERM before it kills the process; in Kubernetes terminationGracePeriodSeconds.',
  },
  completedRetention: {
    env: 'BULLPEN_WORKER_COMPLETED_RETENTION',
    ...durationOr('24h'),
    help: 'How long a completed task is kept.',
  },
  maxOutputBytes: {
    env: 'BULLPEN_WORKER_MAX_OUTPUT_BYTES',
    ...wholeNumberOr(262_144, 1_024, 16_777_216),
    help: 'The largest output of a task, in bytes as JSON. A larger output is a panic with the reason invalid_output.',
  },
  eventLoopStallWarning: {
    env: 'BULLPEN_WORKER_EVENT_LOOP_STALL_WARNING',
    ...durationOrNone('1s', '500ms'),
    help: 'How long the event loop may be blocked before the log names the task that blocks it.',
  },
  eventLoopStallLimit: {
    env: 'BULLPEN_WORKER_EVENT_LOOP_STALL_LIMIT',
    ...durationOrNone('30s', '1s'),
    help: 'How long the event loop may be blocked before other workers take over its tasks.',
  },
  host: {
    env: 'BULLPEN_WORKER_HOST',
    schema: z.string().min(1).default('127.0.0.1'),
    expected: 'a host name or an IP address',
    help: 'The address that probes and metrics listen on; 0.0.0.0 in a container.',
  },
  port: {
    env: 'BULLPEN_WORKER_PORT',
    ...wholeNumberOr(9465, 0, 65_535),
    help: 'The port that probes and metrics listen on. 0 takes a free one; so does a default that is taken.',
  },
} as const satisfies SettingsTable

export type WorkerSettings = SettingsOf<typeof WORKER_SETTINGS>
/** What a program passes: every setting may be left out. */
export type WorkerConfig = PartialSettings<typeof WORKER_SETTINGS>

/** How long resources and connections may take to close after the tasks have ended. */
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
      : `drainTimeout (BULLPEN_WORKER_DRAIN_TIMEOUT, ${drainTimeout}), grace (BULLPEN_WORKER_GRACE, ${grace}) and ${CLOSING_MS / 1_000}s for closing do not fit in terminationGrace (BULLPEN_WORKER_TERMINATION_GRACE, ${terminationGrace}); the platform would kill the worker while it drains`
  },
]

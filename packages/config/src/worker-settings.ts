// The settings of a worker, and the rules across them.
import { milliseconds } from '@bullpen/contract'
import { contradictionIn, DRAIN_MODES, QUEUE_NAME, readGroupId } from '@bullpen/contract/internal'
import { z } from 'zod'
import { LOG_SETTINGS } from './log-settings.ts'
import { POOL_SETTINGS, settingsOfPool } from './pool-settings.ts'
import { REDIS_RULES, REDIS_SETTINGS } from './redis-settings.ts'
import { durationOr, durationOrNone, listeningHost, wholeNumber, wholeNumberOr } from './setting-types.ts'
import type { PartialSettings, SettingsOf, SettingsRule, SettingsTable } from './settings.ts'

/**
 * Accepts `cpu=4,files=20` or the equivalent object. Any other string is passed on unchanged, and the record schema rejects it.
 */
const poolsSchema = z.preprocess(
  (given) => (typeof given === 'string' && /^[^=,]+=[^=,]+(,[^=,]+=[^=,]+)*$/.test(given) ? readPools(given) : given),
  z
    .record(z.string().regex(QUEUE_NAME), wholeNumber(0, 10_000).schema)
    .refine((pools) => Object.keys(pools).length > 0)
    .optional(),
)

/**
 * Splits `cpu=4,files=20` into queues and sizes. If a queue is named twice, its two values are joined into one string, which is
 * rejected because it is not a whole number.
 */
function readPools(text: string): Record<string, string> {
  const pools: Record<string, string> = {}
  for (const [queue = '', size = ''] of text.split(',').map((pool) => pool.split('=').map((part) => part.trim()))) {
    pools[queue] = Object.hasOwn(pools, queue) ? `${pools[queue]} and ${size}` : size
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
    help: 'The queues that this worker processes, each with the number of tasks to run at once, such as cpu=4,files=20. The number 0 stands for twice the number of CPU cores. If unset, the worker processes every queue in the catalogue, as if each were set to 0.',
  },
  ...POOL_SETTINGS,
  group: {
    env: 'BULLPEN_WORKER_GROUP',
    schema: z
      .string()
      .refine((id) => readGroupId(id) !== undefined)
      .optional(),
    expected: "a group's id, such as group-01jd3v7n8q0000000000000000",
    help: 'The only group whose tasks this worker runs. The worker takes no other tasks, and exits when the group has ended. If unset, the worker runs all tasks of its queues until it is stopped.',
  },
  taskTimeout: {
    env: 'BULLPEN_WORKER_TASK_TIMEOUT',
    ...durationOrNone('5m'),
    help: 'The run timeout for long tasks whose definition does not set one.',
  },
  heartbeatTimeout: {
    env: 'BULLPEN_WORKER_HEARTBEAT_TIMEOUT',
    ...durationOrNone('none'),
    help: 'The heartbeat timeout for long tasks whose definition does not set one: the longest time allowed between two heartbeats.',
  },
  queueTimeout: {
    env: 'BULLPEN_WORKER_QUEUE_TIMEOUT',
    ...durationOrNone('none'),
    help: 'The queue timeout for long tasks whose definition does not set one: how long a task may wait for its first attempt. The timeout is checked when a worker fetches the task.',
  },
  totalTimeout: {
    env: 'BULLPEN_WORKER_TOTAL_TIMEOUT',
    ...durationOrNone('none'),
    help: 'The total timeout for long tasks whose definition does not set one: how long a task may take from enqueueing to the end of its last attempt.',
  },
  maxStuckHandlers: {
    env: 'BULLPEN_WORKER_MAX_STUCK_HANDLERS',
    ...wholeNumberOr(10, 0, 10_000),
    help: 'How many stuck handlers a pool tolerates. A stuck handler is one that is still running after its attempt has ended. A pool with more stuck handlers than this does not fetch tasks and is not ready.',
  },
  maxDeaths: {
    env: 'BULLPEN_WORKER_MAX_DEATHS',
    ...wholeNumberOr(3, 1, 10),
    help: 'After how many deaths of its process a task is dead with the reason poison. From the first death on, the task runs in quarantine, apart from other tasks. With 1, every task that was running in a dead worker is dead at once.',
  },
  quarantineProcesses: {
    env: 'BULLPEN_WORKER_QUARANTINE_PROCESSES',
    ...wholeNumberOr(8, 0, 8),
    help: "How many quarantined tasks this worker may run in child processes at once. With 0, quarantined tasks run in the worker's own thread, and the worker runs no other tasks at the same time.",
  },
  maxChildBytes: {
    env: 'BULLPEN_WORKER_MAX_CHILD_BYTES',
    ...wholeNumberOr(262_144, 1_024, 16_777_216),
    help: 'The maximum size of a task that a handler enqueues, in bytes as stored in Redis.',
  },
  grace: {
    env: 'BULLPEN_WORKER_GRACE',
    ...durationOr('5s'),
    help: "The grace period: how long a task may take to end after it has been signalled, either because its timeout has expired or because a drain's deadline has passed.",
  },
  drainMode: {
    env: 'BULLPEN_WORKER_DRAIN_MODE',
    schema: z.enum(DRAIN_MODES).default('soft_timeout'),
    expected: `one of ${DRAIN_MODES.join(', ')}`,
    help: 'What happens to tasks after SIGTERM. light finishes the tasks that were fetched, and soft those that were started. soft_timeout signals the started tasks that are still running after drainTimeout, and hard signals them at once. With light and soft, a drain has no deadline of its own: set terminationGrace, and what your platform allows, to the longest time that a task may take.',
  },
  drainTimeout: {
    env: 'BULLPEN_WORKER_DRAIN_TIMEOUT',
    ...durationOr('20s'),
    help: 'How long running tasks may continue after SIGTERM before they are signalled, if drainMode is soft_timeout.',
  },
  terminationGrace: {
    env: 'BULLPEN_WORKER_TERMINATION_GRACE',
    ...durationOr('30s'),
    help: 'How long the platform waits after SIGTERM before it kills the process. On Kubernetes, set this to the value of terminationGracePeriodSeconds.',
  },
  completedRetention: {
    env: 'BULLPEN_WORKER_COMPLETED_RETENTION',
    ...durationOr('24h'),
    help: 'How long a completed task is kept in Redis, unless the definition of its queue says otherwise.',
  },
  deadRetention: {
    env: 'BULLPEN_WORKER_DEAD_RETENTION',
    ...durationOrNone('30d'),
    help: 'How long a dead task is kept in Redis, unless the definition of its queue says otherwise.',
  },
  cancelledRetention: {
    env: 'BULLPEN_WORKER_CANCELLED_RETENTION',
    ...durationOrNone('7d'),
    help: 'How long a cancelled task is kept in Redis, unless the definition of its queue says otherwise.',
  },
  expiredRetention: {
    env: 'BULLPEN_WORKER_EXPIRED_RETENTION',
    ...durationOrNone('7d'),
    help: 'How long an expired task is kept in Redis, unless the definition of its queue says otherwise.',
  },
  maxOutputBytes: {
    env: 'BULLPEN_WORKER_MAX_OUTPUT_BYTES',
    ...wholeNumberOr(262_144, 1_024, 16_777_216),
    help: "The maximum size of a task's output, in bytes as JSON. A larger output counts as a panic with the reason invalid_output.",
  },
  logSummaryInterval: {
    env: 'BULLPEN_WORKER_LOG_SUMMARY_INTERVAL',
    ...durationOrNone('1m', '1s'),
    help: 'How often a log line summarises the attempts of each short task, whose own lines are at level debug. With none, no summaries are written.',
  },
  eventLoopStallWarning: {
    env: 'BULLPEN_WORKER_EVENT_LOOP_STALL_WARNING',
    ...durationOrNone('1s', '500ms'),
    help: 'How long the event loop may be blocked before a log line names the task that is blocking it.',
  },
  eventLoopStallLimit: {
    env: 'BULLPEN_WORKER_EVENT_LOOP_STALL_LIMIT',
    ...durationOrNone('30s', '1s'),
    help: 'How long the event loop may be blocked before other workers take over the tasks of this worker.',
  },
  host: {
    env: 'BULLPEN_WORKER_HOST',
    ...listeningHost,
    help: 'The address on which probes and metrics are served. Use 0.0.0.0 in a container.',
  },
  port: {
    env: 'BULLPEN_WORKER_PORT',
    ...wholeNumberOr(9465, 0, 65_535),
    help: 'The port on which probes and metrics are served. Use 0 to pick any free port. If the default port is already in use, the worker also picks a free port.',
  },
} as const satisfies SettingsTable

export type WorkerSettings = SettingsOf<typeof WORKER_SETTINGS>
/** The settings as a program passes them. Each setting is optional. */
export type WorkerConfig = PartialSettings<typeof WORKER_SETTINGS>

/** How long resources and connections may take to close once all tasks have ended. */
export const CLOSING_MS = 2_000

type Limits = Pick<
  WorkerSettings,
  | 'taskTimeout'
  | 'heartbeatTimeout'
  | 'queueTimeout'
  | 'totalTimeout'
  | 'drainMode'
  | 'drainTimeout'
  | 'grace'
  | 'terminationGrace'
>

function contradictoryTimeouts({ taskTimeout, heartbeatTimeout, queueTimeout, totalTimeout }: Limits) {
  const ms = (limit: string): number | 'none' => (limit === 'none' ? limit : milliseconds(limit))
  return contradictionIn({
    timeoutMs: ms(taskTimeout),
    heartbeatMs: ms(heartbeatTimeout),
    queueMs: ms(queueTimeout),
    totalMs: ms(totalTimeout),
  })?.replace(/^timeout|(?<= )timeout/g, 'taskTimeout')
}

function drainTooLong({ drainMode, drainTimeout, grace, terminationGrace }: Limits): string | undefined {
  // A drain without a deadline may take any time.
  if (drainMode === 'light' || drainMode === 'soft') return undefined
  const waitMs = drainMode === 'hard' ? 0 : milliseconds(drainTimeout)
  if (waitMs + milliseconds(grace) + CLOSING_MS <= milliseconds(terminationGrace)) return undefined
  const wait = drainMode === 'hard' ? '' : `drainTimeout (BULLPEN_WORKER_DRAIN_TIMEOUT, ${drainTimeout}), `
  return `${wait}grace (BULLPEN_WORKER_GRACE, ${grace}) and ${CLOSING_MS / 1_000}s for closing do not fit in terminationGrace (BULLPEN_WORKER_TERMINATION_GRACE, ${terminationGrace}); the platform would kill the worker while it drains`
}

/** Applies a rule to the worker, and to each pool with settings of its own. */
function forPools(rule: (limits: Limits) => string | undefined): SettingsRule<typeof WORKER_SETTINGS> {
  return (settings) => {
    const fault = rule(settings)
    if (fault !== undefined) return fault
    for (const queue of Object.keys(settings.poolSettings ?? {})) {
      const ofPool = rule(settingsOfPool(settings, queue))
      if (ofPool !== undefined) return `poolSettings (BULLPEN_WORKER_POOL_SETTINGS) of '${queue}': ${ofPool}`
    }
    return undefined
  }
}

export const WORKER_RULES = [...REDIS_RULES, forPools(contradictoryTimeouts), forPools(drainTooLong)] as const

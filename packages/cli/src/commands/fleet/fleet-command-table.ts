// Defines the commands that show and control the fleet.
import type { Command } from '../command-table.ts'

const TARGET_OPTIONS = {
  queue: {
    value: 'QUEUE',
    help: "all of this queue's workers, including those that start later; with --worker, a single pool",
  },
} as const
const TARGET = [
  "Use --queue to target a queue's whole fleet, --worker to target all of a worker's pools, or both to target a single pool.",
]
const WORKER = 'worker-7d9f:12:a3f84945'

export const FLEET_COMMANDS = {
  fleet: {
    usage: '',
    summary: 'Show queues, workers and their pools',
    description: [
      'Show the queues, and every worker with its pools. Each pool is shown with its state, its busy slots and anything',
      "unusual. With --slots, also show each slot's name, state, time in that state, and task. A worker that has stopped",
      'sending heartbeats remains visible for a minute.',
    ],
    arguments: { min: 0, max: 0 },
    options: ['queue', 'slots'],
    optionHelp: { queue: { value: 'QUEUE', help: 'show only this queue and its workers' } },
    examples: ['bullpen fleet --slots', 'bullpen fleet --queue cpu --json'],
  },
  queues: {
    usage: '',
    summary: 'Show how many tasks each queue has, and how fast they enter and leave',
    description: [
      'Show each queue with its tasks by status, how long ago the waiting task that starts next was enqueued (oldest), how many tasks',
      'are enqueued and end per second (in/s and out/s, measured over 1s to 1m), its busy slots, and its state and limits. A second',
      "table shows the three most frequent kinds of error among each queue's dead tasks; 'bullpen dead counts' shows all kinds.",
      'Completed, cancelled and expired tasks are counted only with --json.',
    ],
    arguments: { min: 0, max: 0 },
    options: ['queue'],
    optionHelp: { queue: { value: 'QUEUE', help: 'show only this queue' } },
    examples: ['bullpen queues', 'bullpen queues --queue cpu --json'],
  },
  pause: {
    usage: '[--queue QUEUE] [--worker WORKER]',
    summary: 'Pause a queue, a worker or a pool',
    description: ['Keep tasks from starting. Running tasks continue, and new tasks wait in the queue.', ...TARGET],
    arguments: { min: 0, max: 0 },
    options: ['queue', 'worker', 'by'],
    optionHelp: TARGET_OPTIONS,
    examples: ['bullpen pause --queue cpu', 'bullpen pause --queue cpu --worker worker-7d9f'],
  },
  resume: {
    usage: '[--queue QUEUE] [--worker WORKER]',
    summary: 'Resume a queue, a worker or a pool that was paused or drained',
    description: [
      'End a pause, or a drain that was started by a command. The queue then accepts and starts tasks again.',
      ...TARGET,
    ],
    arguments: { min: 0, max: 0 },
    options: ['queue', 'worker', 'by'],
    optionHelp: TARGET_OPTIONS,
    examples: ['bullpen resume --queue cpu'],
  },
  drain: {
    usage: '[--queue QUEUE] [--worker WORKER]',
    summary: 'Drain a queue, a worker or a pool',
    description: [
      'Stop pools gracefully.',
      ...TARGET,
      "While a queue's whole fleet is draining, and until it is resumed, the API rejects new tasks for that queue.",
      '',
      'MODE is one of:',
      "  light         finish all fetched tasks and, if the target is a queue's whole fleet, all waiting and scheduled tasks",
      '  soft          finish the tasks that have started, and return the others to the queue',
      '  soft_timeout  like soft until the timeout expires, then signal the tasks that are still running and return them to the queue',
      '  hard          signal the tasks that have started at once, and return them to the queue',
      '',
      'With --wait, wait until the pools have stopped before returning. With --dry-run, do not drain; only check whether the',
      'running tasks are likely to finish within the timeout. The exit code is then 0 if no task would be interrupted, and',
      '1 if some might be.',
    ],
    arguments: { min: 0, max: 0 },
    options: ['queue', 'worker', 'mode', 'timeout', 'wait', 'dry-run', 'by'],
    optionHelp: {
      ...TARGET_OPTIONS,
      timeout: {
        value: 'DURATION',
        help: "the timeout of the mode soft_timeout (default: each worker's drain timeout)",
      },
      wait: { value: 'DURATION', help: 'wait up to this long for the pools to end' },
      'dry-run': { help: 'show which running tasks would be interrupted, and do not drain anything' },
    },
    examples: [
      'bullpen drain --queue cpu --wait 2m',
      'bullpen drain --worker worker-7d9f --dry-run',
      'bullpen drain --queue cpu --mode soft_timeout --timeout 30s',
    ],
  },
  stop: {
    usage: 'WORKER/QUEUE/SLOT',
    summary: 'Stop a slot',
    description: [
      'Stop a slot after its task has ended. The pool continues with one slot fewer. Specify the slot by the name that',
      "'bullpen fleet --slots' prints. You can shorten the worker's name to a unique prefix.",
    ],
    arguments: { min: 1, max: 1 },
    options: ['hard', 'by'],
    examples: [`bullpen stop ${WORKER}/cpu/3`, 'bullpen stop worker-7d9f/cpu/3 --hard'],
  },
  resize: {
    usage: '--queue QUEUE --concurrency N',
    summary: 'Change how many tasks a pool runs at once',
    description: [
      'Change the number of slots in all pools of a queue or, with --worker, in the pool of one worker. The change lasts until',
      'the worker exits.',
    ],
    arguments: { min: 0, max: 0 },
    options: ['queue', 'worker', 'concurrency', 'by'],
    examples: ['bullpen resize --queue cpu --worker worker-7d9f --concurrency 8'],
  },
  limit: {
    usage: '[--queue QUEUE] [--api-key-name NAME]',
    summary: 'Limit the concurrency, the rate, the length, the bytes or the age of a queue, or the rate of an API key',
    description: [
      'Limit how many tasks of a queue run at once, how many are started per period, how many may wait and for how long, and how',
      "much memory they take in Redis. Each limit is shared by all of the queue's workers and producers. A limit that you",
      "do not specify stays unchanged. Use 'none' to remove a limit. For --max-tasks, --max-bytes and --max-age, 'none'",
      "restores the limit in the queue's definition.",
      '',
      'With --api-key-name, limit how many tasks an API key enqueues per period across all API processes: into the queue or,',
      "without --queue, into all queues together. With --queue, you can also limit how many of the API key's tasks may be in the",
      "queue until they end. Use 'none' to restore the limit in the queue's definition or in the API's setting keyLimits.",
    ],
    arguments: { min: 0, max: 0 },
    options: [
      'queue',
      'concurrency',
      'rate',
      'max-tasks',
      'max-bytes',
      'max-age',
      'api-key-name',
      'enqueue-rate',
      'max-unfinished-tasks',
      'by',
    ],
    optionHelp: {
      concurrency: { value: 'N', help: "how many tasks run at once across all workers, from 1 to 10000, or 'none'" },
    },
    examples: [
      'bullpen limit --queue cpu --concurrency 20 --rate 100/1s',
      'bullpen limit --queue cpu --rate none',
      'bullpen limit --queue cpu --max-bytes 64MiB --max-age 10m',
      'bullpen limit --api-key-name shop --enqueue-rate 500/1s',
    ],
  },
  audit: {
    usage: '[ID]',
    summary: 'Show the commands that were sent to the fleet',
    description: [
      "List commands, newest first, with each one's time, outcome, command, sender and id. With ID, show that command and each",
      "worker's response. With --wait, wait until every worker has responded before showing anything. To see who has retried or",
      "deleted dead tasks, use 'bullpen dead requests'.",
    ],
    arguments: { min: 0, max: 1 },
    options: ['limit', 'wait'],
    optionHelp: {
      limit: { value: 'N', help: 'show at most N commands, up to 200 (default: 50)' },
      wait: { value: 'DURATION', help: 'with ID, wait up to this long for every worker to respond (at most 30s)' },
    },
    examples: ['bullpen audit --limit 10', 'bullpen audit 5d0f4c2a9be1f07733c1a2e4 --wait 30s'],
  },
} as const satisfies Readonly<Record<string, Command>>

// The commands that show and control the fleet.
import type { Command } from './command-table.ts'

const TARGET_OPTIONS = {
  queue: {
    value: 'QUEUE',
    help: 'all workers of this queue, including ones that start later; with --worker, one pool',
  },
} as const
const TARGET = 'The target is the whole fleet of --queue, all pools of --worker, or with both a single pool.'
const WORKER = 'worker-7d9f:12:a3f84945'

export const FLEET_COMMANDS = {
  fleet: {
    usage: '',
    summary: 'Show queues, workers and their pools',
    description: [
      'Show the queues, and every worker with its pools: state, busy slots, and anything unusual.',
      'With --slots, also every slot: name, state, time in that state, task. A worker that stopped sending heartbeats',
      'is shown for a minute.',
    ],
    arguments: { min: 0, max: 0 },
    options: ['queue', 'slots'],
    optionHelp: { queue: { value: 'QUEUE', help: 'only this queue and its workers' } },
    examples: ['bullpen fleet --slots', 'bullpen fleet --queue cpu --json'],
  },
  pause: {
    usage: '[--queue QUEUE] [--worker WORKER]',
    summary: 'Pause a queue, a worker or a pool',
    description: ['Start no more tasks. Running tasks continue, and new tasks wait.', TARGET],
    arguments: { min: 0, max: 0 },
    options: ['queue', 'worker', 'by'],
    optionHelp: TARGET_OPTIONS,
    examples: ['bullpen pause --queue cpu', 'bullpen pause --queue cpu --worker worker-7d9f'],
  },
  resume: {
    usage: '[--queue QUEUE] [--worker WORKER]',
    summary: 'Resume a queue, a worker or a pool that was paused or drained',
    description: ['End a pause, or a drain that was started by command: tasks are accepted and started again.', TARGET],
    arguments: { min: 0, max: 0 },
    options: ['queue', 'worker', 'by'],
    optionHelp: TARGET_OPTIONS,
    examples: ['bullpen resume --queue cpu'],
  },
  drain: {
    usage: '[--queue QUEUE] [--worker WORKER]',
    summary: 'Drain a queue, a worker or a pool',
    description: [
      `Stop pools in an orderly way. ${TARGET}`,
      'While the whole fleet of a queue drains, and until it is resumed, the API refuses new tasks for that queue.',
      '',
      'MODE is one of:',
      '  light         finish fetched tasks; for the whole fleet of a queue, all waiting and scheduled ones too',
      '  soft          finish started tasks, return the others to the queue',
      '  soft_timeout  as soft until the timeout; then signal what still runs and return it to the queue',
      '  hard          signal started tasks at once and return them to the queue',
      '',
      'With --wait, return when the pools have ended. With --dry-run, compare the running tasks with the timeout: exit code',
      '0 means that none would be interrupted, 1 that some might be.',
    ],
    arguments: { min: 0, max: 0 },
    options: ['queue', 'worker', 'mode', 'timeout', 'wait', 'dry-run', 'by'],
    optionHelp: {
      ...TARGET_OPTIONS,
      timeout: { value: 'DURATION', help: "timeout of mode soft_timeout (default: each worker's drain timeout)" },
      wait: { value: 'DURATION', help: 'wait up to this long for the pools to end' },
      'dry-run': { help: 'show which running tasks would be interrupted, and drain nothing' },
    },
    examples: [
      'bullpen drain --queue cpu --wait 2m',
      'bullpen drain --worker worker-7d9f --dry-run',
      'bullpen drain --queue cpu --mode soft_timeout --timeout 30s',
    ],
  },
  stop: {
    usage: 'WORKER/QUEUE/SLOT',
    summary: 'Stop one slot',
    description: [
      'Stop one slot once its task has ended; its pool continues with one slot less. The name is the one that',
      "'bullpen fleet --slots' prints; a unique prefix of the worker's name is enough.",
    ],
    arguments: { min: 1, max: 1 },
    options: ['hard', 'by'],
    examples: [`bullpen stop ${WORKER}/cpu/3`, 'bullpen stop worker-7d9f/cpu/3 --hard'],
  },
  resize: {
    usage: '--queue QUEUE --concurrency N',
    summary: 'Change how many tasks a pool runs at once',
    description: [
      'Change the number of slots of every pool of a queue, or of one worker. The change lasts until the worker exits.',
    ],
    arguments: { min: 0, max: 0 },
    options: ['queue', 'worker', 'concurrency', 'by'],
    examples: ['bullpen resize --queue cpu --worker worker-7d9f --concurrency 8'],
  },
  limit: {
    usage: '--queue QUEUE',
    summary: 'Limit the concurrency or the rate of a queue across all workers',
    description: [
      'Limit how many tasks of a queue all workers together run at once, how many they start per time, or both.',
      "A limit that is not given stays as it is; 'none' removes it.",
    ],
    arguments: { min: 0, max: 0 },
    options: ['queue', 'concurrency', 'rate', 'by'],
    optionHelp: { concurrency: { value: 'N', help: "tasks at once across all workers, or 'none'" } },
    examples: ['bullpen limit --queue cpu --concurrency 20 --rate 100/1s', 'bullpen limit --queue cpu --rate none'],
  },
  audit: {
    usage: '[ID]',
    summary: 'Show the commands that were given to the fleet',
    description: [
      'Show the newest commands first: time, outcome, command, who gave it, id. With an ID, show that command and the',
      'answer of every worker; with --wait, once all workers have answered.',
    ],
    arguments: { min: 0, max: 1 },
    options: ['limit', 'wait'],
    optionHelp: {
      limit: { value: 'N', help: 'show at most N commands, up to 200 (default: 50)' },
      wait: { value: 'DURATION', help: 'with an ID, wait up to this long for all answers, at most 30s' },
    },
    examples: ['bullpen audit --limit 10', 'bullpen audit 5d0f4c2a9be1f07733c1a2e4 --wait 30s'],
  },
} as const satisfies Readonly<Record<string, Command>>

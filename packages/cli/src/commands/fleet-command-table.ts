// The commands for the fleet: what each takes, and what its help says.
import type { Command } from './command-table.ts'

const TARGET = [
  "--queue alone is the queue's whole fleet, --worker alone all pools of a worker, both the one pool.",
] as const
const POOL = { queue: { value: 'QUEUE', help: 'its whole fleet, also what starts later; with --worker its pool' } }
const PROCESS = 'worker-7d9f:12:a3f84945'

export const FLEET_COMMANDS = {
  fleet: {
    usage: '',
    summary: 'shows queues, workers and their pools',
    about: [
      'Shows the queues, and every worker with its pools: state, how many of its slots are busy, what is odd.',
      'With --slots each slot: its name, state, since when, task. A worker that is silent is shown for a minute.',
    ],
    takes: [0, 0],
    options: ['queue', 'slots'],
    says: { queue: { value: 'QUEUE', help: 'this queue alone, and those who work it' } },
    examples: ['bullpen fleet --slots', 'bullpen fleet --queue cpu --json'],
  },
  pause: {
    usage: '[--queue QUEUE] [--worker WORKER]',
    summary: 'starts nothing more on a queue, in a worker or a pool',
    about: ['Starts nothing more; what runs goes on, and new tasks wait.', ...TARGET],
    takes: [0, 0],
    options: ['queue', 'worker'],
    says: POOL,
    examples: ['bullpen pause --queue cpu', 'bullpen pause --queue cpu --worker worker-7d9f'],
  },
  resume: {
    usage: '[--queue QUEUE] [--worker WORKER]',
    summary: 'ends a pause, or a drain by command',
    about: ['Ends a pause, and a drain by command: tasks are taken again.', ...TARGET],
    takes: [0, 0],
    options: ['queue', 'worker'],
    says: POOL,
    examples: ['bullpen resume --queue cpu'],
  },
  drain: {
    usage: '[--queue QUEUE] [--worker WORKER]',
    summary: 'ends the pools of a queue, a worker, or one pool',
    about: [
      ...TARGET,
      "Of a queue's whole fleet, new tasks are refused until it is resumed. The MODE says what becomes of tasks:",
      "  light         finish what was taken; of a queue's fleet, all that waits or is due",
      '  soft          finish what was started',
      '  soft_timeout  the same until the timeout; then signal, and hand back what has not ended',
      '  hard          signal at once',
      'With --wait it is done when the pools have ended. With --dry-run nothing is commanded: the tasks that run now',
      'are held against the timeout; the exit code is 0 when none would be signalled, and 1 when some may be.',
    ],
    takes: [0, 0],
    options: ['queue', 'worker', 'mode', 'timeout', 'wait', 'dry-run'],
    says: {
      ...POOL,
      timeout: { value: 'DURATION', help: "of soft_timeout, instead of each worker's own" },
      wait: { value: 'DURATION', help: 'wait for the pools to end, at most so long' },
    },
    examples: [
      'bullpen drain --queue cpu --wait 2m',
      'bullpen drain --worker worker-7d9f --dry-run',
      'bullpen drain --queue cpu --mode soft_timeout --timeout 30s',
    ],
  },
  stop: {
    usage: 'WORKER/QUEUE/SLOT',
    summary: 'ends one slot',
    about: [
      'Ends one slot after its task; its pool goes on with one less. A slot is WORKER/QUEUE/SLOT, as',
      "'bullpen fleet --slots' shows it; WORKER may be the beginning of its name.",
    ],
    takes: [1, 1],
    options: ['hard'],
    examples: [`bullpen stop ${PROCESS}/cpu/3`, 'bullpen stop worker-7d9f/cpu/3 --hard'],
  },
  resize: {
    usage: '--queue QUEUE --concurrency N',
    summary: 'changes how many tasks a pool runs at once',
    about: [
      "Changes how many tasks each pool of a queue runs at once, or a worker's pool alone, until its worker ends.",
    ],
    takes: [0, 0],
    options: ['queue', 'worker', 'concurrency'],
    examples: ['bullpen resize --queue cpu --worker worker-7d9f --concurrency 8'],
  },
  limit: {
    usage: '--queue QUEUE',
    summary: "limits a queue's whole fleet",
    about: [
      'Limits what all workers together run of a queue: how many tasks at once, how many starts in a time, or both.',
      'What is not said stays as it is; none is no limit.',
    ],
    takes: [0, 0],
    options: ['queue', 'concurrency', 'rate'],
    says: { concurrency: { value: 'N', help: 'tasks at once, over all workers; or none' } },
    examples: ['bullpen limit --queue cpu --concurrency 20 --rate 100/1s', 'bullpen limit --queue cpu --rate none'],
  },
  commands: {
    usage: '[ID]',
    summary: 'shows the newest commands to the fleet, or one',
    about: [
      'Shows the newest commands first: when, outcome, what, by whom, id. With an ID what each worker made of it,',
      'and with --wait once all have answered.',
    ],
    takes: [0, 1],
    options: ['limit', 'wait'],
    says: {
      limit: { value: 'N', help: 'commands at most, up to 200; default 50' },
      wait: { value: 'DURATION', help: 'with an ID: wait for the answers, at most 30s' },
    },
    examples: ['bullpen commands --limit 10', 'bullpen commands 5d0f4c2a9be1f07733c1a2e4 --wait 30s'],
  },
} as const satisfies Readonly<Record<string, Command>>

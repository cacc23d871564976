// Defines the commands with their arguments, options and help texts. The parser and the help are both derived from it.
import { DEAD_FILTER_OPTIONS } from '../arguments/dead-filter.ts'
import { ATTEMPT_OPTIONS, type OptionHelp, type OptionName } from '../arguments/options.ts'
import { FLEET_COMMANDS } from './fleet/fleet-command-table.ts'
import { GROUPS_COMMAND } from './groups/groups-usage.ts'
import { RUNS_COMMAND } from './runs/runs-usage.ts'
import { SCHEDULES_COMMAND } from './schedules/schedules-usage.ts'

export interface Command {
  /** The part of the usage line that follows the command's name. */
  readonly usage: string
  /** The description in the list of commands, on a single line. */
  readonly summary: string
  readonly description: readonly string[]
  /** How many arguments the command accepts, not counting options. Without it, the command accepts none. */
  readonly arguments?: { readonly min: number; readonly max: number }
  readonly options: readonly OptionName[]
  /** Help texts that replace the general ones, for options that have a narrower meaning in this command. */
  readonly optionHelp?: Readonly<Partial<Record<OptionName, OptionHelp>>>
  readonly examples: readonly string[]
}

const DURATIONS = "A DURATION is a number followed by ms, s, m, h or d, such as 30s. A LIMIT is a duration or 'none'."
const ID = 'cpu-01jd3v7n8q0000000000000000'

export const COMMANDS = {
  enqueue: {
    usage: 'TASK [INPUT | -] | [TASK] --bulk FILE',
    summary: 'Enqueue a task, or many tasks from a file',
    description: [
      'Enqueue a task, and print its id once the task is stored. INPUT is JSON and defaults to {}. Use - to read INPUT from',
      'standard input. With --wait, also wait for the task to end, and then print the task. Timeouts apply only to long',
      'tasks.',
      DURATIONS,
      '',
      'With --bulk, enqueue one task for each line of FILE. Without TASK, each line is a JSON object with the fields of',
      'POST /v1/tasks, such as {"task":"math.factorial","input":{"n":50}}. With TASK, each line is the input of a task. The',
      'options apply to every task, unless a line has its own. Lines that are rejected are reported with their numbers, and',
      'the others are enqueued. If the API responds with 429 or 503, or cannot be reached, the command waits and sends the',
      'tasks again. With --idempotency-key, you can repeat the command with the same file, even after you have corrected',
      'rejected lines or added lines at the end. As long as the API remembers the key, no line is enqueued twice.',
    ],
    arguments: { min: 0, max: 2 },
    options: [
      'bulk',
      'retry-for',
      'meta',
      'tag',
      'on-success',
      'on-failure',
      'on-end',
      'delay',
      'run-at',
      'priority',
      'concurrency-key',
      'unique-key',
      'unique-until',
      'on-conflict',
      'idempotency-key',
      'when-full',
      'durability',
      ...ATTEMPT_OPTIONS,
      'wait',
    ],
    examples: [
      `bullpen enqueue math.factorial '{"n":50}' --wait 10s`,
      'bullpen enqueue receipt.send - --delay 30s --meta order=A-1 --tag batch:7 <receipt.json',
      'bullpen enqueue receipt.send --bulk - --tag batch:7 --idempotency-key import-7 <receipts.ndjson',
    ],
  },
  show: {
    usage: 'ID',
    summary: 'Show a task and its attempts',
    description: [
      'Show a task. With --wait, first wait until the task ends or the time runs out. Each attempt is shown on one',
      'line with its fencing token, outcome, error code, message, duration, worker and, if it was cancelled, the user who',
      'cancelled it.',
    ],
    arguments: { min: 1, max: 1 },
    options: ['wait'],
    examples: [`bullpen show ${ID}`, `bullpen show ${ID} --wait 1m --json`],
  },
  watch: {
    usage: 'ID | --group ID | --queue QUEUE | --tag TAG',
    summary: 'Print what happens to a task, or to the tasks of a group, of a queue or with a tag',
    description: [
      'Print the events of a task until it has ended: enqueued, started, progress, log lines, retries and the end. Exit code 0 means',
      'that the task has completed, and 1 that it has ended otherwise. With --group, do the same for all members of a group. With',
      '--queue or --tag, print the events of all tasks of a queue or with a tag, until the command is interrupted. With --json, each',
      'event is one line of JSON. If the connection is lost, the command connects again and continues after the last event. Short tasks',
      'have no events unless their definition asks for them.',
    ],
    arguments: { min: 0, max: 1 },
    options: ['group', 'queue', 'tag'],
    optionHelp: {
      group: { value: 'ID', help: 'print the events of this group until it has ended' },
      queue: { value: 'QUEUE', help: 'print the events of this queue' },
      tag: { value: 'TAG', help: 'print the events of tasks that have this tag' },
    },
    examples: [`bullpen watch ${ID}`, 'bullpen watch --queue cpu --json | head -1'],
  },
  list: {
    usage: '--queue QUEUE --status STATUS',
    summary: 'List the tasks of a queue that have a given status',
    description: [
      'List the tasks of a queue that have the given status. Tasks that have ended are listed newest first. Each line shows the',
      'id, the number of attempts, the most relevant time, the name of the task, and the error code.',
      'STATUS is one of scheduled, waiting, active, retrying, completed, dead, cancelled and expired.',
    ],
    options: ['queue', 'status', 'limit', 'all'],
    examples: [
      'bullpen list --queue cpu --status dead --limit 10',
      'bullpen list --queue cpu --status dead --all --json | head -1',
    ],
  },
  cancel: {
    usage: 'ID… | --queue QUEUE',
    summary: 'Cancel tasks by id, or all tasks that match a filter',
    description: [
      'Cancel tasks by id. A task that has not started will never run, and a running task receives an abort signal. With',
      '--wait (at most 30s), exit code 0 means that every task has stopped. Without --wait, exit code 0 means that every',
      'running task was signalled.',
      '',
      "With --queue, cancel all of the queue's tasks that have been enqueued so far and match --task, --tag and --older-than.",
      'The command shows the number of matching tasks and asks for confirmation. Once the command returns, no matching task',
      'will start. With --wait, the command returns when every matching task has ended.',
    ],
    arguments: { min: 0, max: Number.POSITIVE_INFINITY },
    options: ['queue', 'task', 'tag', 'older-than', 'dry-run', 'yes', 'by', 'wait'],
    optionHelp: {
      queue: { value: 'QUEUE', help: 'cancel the tasks of this queue' },
      tag: { value: 'TAG', help: 'include only tasks that have this tag' },
      'dry-run': { help: 'print how many tasks match, and do not cancel them' },
      by: { value: 'NAME', help: 'your name, stored with each task (default: BULLPEN_BY, then your user name)' },
      wait: { value: 'DURATION', help: 'wait up to this long for the tasks to end' },
    },
    examples: [
      `bullpen cancel ${ID} --wait 10s`,
      'bullpen cancel --queue mail --task receipt.send --tag batch:7 --older-than 1h --dry-run',
      'bullpen cancel --queue mail --tag batch:7 --yes',
    ],
  },
  dead: {
    usage:
      'counts | list --queue QUEUE | retry ID… | delete ID… | retry --queue QUEUE | delete --queue QUEUE | requests [ID] | stop ID',
    summary: 'Count, search, retry or delete dead tasks',
    description: [
      'counts: count the dead tasks by kind of error, in all queues or only in --queue. The column newest shows when the last of these',
      'tasks died. In the message, # stands for an e-mail address or a word that contains a digit.',
      '',
      'list: list the dead tasks of a queue that match every option, newest first. Each line shows the id, the fingerprint, when the',
      'task died, the name of the task, and the error.',
      '',
      'retry ID: run a dead task again. The task keeps its id, waits behind the other tasks of its queue, and gets all attempts of',
      'its retry policy again. With --input, it runs with a new input, which must match its contract. With --to-queue, a copy is',
      'enqueued in that queue instead, and the dead task stays dead. Each of the two tasks shows the id of the other. A task whose',
      'compensations were released is retried only with --after-compensation.',
      '',
      'delete ID: delete a dead task.',
      '',
      'retry --queue, delete --queue: retry or delete all dead tasks of the queue that match every option and have died so far,',
      'oldest first, at --rate tasks per second. The command shows the number of matching tasks and asks for confirmation. The',
      'request is carried out in the background; with --wait, the command waits until it is done. Cancelled and expired tasks are',
      'not dead, so they are never changed.',
      '',
      'requests: list the retries and deletes with --queue of the last seven days, newest first, in all queues or only in --queue.',
      'The column tasks shows how many of the matching tasks were changed. With ID, show only that request.',
      '',
      'stop ID: stop a retry or a delete with --queue. ID is the id of the request. Once the command returns, no further task is',
      'changed. Tasks that were already retried or deleted are not reverted. If the request was already done, the exit code is 1.',
    ],
    arguments: { min: 1, max: Number.POSITIVE_INFINITY },
    options: [
      'queue',
      ...DEAD_FILTER_OPTIONS,
      'limit',
      'all',
      'input',
      'to-queue',
      'after-compensation',
      'rate',
      'dry-run',
      'yes',
      'wait',
      'by',
    ],
    optionHelp: {
      queue: { value: 'QUEUE', help: 'the queue; required by list, and to retry or delete by filter' },
      limit: { value: 'N', help: 'show at most N tasks or requests (default: 50)' },
      rate: { value: 'N', help: 'how many tasks to change per second, from 1 to 10000 (default: 500)' },
      'dry-run': { help: 'print how many tasks match, and do not change them' },
      wait: { value: 'DURATION', help: 'wait up to this long until all matching tasks have been changed' },
      tag: { value: 'TAG', help: 'include only tasks that have this tag' },
      'older-than': { value: 'DURATION', help: 'include only tasks that died at least this long ago' },
      by: {
        value: 'NAME',
        help: 'your name, for the audit log and each retried task (default: BULLPEN_BY, then your user name)',
      },
    },
    examples: [
      'bullpen dead counts',
      'bullpen dead list --queue cpu --code http_503 --limit 10',
      `bullpen dead retry ${ID}`,
      `bullpen dead retry ${ID} --input '{"n":50}'`,
      `bullpen dead delete ${ID} --by ann`,
      'bullpen dead retry --queue cpu --fingerprint 0123456789abcdef --rate 2000 --yes --wait 5m',
      'bullpen dead delete --queue cpu --code gone --dry-run',
      'bullpen dead requests --queue cpu',
      `bullpen dead stop ${ID}`,
    ],
  },
  groups: GROUPS_COMMAND,
  runs: RUNS_COMMAND,
  schedules: SCHEDULES_COMMAND,
  ...FLEET_COMMANDS,
  doctor: {
    usage: '[--orphans [--delete] | --bullmq REDIS_URL]',
    summary: 'Find what is wrong with the installation or with plain BullMQ, or orphaned keys in Redis',
    description: [
      'Check the installation through the API, and print what is wrong, why it matters, and what to do: Redis, clocks, configuration,',
      'versions, workers, queues, circuit breakers, outboxes and schedules. Nothing is changed. Exit code 1 means that something was found.',
      '',
      'ERRORS mean that tasks do not run or may be lost. WARNINGS mean that this may happen soon, or that something is unusual.',
      '',
      'With --orphans, the command instead finds keys in Redis, and entries of keys, that belong to nothing, such as the lock of a task',
      'that does not exist. It examines every key of the namespace. A million keys and entries take Redis about 10 s, and the search at',
      'least twice as long, because it leaves half of the time of Redis to others. Each line shows the reason, the key, and for an entry',
      'its name. The last line shows the totals.',
      '',
      'REASONS: no_owner: what the key or entry belongs to does not exist. no_expiry: keys of this kind expire, but this one never',
      'will. wrong_type: keys of this kind have another Redis type. unknown_key: Bullpen does not write such a key. unknown_queue: no',
      'process has registered the queue.',
      '',
      'Without --delete, nothing is changed. With --delete, the command asks for confirmation and deletes the keys and entries that',
      'have no owner. The others are kept. Exit code 1 means that something was found, or with --delete, that something was kept.',
      '',
      'With --bullmq, the command instead checks the queues of plain BullMQ, directly in their Redis and without an API. It finds them by',
      'their keys, whatever their prefix, and reads the counts and at most 360 jobs of each. It never writes to Redis. Exit code 3 means that',
      'Redis refused the user or a command, and 4 that it did not respond.',
    ],
    options: ['orphans', 'delete', 'yes', 'by', 'bullmq', 'prefix', 'queue'],
    optionHelp: { queue: { value: 'QUEUE', help: 'with --bullmq, examine only queues with this name' } },
    examples: [
      'bullpen doctor',
      'bullpen doctor --bullmq redis://127.0.0.1:6379',
      'bullpen doctor --orphans',
      'bullpen doctor --orphans --delete --yes --by ann',
    ],
  },
  help: {
    usage: '[COMMAND]',
    summary: 'Show general help, or the help of a command',
    description: ['Show help for a command, or list all commands.'],
    arguments: { min: 0, max: 1 },
    options: [],
    examples: ['bullpen help enqueue'],
  },
} as const satisfies Readonly<Record<string, Command>>

export type CommandName = keyof typeof COMMANDS

/** Returns the command with its general type instead of the literal types in the table. */
export function commandOf(name: CommandName): Command {
  return COMMANDS[name]
}

export const COMMAND_NAMES = Object.keys(COMMANDS) as readonly CommandName[]

// The table of commands: their arguments, options and help texts. Parsing and help are generated from it.
import type { OptionHelp, OptionName } from '../arguments/options.ts'
import { FLEET_COMMANDS } from './fleet-command-table.ts'

export interface Command {
  /** What follows the command's name in the usage line. */
  readonly usage: string
  /** One line, for the list of commands. */
  readonly summary: string
  readonly description: readonly string[]
  /** How many arguments it accepts, apart from options. */
  readonly arguments: { readonly min: number; readonly max: number }
  readonly options: readonly OptionName[]
  /** Overrides the general help of options that mean something narrower here. */
  readonly optionHelp?: Readonly<Partial<Record<OptionName, OptionHelp>>>
  readonly examples: readonly string[]
}

const DURATIONS = "A DURATION is a number with ms, s, m, h or d, such as 30s. A LIMIT is a duration or 'none'."
const ID = 'cpu-01jd3v7n8q0000000000000000'

export const COMMANDS = {
  enqueue: {
    usage: 'TASK [INPUT | -]',
    summary: 'Enqueue a task',
    description: [
      'Enqueue a task and print its id once it is stored. INPUT is JSON, by default {}; - reads it from standard input.',
      'With --wait, also wait for the task to end and print it. Timeouts apply to long tasks only.',
      DURATIONS,
    ],
    arguments: { min: 1, max: 2 },
    options: ['meta', 'tag', 'delay', 'timeout', 'heartbeat-timeout', 'queue-timeout', 'total-timeout', 'wait'],
    examples: [
      `bullpen enqueue math.factorial '{"n":50}' --wait 10s`,
      'bullpen enqueue receipt.send - --delay 30s --meta order=A-1 --tag batch:7 <receipt.json',
    ],
  },
  show: {
    usage: 'ID',
    summary: 'Show a task and its attempts',
    description: [
      'Show a task; with --wait, once it has ended or the time is up.',
      'Each attempt has a line: fencing token, outcome, error code, message, duration, worker, and who cancelled it.',
    ],
    arguments: { min: 1, max: 1 },
    options: ['wait'],
    examples: [`bullpen show ${ID}`, `bullpen show ${ID} --wait 1m --json`],
  },
  list: {
    usage: '--queue QUEUE --status STATUS',
    summary: 'List the tasks of a queue that have a status',
    description: [
      'List the tasks of a queue that have a status: id, attempts, most relevant time, task, error code.',
      'STATUS is scheduled, waiting, active, retrying, completed, dead, cancelled or expired.',
    ],
    arguments: { min: 0, max: 0 },
    options: ['queue', 'status', 'limit', 'all'],
    examples: [
      'bullpen list --queue cpu --status dead --limit 10',
      'bullpen list --queue cpu --status dead --all --json | head -1',
    ],
  },
  cancel: {
    usage: 'ID… | --queue QUEUE',
    summary: 'Cancel tasks by id, or all that match a filter',
    description: [
      'Cancel tasks by id. A task that has not started never runs; a running one is signalled. With --wait (at most',
      '30s), exit code 0 means that every task has stopped; without it, that every running task was signalled.',
      '',
      'With --queue, cancel all tasks of the queue that were enqueued until now and match --task, --tag and --older-than.',
      'Asks for confirmation with the number of matching tasks. Once it returns, no matching task is started; with --wait,',
      'it returns when all of them have ended.',
    ],
    arguments: { min: 0, max: Number.POSITIVE_INFINITY },
    options: ['queue', 'task', 'tag', 'older-than', 'dry-run', 'yes', 'by', 'wait'],
    optionHelp: {
      queue: { value: 'QUEUE', help: 'cancel the tasks of this queue' },
      tag: { value: 'TAG', help: 'only tasks that have this tag' },
      'dry-run': { help: 'print how many tasks match, and cancel none' },
      by: { value: 'NAME', help: 'your name, stored with each task (default: BULLPEN_BY, then your user name)' },
      wait: { value: 'DURATION', help: 'wait up to this long for the tasks to end' },
    },
    examples: [
      `bullpen cancel ${ID} --wait 10s`,
      'bullpen cancel --queue mail --task receipt.send --tag batch:7 --older-than 1h --dry-run',
      'bullpen cancel --queue mail --tag batch:7 --yes',
    ],
  },
  ...FLEET_COMMANDS,
  help: {
    usage: '[COMMAND]',
    summary: 'Show help, in general or for a command',
    description: ['Show help for a command, or list all commands.'],
    arguments: { min: 0, max: 1 },
    options: [],
    examples: ['bullpen help enqueue'],
  },
} as const satisfies Readonly<Record<string, Command>>

export type CommandName = keyof typeof COMMANDS

/** Widened from the literal types of the table. */
export function commandOf(name: CommandName): Command {
  return COMMANDS[name]
}

export const COMMAND_NAMES = Object.keys(COMMANDS) as readonly CommandName[]

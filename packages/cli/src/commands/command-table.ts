// The commands: what each takes, and what its help says.

import type { OptionName, OptionWords } from '../arguments/options.ts'
import { FLEET_COMMANDS } from './fleet-command-table.ts'

export interface Command {
  readonly usage: string
  readonly summary: string
  readonly about: readonly string[]
  /** Arguments besides options, at least and at most. */
  readonly takes: readonly [least: number, most: number]
  readonly options: readonly OptionName[]
  /** What an option is for here, where it is not what it is for elsewhere. */
  readonly says?: Readonly<Partial<Record<OptionName, OptionWords>>>
  readonly examples: readonly string[]
}

const DURATIONS = "A DURATION is a number with ms, s, m, h or d, such as 30s; a LIMIT is one, or 'none'."

export const COMMANDS = {
  enqueue: {
    usage: 'TASK [INPUT | -]',
    summary: 'hands a task over',
    about: [
      'Hands a task over, and tells its id when it is stored. INPUT is JSON; - reads it from standard input;',
      'without it, the input is {}. Limits are for long tasks.',
      DURATIONS,
      'With --wait the task is shown too, when it has ended or the time is up.',
    ],
    takes: [1, 2],
    options: ['meta', 'tag', 'delay', 'timeout', 'heartbeat-timeout', 'queue-timeout', 'total-timeout', 'wait'],
    examples: [
      `bullpen enqueue math.factorial '{"n":50}' --wait 10s`,
      'bullpen enqueue receipt.send - --delay 30s --meta order=A-1 --tag batch:7 <receipt.json',
    ],
  },
  show: {
    usage: 'ID',
    summary: 'shows a task, with the ends of its attempts',
    about: [
      'Shows a task as it stands; with --wait when it has ended or the time is up.',
      'Each attempt has a line: start, state, reason, message, duration, worker.',
    ],
    takes: [1, 1],
    options: ['wait'],
    examples: [
      'bullpen show cpu-01jd3v7n8q0000000000000000',
      'bullpen show cpu-01jd3v7n8q0000000000000000 --wait 1m --json',
    ],
  },
  list: {
    usage: '--queue QUEUE --status STATUS',
    summary: 'lists the tasks of a queue in one status',
    about: [
      'Lists the tasks of a queue in one status: id, attempts, the time that matters, task, error. STATUS is',
      'scheduled, waiting, active, retrying, completed, dead, cancelled or expired.',
    ],
    takes: [0, 0],
    options: ['queue', 'status', 'limit', 'all'],
    examples: [
      'bullpen list --queue cpu --status dead --limit 10',
      'bullpen list --queue cpu --status dead --all --json | head -1',
    ],
  },
  cancel: {
    usage: 'ID… | --queue QUEUE',
    summary: 'cancels tasks',
    about: [
      'Cancels tasks, one after the other. What waits never runs; what runs is told. Without --wait a task that',
      'has been told is enough for exit code 0; with it, at most 30s, it has to have stopped.',
      'With --queue, all tasks of a queue that were enqueued until now; with --task, --tag and --older-than, those',
      'that fit all of these. None of them starts any more when the answer comes; with --wait, until all have ended.',
    ],
    takes: [0, Number.POSITIVE_INFINITY],
    options: ['wait', 'queue', 'task', 'tag', 'older-than'],
    examples: [
      'bullpen cancel cpu-01jd3v7n8q0000000000000000 --wait 10s',
      'bullpen cancel --queue email --task receipt.send --tag batch:7 --older-than 1h',
    ],
  },
  ...FLEET_COMMANDS,
  help: {
    usage: '[COMMAND]',
    summary: 'explains a command',
    about: ['Explains a command, or tells which there are.'],
    takes: [0, 1],
    options: [],
    examples: ['bullpen help enqueue'],
  },
} as const satisfies Readonly<Record<string, Command>>

export type CommandName = keyof typeof COMMANDS

/** With what the table alone knows forgotten. */
export function commandOf(name: CommandName): Command {
  return COMMANDS[name]
}

export const COMMAND_NAMES = Object.keys(COMMANDS) as readonly CommandName[]

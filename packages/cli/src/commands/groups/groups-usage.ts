// Defines the usage of bullpen groups: its actions and options.
import type { Command } from '../command-table.ts'

const ID = 'group-01jd3v7n8q0000000000000000'

export const GROUPS_COMMAND = {
  usage: '[ACTION] [ID]',
  summary: 'List groups of tasks, and create, show, seal or cancel them',
  description: [
    'A group is a set of tasks that are awaited and cancelled together. ACTION is one of:',
    '  list        list the groups that have not ended, the oldest first (default)',
    '  show ID     show a group; with --wait, first wait until it ends or the time runs out',
    '  create      create a group, with the tasks of --bulk as its members, and print it',
    '  add ID      add the tasks of --bulk to a group',
    '  seal ID     let a group end once all its members have ended; no further members can be added',
    '  cancel ID   cancel all members that have not ended, and seal the group',
    '  results ID  print how the members have ended, in the order of their numbers; with --json, also their outputs',
    '',
    'Each line of --bulk is a JSON object with the fields of POST /v1/tasks, such as {"task":"math.factorial","input":{"n":50}}. If a',
    'line is not, nothing is enqueued. The tasks are sent in requests of up to 1,000. If the API rejects a request, the tasks of earlier',
    'requests stay in the group. A group that is created with members is sealed, unless --open is given. With --wait, exit code 0 means',
    'that every member has completed.',
  ],
  arguments: { min: 0, max: 2 },
  options: [
    'bulk',
    'on-success',
    'on-failure',
    'on-end',
    'on-error',
    'total-timeout',
    'keep',
    'open',
    'seal',
    'from',
    'limit',
    'wait',
    'by',
  ],
  optionHelp: {
    bulk: { value: 'FILE', help: 'add one task for each line of FILE, or of standard input if FILE is -' },
    'total-timeout': {
      value: 'DURATION',
      help: 'the longest time from the creation of the group to its end, from 1s to 30d (default: 7d)',
    },
    'on-success': {
      value: 'TASK={JSON}',
      help: 'enqueue TASK with this input when every member is completed; can be repeated',
    },
    'on-failure': { value: 'TASK={JSON}', help: 'the same, when the group has failed' },
    'on-end': { value: 'TASK={JSON}', help: 'the same, when the group has ended, whatever its result is' },
    limit: { value: 'N', help: 'show at most N groups or members (default: 50 groups, or all members)' },
    wait: { value: 'DURATION', help: 'wait up to this long for the group to end' },
    by: { value: 'NAME', help: 'your name, shown with the group (default: BULLPEN_BY, then your user name)' },
  },
  examples: [
    'bullpen groups create --bulk - --on-error cancel --wait 10m <tasks.ndjson',
    `bullpen groups add ${ID} --bulk - --seal <more.ndjson`,
    `bullpen groups results ${ID} --json`,
    `bullpen groups cancel ${ID}`,
  ],
} as const satisfies Command

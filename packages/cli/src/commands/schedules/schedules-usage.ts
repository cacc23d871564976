// Defines the usage of bullpen schedules: its actions and options.
import { ATTEMPT_OPTIONS, type OptionName } from '../../arguments/options.ts'
import type { Command } from '../command-table.ts'

/** The settings of a schedule, and the options of its tasks. */
export const SETTINGS_OPTIONS = [
  'task',
  'input',
  'cron',
  'time-zone',
  'every',
  'offset',
  'overlap',
  'catch-up',
  'jitter',
  'meta',
  'tag',
  'priority',
  'concurrency-key',
  ...ATTEMPT_OPTIONS,
] as const satisfies readonly OptionName[]

export const SCHEDULES_COMMAND = {
  usage: '[ACTION] [NAME]',
  summary: 'List schedules, and store, pause, resume, run, delete or sync them',
  description: [
    'ACTION is one of:',
    '  list         list the schedules with their next tick, their last run, and what is wrong with them (default)',
    '  show NAME    show a schedule, its settings and its next ticks',
    '  put NAME     create a schedule, or replace all settings of an existing one',
    '  pause NAME   stop the ticks until the schedule is resumed',
    '  resume NAME  continue with the first tick after now',
    "  run NAME     enqueue the schedule's task now, even if the schedule is paused, and print the task's id",
    '  delete NAME  delete a schedule; the tasks that it has enqueued are not affected',
    "  sync         make the stored schedules match those of the API's catalogue",
    '',
    "'put' requires --task, and either --cron or --every. The options of a task, such as --tag and --timeout, apply to each task that",
    'the schedule enqueues.',
    "'sync' prints each difference. With --dry-run, it does not change anything, and the exit code is 1 if there are differences.",
  ],
  arguments: { min: 0, max: 2 },
  options: [...SETTINGS_OPTIONS, 'next', 'trouble', 'dry-run', 'by'],
  optionHelp: {
    task: { value: 'TASK', help: 'the name of the task to enqueue' },
    input: { value: 'INPUT', help: "the task's input as JSON, or - to read it from standard input (default: {})" },
    meta: { value: 'KEY=VALUE', help: 'attach a label to each task; can be repeated' },
    tag: { value: 'TAG', help: 'attach a tag to each task; can be repeated up to 9 times' },
    'dry-run': { help: 'with sync, print the differences, and do not change anything' },
    by: { value: 'NAME', help: 'your name, shown with the schedule (default: BULLPEN_BY, then your user name)' },
  },
  examples: [
    'bullpen schedules list --trouble',
    "bullpen schedules put nightly-report --task report.create --input '{}' --cron '0 3 * * *' --time-zone Europe/Berlin",
    'bullpen schedules put poll --task mail.poll --every 30s --overlap skip --jitter 5s',
    'bullpen schedules show nightly-report --next 10',
    'bullpen schedules sync',
  ],
} as const satisfies Command

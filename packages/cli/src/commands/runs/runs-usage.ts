// Defines the usage of bullpen runs: its actions and options.
import type { Command } from '../command-table.ts'

const ID = 'run-01jd3v7n8q0000000000000000'

export const RUNS_COMMAND = {
  usage: '[ACTION] [ID | PIPELINE [INPUT | -]]',
  summary: 'List runs of pipelines, and start, show, await, cancel or delete them',
  description: [
    'A run passes the items of a source through the stages of a pipeline. ACTION is one of:',
    '  list              list the runs that have not ended, the oldest first (default)',
    '  show ID           show a run with the counts of each stage',
    "  start PIPELINE    start a pipeline of the API's catalogue, and print the run",
    '  wait ID           wait until a run has ended, show its progress, and print it',
    '  errors ID         print the items that have failed, if the pipeline collects errors',
    '  cancel ID         cancel a run: no further task starts',
    '  delete ID         delete a run that has ended',
    '',
    "INPUT is the pipeline's input as JSON, and defaults to {}. Use - to read it from standard input, or --input-file to read it from a file.",
    'While the command waits, it shows how many items are waiting, running and completed in each stage, the results per second, and how many',
    "workers run the pipeline's queues. This progress is written to standard error: one changing line on a terminal, and otherwise a line",
    'every ten seconds. With wait and start --wait, exit code 0 means that the run has completed; with cancel --wait, that it has ended.',
  ],
  arguments: { min: 0, max: 3 },
  options: ['input-file', 'id', 'total-timeout', 'keep', 'timeout', 'limit', 'wait', 'by'],
  optionHelp: {
    'total-timeout': {
      value: 'DURATION',
      help: 'the time after which the run is stopped and fails, from 1s to 30d, checked about every five seconds (default: 7d)',
    },
    keep: {
      value: 'DURATION',
      help: 'how long the run is kept after its end, from 0s to 30d; less than 10s counts as 10s (default: 1d)',
    },
    timeout: { value: 'DURATION', help: 'with wait, how long to wait (default: until the run has ended)' },
    limit: { value: 'N', help: 'show at most N runs or errors (default: 50 runs, or all errors)' },
    wait: { value: 'DURATION', help: 'with start or cancel, wait up to this long for the run to end' },
    by: { value: 'NAME', help: 'your name, shown with the run (default: BULLPEN_BY, then your user name)' },
  },
  examples: [
    `bullpen runs start files.digest-tree '{"directory":"/srv"}' --keep 1h`,
    `bullpen runs show ${ID}`,
    `bullpen runs wait ${ID} --timeout 10m --json`,
    `bullpen runs cancel ${ID}`,
  ],
} as const satisfies Command

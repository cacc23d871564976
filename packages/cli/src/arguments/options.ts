// Every option, with its help text.

/** How help describes an option: a name for its value, and what it does. */
export interface OptionHelp {
  readonly value?: string
  readonly help: string
}

interface Option extends OptionHelp {
  readonly type: 'string' | 'boolean'
  readonly multiple?: boolean
  readonly short?: string
}

export const OPTIONS = {
  meta: { type: 'string', multiple: true, value: 'KEY=VALUE', help: 'attach a label; repeatable' },
  tag: {
    type: 'string',
    multiple: true,
    value: 'TAG',
    help: 'attach a tag, which tasks can be cancelled by; repeatable, up to 10',
  },
  delay: { type: 'string', value: 'DURATION', help: 'start no earlier than this long from now' },
  timeout: { type: 'string', value: 'LIMIT', help: 'run timeout of each attempt' },
  'heartbeat-timeout': { type: 'string', value: 'LIMIT', help: 'longest time between two heartbeats' },
  'queue-timeout': {
    type: 'string',
    value: 'LIMIT',
    help: 'longest wait for the first attempt; then the task expires',
  },
  'total-timeout': {
    type: 'string',
    value: 'LIMIT',
    help: 'longest time from enqueueing to the end of the last attempt',
  },
  queue: { type: 'string', value: 'QUEUE', help: 'the queue (required)' },
  status: { type: 'string', value: 'STATUS', help: 'the status (required)' },
  task: { type: 'string', value: 'TASK', help: 'only tasks of this definition' },
  'older-than': { type: 'string', value: 'DURATION', help: 'only tasks enqueued at least this long ago' },
  limit: { type: 'string', value: 'N', help: 'show at most N tasks (default: 50)' },
  all: { type: 'boolean', help: 'show all tasks, page by page' },
  worker: { type: 'string', value: 'WORKER', help: 'the worker, or a unique prefix of its name' },
  slots: { type: 'boolean', help: 'also show every slot and the task that it runs' },
  mode: { type: 'string', value: 'MODE', help: 'light, soft, soft_timeout or hard (default: soft_timeout)' },
  'dry-run': { type: 'boolean', help: 'show what would happen, and change nothing' },
  yes: { type: 'boolean', help: 'do not ask for confirmation; required if standard input is not a terminal' },
  hard: { type: 'boolean', help: 'interrupt the task that the slot runs' },
  concurrency: { type: 'string', value: 'N', help: 'how many tasks each pool runs at once (required)' },
  rate: { type: 'string', value: 'RATE', help: "starts per time across all workers, such as 100/1s; or 'none'" },
  by: { type: 'string', value: 'NAME', help: 'your name for the audit log (default: BULLPEN_BY, then your user name)' },
  wait: { type: 'string', value: 'DURATION', help: 'wait up to this long for the task to end' },
  api: { type: 'string', value: 'URL', help: 'address of the API (default: BULLPEN_API, then http://127.0.0.1:8080)' },
  key: {
    type: 'string',
    value: 'KEY',
    help: 'API key (default: BULLPEN_KEY, which other users of the machine cannot see)',
  },
  json: { type: 'boolean', help: 'print each answer of the API as a line of JSON, and errors as {"error":…}' },
  help: { type: 'boolean', short: 'h', help: 'show this help' },
  version: { type: 'boolean', help: 'show the version' },
} as const satisfies Readonly<Record<string, Option>>

export type OptionName = keyof typeof OPTIONS

/** The options that every command accepts. */
export const COMMON_OPTIONS: readonly OptionName[] = ['api', 'key', 'json', 'help', 'version']

/** As it is typed: `--delay DURATION`. */
export function spelling(name: OptionName, { value }: OptionHelp = OPTIONS[name]): string {
  return value === undefined ? `--${name}` : `--${name} ${value}`
}

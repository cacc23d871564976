// Every option there is, with what help says of it.

/** What help says of an option: the word for its value, and what it is for. */
export interface OptionWords {
  readonly value?: string
  readonly help: string
}

interface Option extends OptionWords {
  readonly type: 'string' | 'boolean'
  readonly multiple?: boolean
  readonly short?: string
}

export const OPTIONS = {
  meta: { type: 'string', multiple: true, value: 'KEY=VALUE', help: 'a label of yours; may be repeated' },
  tag: {
    type: 'string',
    multiple: true,
    value: 'TAG',
    help: 'a tag, which tasks can be cancelled by; to enqueue: up to 10',
  },
  delay: { type: 'string', value: 'DURATION', help: 'earliest start, from now' },
  timeout: { type: 'string', value: 'LIMIT', help: "run timeout of each attempt, instead of the definition's" },
  'heartbeat-timeout': { type: 'string', value: 'LIMIT', help: 'the longest time between two signs of life' },
  'queue-timeout': { type: 'string', value: 'LIMIT', help: 'how long it may wait for its first start' },
  'total-timeout': { type: 'string', value: 'LIMIT', help: "the task's whole life, over all attempts" },
  queue: { type: 'string', value: 'QUEUE', help: 'the queue' },
  status: { type: 'string', value: 'STATUS', help: 'the status; needed' },
  task: { type: 'string', value: 'TASK', help: 'tasks of this name alone' },
  'older-than': { type: 'string', value: 'DURATION', help: 'tasks that were enqueued at least so long ago' },
  limit: { type: 'string', value: 'N', help: 'tasks at most; default 50' },
  all: { type: 'boolean', help: 'all of them, page by page' },
  worker: { type: 'string', value: 'WORKER', help: 'the worker, or the beginning of its name' },
  slots: { type: 'boolean', help: 'each slot too, with what it runs' },
  mode: { type: 'string', value: 'MODE', help: 'light, soft, soft_timeout or hard; default soft_timeout' },
  'dry-run': { type: 'boolean', help: 'tell what would have to be interrupted, and command nothing' },
  hard: { type: 'boolean', help: 'with its task, which is signalled and handed back' },
  concurrency: { type: 'string', value: 'N', help: 'how many tasks a pool runs at once; needed' },
  rate: { type: 'string', value: 'RATE', help: 'starts in a time, such as 100/1s, over all workers; or none' },
  wait: { type: 'string', value: 'DURATION', help: "wait for the task's end, at most so long" },
  api: {
    type: 'string',
    value: 'URL',
    help: 'where the API is; default BULLPEN_API, or else http://127.0.0.1:8080',
  },
  key: { type: 'string', value: 'KEY', help: 'default BULLPEN_KEY, which other users of the machine do not see' },
  json: { type: 'boolean', help: 'the API\'s answers as they are, each on a line; errors as {"error":…}' },
  help: { type: 'boolean', short: 'h', help: 'this text' },
  version: { type: 'boolean', help: "the program's version" },
} as const satisfies Readonly<Record<string, Option>>

export type OptionName = keyof typeof OPTIONS

/** Those that every command takes. */
export const COMMON: readonly OptionName[] = ['api', 'key', 'json', 'help', 'version']

/** As it is typed: `--delay DURATION`. */
export function spelling(name: OptionName, words: OptionWords = OPTIONS[name]): string {
  return words.value === undefined ? `--${name}` : `--${name} ${words.value}`
}

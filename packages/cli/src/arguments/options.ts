// Defines every option and its help text.

/** How the help describes an option: a placeholder for its value, and what the option does. */
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
  meta: { type: 'string', multiple: true, value: 'KEY=VALUE', help: 'attach a label to the task; can be repeated' },
  tag: {
    type: 'string',
    multiple: true,
    value: 'TAG',
    help: 'attach a tag, which can be used to cancel tasks; can be repeated up to 10 times',
  },
  'on-success': {
    type: 'string',
    multiple: true,
    value: 'TASK={JSON}',
    help: 'enqueue TASK with this input when the task is completed; can be repeated',
  },
  'on-failure': {
    type: 'string',
    multiple: true,
    value: 'TASK={JSON}',
    help: 'the same, when the task is dead or expired',
  },
  'on-end': {
    type: 'string',
    multiple: true,
    value: 'TASK={JSON}',
    help: 'the same, when the task is completed, dead, cancelled or expired',
  },
  delay: { type: 'string', value: 'DURATION', help: 'wait at least this long before starting the task' },
  'run-at': {
    type: 'string',
    value: 'TIME',
    help: 'start the task at this time, such as 2030-12-31T09:00:00Z, instead of now',
  },
  priority: {
    type: 'string',
    value: 'N',
    help: "a priority from 0 (starts first) to 9 that overrides the definition's",
  },
  'concurrency-key': { type: 'string', value: 'KEY', help: 'the tenant or resource that the task belongs to' },
  'unique-key': {
    type: 'string',
    value: 'KEY',
    help: 'a unique key; as long as a task has the key, no other task with this name can have it',
  },
  'unique-until': {
    type: 'string',
    value: 'WHEN',
    help: 'when the key is released: started, finished (default), or a time after enqueueing, such as 10m',
  },
  'on-conflict': {
    type: 'string',
    value: 'POLICY',
    help: 'what happens if another task has the key: keep (default), replace, extend or error',
  },
  'idempotency-key': {
    type: 'string',
    value: 'KEY',
    help: 'enqueue the task only once, however often the command is repeated with this key',
  },
  bulk: {
    type: 'string',
    value: 'FILE',
    help: 'enqueue one task for each line of FILE, or of standard input if FILE is -',
  },
  'retry-for': {
    type: 'string',
    value: 'DURATION',
    help: 'with --bulk, how long to keep retrying while the API does not accept any task (default: 1m)',
  },
  'when-full': {
    type: 'string',
    value: 'POLICY',
    help: 'what happens if the queue is full: reject, drop, or a duration up to 30s to wait for room',
  },
  durability: {
    type: 'string',
    value: 'WHEN',
    help: "succeed as soon as Redis has the task (primary), or only once a replica has it (replicated; default: the definition's)",
  },
  'max-attempts': {
    type: 'string',
    value: 'N',
    help: "the maximum number of attempts, within the definition's bounds",
  },
  backoff: {
    type: 'string',
    value: 'TYPE',
    help: "how the delay between attempts grows: exponential, linear, fixed or list (default: the definition's)",
  },
  'initial-delay': {
    type: 'string',
    value: 'DURATION',
    help: "the delay before the second attempt, within the definition's bounds",
  },
  'max-delay': {
    type: 'string',
    value: 'DURATION',
    help: "the longest delay of an exponential or linear backoff, within the definition's bounds",
  },
  factor: {
    type: 'string',
    value: 'N',
    help: 'by how much an exponential backoff multiplies the delay after each attempt, from 1 to 100',
  },
  delays: {
    type: 'string',
    value: 'DURATIONS',
    help: 'with --backoff list, the delays, such as 1s,1m,1h; the last one is repeated',
  },
  'backoff-jitter': {
    type: 'string',
    value: 'JITTER',
    help: 'how much each delay varies at random: a share from 0 to 1, such as 0.2 for ±20%, or full',
  },
  timeout: { type: 'string', value: 'LIMIT', help: 'the run timeout of each attempt' },
  'heartbeat-timeout': { type: 'string', value: 'LIMIT', help: 'the longest time allowed between two heartbeats' },
  'queue-timeout': {
    type: 'string',
    value: 'LIMIT',
    help: 'how long the task may wait for its first attempt before it expires',
  },
  'total-timeout': {
    type: 'string',
    value: 'LIMIT',
    help: 'how long the task may take from enqueueing to the end of its last attempt',
  },
  input: {
    type: 'string',
    value: 'INPUT',
    help: "the JSON that replaces the task's input, or - to read it from standard input",
  },
  'input-file': {
    type: 'string',
    value: 'FILE',
    help: 'read the input as JSON from FILE, or from standard input if FILE is -',
  },
  id: {
    type: 'string',
    value: 'ID',
    help: 'the id of the run, run- and a ULID in lower case; a repeated start with the same id starts nothing',
  },
  'after-compensation': {
    type: 'boolean',
    help: 'retry even if compensations have undone steps of the task',
  },
  'to-queue': {
    type: 'string',
    value: 'QUEUE',
    help: 'enqueue a copy of the task in this queue, with a new id, and leave the dead task as it is',
  },
  queue: { type: 'string', value: 'QUEUE', help: 'the queue (required)' },
  status: { type: 'string', value: 'STATUS', help: 'the status (required)' },
  task: { type: 'string', value: 'TASK', help: 'include only tasks with this name' },
  'older-than': {
    type: 'string',
    value: 'DURATION',
    help: 'include only tasks that were enqueued at least this long ago',
  },
  'newer-than': {
    type: 'string',
    value: 'DURATION',
    help: 'include only tasks that died at most this long ago',
  },
  state: {
    type: 'string',
    value: 'STATE',
    help: 'include only tasks whose last attempt ended in this state, such as DONE_ERROR',
  },
  code: { type: 'string', value: 'CODE', help: 'include only tasks with this error code, such as http_503' },
  fingerprint: {
    type: 'string',
    value: 'FINGERPRINT',
    help: "include only tasks whose error has this fingerprint, as printed by 'bullpen dead counts'",
  },
  text: {
    type: 'string',
    value: 'TEXT',
    help: 'include only tasks whose error message contains this text, regardless of the case of A to Z',
  },
  'on-error': {
    type: 'string',
    value: 'POLICY',
    help: 'what happens when a member is dead or has expired: cancel the others, or continue (default)',
  },
  keep: {
    type: 'string',
    value: 'DURATION',
    help: 'how long the group is kept after its end, from 1d to 30d (default: 1d)',
  },
  group: { type: 'string', value: 'ID', help: 'the id of a group' },
  open: { type: 'boolean', help: 'do not seal the group, so that members can be added later' },
  seal: { type: 'boolean', help: 'seal the group, so that no further members can be added' },
  from: { type: 'string', value: 'N', help: 'the number of the first member to show (default: 0)' },
  limit: { type: 'string', value: 'N', help: 'show at most N tasks (default: 50)' },
  all: { type: 'boolean', help: 'show all tasks, page by page' },
  sort: {
    type: 'string',
    value: 'ORDER',
    help: 'sort the keys by their waiting tasks (backlog, the default) or by their active tasks (active)',
  },
  cron: {
    type: 'string',
    value: 'EXPRESSION',
    help: "the times as a cron expression with 5 fields, or with 6 if it starts with seconds, such as '0 3 * * *'",
  },
  'time-zone': { type: 'string', value: 'ZONE', help: 'the time zone of --cron, such as Europe/Berlin (default: UTC)' },
  every: { type: 'string', value: 'DURATION', help: 'the interval between two ticks, at least 1s, instead of --cron' },
  offset: {
    type: 'string',
    value: 'DURATION',
    help: 'with --every, how much later each tick is; less than the interval',
  },
  overlap: {
    type: 'string',
    value: 'POLICY',
    help: 'what happens at a tick if the previous run has not ended: skip (default), allow, queue or cancel',
  },
  'catch-up': {
    type: 'string',
    value: 'POLICY',
    help: 'how many missed ticks are enqueued: skip, one (default), or the newest N, up to 100',
  },
  jitter: {
    type: 'string',
    value: 'DURATION',
    help: 'enqueue each task at a random time up to this long after its tick (default: at the tick)',
  },
  next: {
    type: 'string',
    value: 'N',
    help: 'show the next N ticks, up to 100 (default: 1, or 5 for a single schedule)',
  },
  trouble: {
    type: 'boolean',
    help: 'list only the schedules that are failing, overlapping, missing ticks or unreadable',
  },
  worker: { type: 'string', value: 'WORKER', help: 'the worker, or a unique prefix of its name' },
  interval: { type: 'string', value: 'DURATION', help: 'how often to read the fleet, from 200ms to 1h (default: 2s)' },
  once: { type: 'boolean', help: 'print the state of the fleet once, and exit' },
  slots: { type: 'boolean', help: 'also show every slot and the task that it is running' },
  mode: {
    type: 'string',
    value: 'MODE',
    help: 'the drain mode: light, soft, soft_timeout or hard (default: soft_timeout)',
  },
  'dry-run': { type: 'boolean', help: 'show what would happen, and do not change anything' },
  orphans: { type: 'boolean', help: 'find orphaned keys in Redis, which belong to nothing' },
  bullmq: { type: 'string', value: 'REDIS_URL', help: 'check an installation of plain BullMQ in this Redis' },
  prefix: {
    type: 'string',
    value: 'PREFIX',
    help: 'with --bullmq, check only queues with this prefix, such as bull',
  },
  delete: { type: 'boolean', help: 'with --orphans, delete those of the keys that have no owner' },
  yes: { type: 'boolean', help: 'do not ask for confirmation (required if standard input is not a terminal)' },
  hard: { type: 'boolean', help: 'interrupt the task that the slot is running' },
  concurrency: {
    type: 'string',
    value: 'N',
    help: 'how many tasks each pool runs at once, from 1 to 10000 (required)',
  },
  rate: {
    type: 'string',
    value: 'RATE',
    help: "the number of starts per period across all workers, such as 100/1s, or 'none'",
  },
  'concurrency-per-key': {
    type: 'string',
    value: 'N',
    help: "how many tasks of each concurrency key run at once across all workers, or 'none'",
  },
  'rate-per-key': {
    type: 'string',
    value: 'RATE',
    help: "the number of starts of each concurrency key per period across all workers, such as 100/1m, or 'none'",
  },
  permits: {
    type: 'string',
    multiple: true,
    value: 'NAME=N',
    help: 'the number of permits of this name in the queue, such as db=5 or db=none; can be repeated',
  },
  burst: {
    type: 'string',
    value: 'N',
    help: 'how many tasks of a concurrency key may start back to back (default: 1)',
  },
  'max-tasks': {
    type: 'string',
    value: 'N',
    help: "how many tasks may be waiting, scheduled or retrying, or 'none'",
  },
  'max-bytes': {
    type: 'string',
    value: 'BYTES',
    help: "how much memory the unfinished tasks may take in Redis, such as 64MiB or 500000, or 'none'",
  },
  'max-age': {
    type: 'string',
    value: 'DURATION',
    help: "how long the task that starts next may have been waiting, such as 10m, or 'none'",
  },
  'api-key-name': { type: 'string', value: 'NAME', help: 'the name of the API key to limit' },
  'enqueue-rate': {
    type: 'string',
    value: 'RATE',
    help: "how many tasks the API key may enqueue per period, such as 100/1s, or 'none'",
  },
  'max-unfinished-tasks': {
    type: 'string',
    value: 'N',
    help: "how many unfinished tasks the API key may have in the queue, or 'none'",
  },
  for: {
    type: 'string',
    value: 'DURATION',
    help: 'how long the change lasts, such as 10m (default: one day; with --queue or --worker, until the workers exit)',
  },
  by: { type: 'string', value: 'NAME', help: 'your name for the audit log (default: BULLPEN_BY, then your user name)' },
  wait: { type: 'string', value: 'DURATION', help: 'wait up to this long for the task to end' },
  api: {
    type: 'string',
    value: 'URL',
    help: 'the address of the API (default: BULLPEN_API, then http://127.0.0.1:8080)',
  },
  key: {
    type: 'string',
    value: 'KEY',
    help: 'the API key (default: BULLPEN_KEY, which is safer because other users of this machine can see options)',
  },
  json: { type: 'boolean', help: 'print each API response as one line of JSON, and each error as {"error":…}' },
  help: { type: 'boolean', short: 'h', help: 'show this help' },
  version: { type: 'boolean', help: 'show the version' },
} as const satisfies Readonly<Record<string, Option>>

export type OptionName = keyof typeof OPTIONS

/** The options for a task's attempts: their number, the backoff between them, and the timeouts. */
export const ATTEMPT_OPTIONS = [
  'max-attempts',
  'backoff',
  'initial-delay',
  'max-delay',
  'factor',
  'delays',
  'backoff-jitter',
  'timeout',
  'heartbeat-timeout',
  'queue-timeout',
  'total-timeout',
] as const satisfies readonly OptionName[]

/** The options that every command accepts. */
export const COMMON_OPTIONS: readonly OptionName[] = ['api', 'key', 'json', 'help', 'version']

/** Returns the option as a user types it, such as `--delay DURATION`. */
export function spelling(name: OptionName, { value }: OptionHelp = OPTIONS[name]): string {
  return value === undefined ? `--${name}` : `--${name} ${value}`
}

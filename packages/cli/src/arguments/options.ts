// Defines every option and its help text.

/** How the help describes an option: a placeholder for its value, and what the option does. */
export interface OptionHelp {
  readonly value?: string
  readonly help: string
}

interface Option extends OptionHelp {
  readonly multiple?: boolean
  readonly short?: string
}

const TABLE = {
  meta: { multiple: true, value: 'KEY=VALUE', help: 'attach a label to the task; can be repeated' },
  tag: {
    multiple: true,
    value: 'TAG',
    help: 'attach a tag, which can be used to cancel tasks; can be repeated up to 10 times',
  },
  'on-success': {
    multiple: true,
    value: 'TASK={JSON}',
    help: 'enqueue TASK with this input when the task is completed; can be repeated',
  },
  'on-failure': { multiple: true, value: 'TASK={JSON}', help: 'the same, when the task is dead or expired' },
  'on-end': {
    multiple: true,
    value: 'TASK={JSON}',
    help: 'the same, when the task is completed, dead, cancelled or expired',
  },
  delay: { value: 'DURATION', help: 'wait at least this long before starting the task' },
  'run-at': { value: 'TIME', help: 'start the task at this time, such as 2030-12-31T09:00:00Z, instead of now' },
  priority: { value: 'N', help: "a priority from 0 (starts first) to 9 that overrides the definition's" },
  'concurrency-key': { value: 'KEY', help: 'the tenant or resource that the task belongs to' },
  'unique-key': {
    value: 'KEY',
    help: 'a unique key; as long as a task has the key, no other task with this name can have it',
  },
  'unique-until': {
    value: 'WHEN',
    help: 'when the key is released: started, finished (default), or a time after enqueueing, such as 10m',
  },
  'on-conflict': {
    value: 'POLICY',
    help: 'what happens if another task has the key: keep (default), replace, extend or error',
  },
  'idempotency-key': {
    value: 'KEY',
    help: 'enqueue the task only once, however often the command is repeated with this key',
  },
  bulk: { value: 'FILE', help: 'enqueue one task for each line of FILE, or of standard input if FILE is -' },
  'retry-for': {
    value: 'DURATION',
    help: 'with --bulk, how long to keep retrying while the API does not accept any task (default: 1m)',
  },
  'when-full': {
    value: 'POLICY',
    help: 'what happens if the queue is full: reject, drop, or a duration up to 30s to wait for room',
  },
  durability: {
    value: 'WHEN',
    help: "succeed as soon as Redis has the task (primary), or only once a replica has it (replicated; default: the definition's)",
  },
  'max-attempts': { value: 'N', help: "the maximum number of attempts, within the definition's bounds" },
  backoff: {
    value: 'TYPE',
    help: "how the delay between attempts grows: exponential, linear, fixed or list (default: the definition's)",
  },
  'initial-delay': { value: 'DURATION', help: "the delay before the second attempt, within the definition's bounds" },
  'max-delay': {
    value: 'DURATION',
    help: "the longest delay of an exponential or linear backoff, within the definition's bounds",
  },
  factor: {
    value: 'N',
    help: 'by how much an exponential backoff multiplies the delay after each attempt, from 1 to 100',
  },
  delays: { value: 'DURATIONS', help: 'with --backoff list, the delays, such as 1s,1m,1h; the last one is repeated' },
  'backoff-jitter': {
    value: 'JITTER',
    help: 'how much each delay varies at random: a share from 0 to 1, such as 0.2 for ±20%, or full',
  },
  timeout: { value: 'LIMIT', help: 'the run timeout of each attempt' },
  'heartbeat-timeout': { value: 'LIMIT', help: 'the longest time allowed between two heartbeats' },
  'queue-timeout': { value: 'LIMIT', help: 'how long the task may wait for its first attempt before it expires' },
  'total-timeout': {
    value: 'LIMIT',
    help: 'how long the task may take from enqueueing to the end of its last attempt',
  },
  input: { value: 'INPUT', help: "the JSON that replaces the task's input, or - to read it from standard input" },
  'input-file': { value: 'FILE', help: 'read the input as JSON from FILE, or from standard input if FILE is -' },
  id: {
    value: 'ID',
    help: 'the id of the run, run- and a ULID in lower case; a repeated start with the same id starts nothing',
  },
  'after-compensation': { help: 'retry even if compensations have undone steps of the task' },
  'to-queue': {
    value: 'QUEUE',
    help: 'enqueue a copy of the task in this queue, with a new id, and leave the dead task as it is',
  },
  queue: { value: 'QUEUE', help: 'the queue (required)' },
  status: { value: 'STATUS', help: 'the status (required)' },
  task: { value: 'TASK', help: 'include only tasks with this name' },
  'older-than': { value: 'DURATION', help: 'include only tasks that were enqueued at least this long ago' },
  'newer-than': { value: 'DURATION', help: 'include only tasks that died at most this long ago' },
  state: { value: 'STATE', help: 'include only tasks whose last attempt ended in this state, such as DONE_ERROR' },
  code: { value: 'CODE', help: 'include only tasks with this error code, such as http_503' },
  fingerprint: {
    value: 'FINGERPRINT',
    help: "include only tasks whose error has this fingerprint, as printed by 'bullpen dead counts'",
  },
  text: {
    value: 'TEXT',
    help: 'include only tasks whose error message contains this text, regardless of the case of A to Z',
  },
  'on-error': {
    value: 'POLICY',
    help: 'what happens when a member is dead or has expired: cancel the others, or continue (default)',
  },
  keep: { value: 'DURATION', help: 'how long the group is kept after its end, from 1d to 30d (default: 1d)' },
  group: { value: 'ID', help: 'the id of a group' },
  open: { help: 'do not seal the group, so that members can be added later' },
  seal: { help: 'seal the group, so that no further members can be added' },
  from: { value: 'N', help: 'the number of the first member to show (default: 0)' },
  limit: { value: 'N', help: 'show at most N tasks (default: 50)' },
  all: { help: 'show all tasks, page by page' },
  sort: {
    value: 'ORDER',
    help: 'sort the keys by their waiting tasks (backlog, the default) or by their active tasks (active)',
  },
  cron: {
    value: 'EXPRESSION',
    help: "the times as a cron expression with 5 fields, or with 6 if it starts with seconds, such as '0 3 * * *'",
  },
  'time-zone': { value: 'ZONE', help: 'the time zone of --cron, such as Europe/Berlin (default: UTC)' },
  every: { value: 'DURATION', help: 'the interval between two ticks, at least 1s, instead of --cron' },
  offset: { value: 'DURATION', help: 'with --every, how much later each tick is; less than the interval' },
  overlap: {
    value: 'POLICY',
    help: 'what happens at a tick if the previous run has not ended: skip (default), allow, queue or cancel',
  },
  'catch-up': {
    value: 'POLICY',
    help: 'how many missed ticks are enqueued: skip, one (default), or the newest N, up to 100',
  },
  jitter: {
    value: 'DURATION',
    help: 'enqueue each task at a random time up to this long after its tick (default: at the tick)',
  },
  next: { value: 'N', help: 'show the next N ticks, up to 100 (default: 1, or 5 for a single schedule)' },
  trouble: { help: 'list only the schedules that are failing, overlapping, missing ticks or unreadable' },
  worker: { value: 'WORKER', help: 'the worker, or a unique prefix of its name' },
  interval: { value: 'DURATION', help: 'how often to read the fleet, from 200ms to 1h (default: 2s)' },
  once: { help: 'print the state of the fleet once, and exit' },
  slots: { help: 'also show every slot and the task that it is running' },
  mode: { value: 'MODE', help: 'the drain mode: light, soft, soft_timeout or hard (default: soft_timeout)' },
  'dry-run': { help: 'show what would happen, and do not change anything' },
  orphans: { help: 'find orphaned keys in Redis, which belong to nothing' },
  bullmq: { value: 'REDIS_URL', help: 'check an installation of plain BullMQ in this Redis' },
  prefix: { value: 'PREFIX', help: 'with --bullmq, check only queues with this prefix, such as bull' },
  delete: { help: 'with --orphans, delete those of the keys that have no owner' },
  yes: { help: 'do not ask for confirmation (required if standard input is not a terminal)' },
  hard: { help: 'interrupt the task that the slot is running' },
  concurrency: { value: 'N', help: 'how many tasks each pool runs at once, from 1 to 10000 (required)' },
  rate: { value: 'RATE', help: "the number of starts per period across all workers, such as 100/1s, or 'none'" },
  'concurrency-per-key': {
    value: 'N',
    help: "how many tasks of each concurrency key run at once across all workers, or 'none'",
  },
  'rate-per-key': {
    value: 'RATE',
    help: "the number of starts of each concurrency key per period across all workers, such as 100/1m, or 'none'",
  },
  permits: {
    multiple: true,
    value: 'NAME=N',
    help: 'the number of permits of this name in the queue, such as db=5 or db=none; can be repeated',
  },
  burst: { value: 'N', help: 'how many tasks of a concurrency key may start back to back (default: 1)' },
  'max-tasks': { value: 'N', help: "how many tasks may be waiting, scheduled or retrying, or 'none'" },
  'max-bytes': {
    value: 'BYTES',
    help: "how much memory the unfinished tasks may take in Redis, such as 64MiB or 500000, or 'none'",
  },
  'max-age': {
    value: 'DURATION',
    help: "how long the task that starts next may have been waiting, such as 10m, or 'none'",
  },
  'api-key-name': { value: 'NAME', help: 'the name of the API key to limit' },
  'enqueue-rate': {
    value: 'RATE',
    help: "how many tasks the API key may enqueue per period, such as 100/1s, or 'none'",
  },
  'max-unfinished-tasks': {
    value: 'N',
    help: "how many unfinished tasks the API key may have in the queue, or 'none'",
  },
  for: {
    value: 'DURATION',
    help: 'how long the change lasts, such as 10m (default: one day; with --queue or --worker, until the workers exit)',
  },
  by: { value: 'NAME', help: 'your name for the audit log (default: BULLPEN_BY, then your user name)' },
  wait: { value: 'DURATION', help: 'wait up to this long for the task to end' },
  api: { value: 'URL', help: 'the address of the API (default: BULLPEN_API, then http://127.0.0.1:8080)' },
  key: {
    value: 'KEY',
    help: 'the API key (default: BULLPEN_KEY, which is safer because other users of this machine can see options)',
  },
  json: { help: 'print each API response as one line of JSON, and each error as {"error":…}' },
  help: { short: 'h', help: 'show this help' },
  version: { help: 'show the version' },
} as const satisfies Readonly<Record<string, Option>>

export type OptionName = keyof typeof TABLE

type Parsed<O> = O & { readonly type: O extends { readonly value: string } ? 'string' : 'boolean' }

/** The options in the form of `parseArgs`. An option accepts a value if its help has a placeholder for it. */
export const OPTIONS = Object.fromEntries(
  Object.entries<Option>(TABLE).map(([name, option]) => [
    name,
    { ...option, type: option.value === undefined ? 'boolean' : 'string' },
  ]),
) as { readonly [N in OptionName]: Parsed<(typeof TABLE)[N]> }

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

// Records what BullMQ sends to each of its scripts, by calling its backend with placeholders on a connection that sends nothing.

/** The parts of BullMQ's module and of its dependencies that the recording uses. */
export interface BackendModule {
  readonly RedisQueueBackend: new (...args: readonly unknown[]) => Backend
  readonly QueueKeys: new (
    prefix: string,
  ) => { getKeys(queue: string): Readonly<Record<string, string>>; toKey(queue: string, type: string): string }
}

type Unpack = (packed: Uint8Array) => unknown

/** The backend's methods differ in their parameters, and a newer BullMQ may lack some of them. */
type Backend = Record<string, (...args: readonly unknown[]) => unknown>

const NOW = 1_700_000_000_000
const ADDED = 1_600_000_000_000

const PLACEHOLDERS: ReadonlyMap<unknown, string> = new Map<unknown, string>([
  [NOW, '<now>'],
  [`${NOW}`, '<now>'],
  [ADDED, '<added>'],
])

/** Fields of the job that a script stores with the move. */
const FIELDS = { field: '<value>' }

function jobWith(opts: object): object {
  return { id: '<id>', name: '<name>', data: '<data>', opts, timestamp: ADDED }
}

/** For each script that writes, the calls that send it. A label is the script's name, or `name (variant)`. */
const CALLS: Readonly<Record<string, (backend: Backend) => unknown>> = {
  addStandardJob: (to) => to['addJobToTransaction']?.(client(to), jobWith({}), '<id>'),
  addDelayedJob: (to) => to['addJobToTransaction']?.(client(to), jobWith({ delay: 5 }), '<id>'),
  addPrioritizedJob: (to) => to['addJobToTransaction']?.(client(to), jobWith({ priority: 5 }), '<id>'),
  addParentJob: (to) =>
    to['addJobToTransaction']?.(client(to), jobWith({}), '<id>', { addToWaitingChildren: true, parentKey: '<parent>' }),
  addJobScheduler: (to) => to['addJobScheduler']?.('<scheduler>', 5, '<template>', {}, {}, {}, '<producer>'),
  updateJobScheduler: (to) => to['updateJobSchedulerNextMillis']?.('<scheduler>', 5, '<template>', {}, '<producer>'),
  removeJobScheduler: (to) => to['removeJobScheduler']?.('<scheduler>'),
  moveToActive: (to) => to['moveToActive']?.('<token>', '<worker>'),
  'moveToFinished (completed)': (to) => to['moveToCompleted']?.(jobWith({}), '<result>', undefined, '<token>', true),
  'moveToFinished (failed)': (to) => to['moveToFailed']?.(jobWith({}), '<reason>', undefined, '<token>', true, FIELDS),
  moveToDelayed: (to) =>
    to['moveToDelayed']?.('<id>', NOW, 5, '<token>', { skipAttempt: true, fieldsToUpdate: FIELDS, fetchNext: true }),
  'moveToDelayed (counted)': (to) => to['moveToDelayed']?.('<id>', NOW, 5, '<token>'),
  retryJob: (to) => to['retryJob']?.('<id>', false, '<token>', { fieldsToUpdate: FIELDS }),
  moveJobFromActiveToWait: (to) => to['moveJobFromActiveToWait']?.('<id>', '<token>'),
  moveStalledJobsToWait: (to) => to['moveStalledJobsToWait']?.(),
  moveToWaitingChildren: (to) => to['moveToWaitingChildren']?.('<id>', '<token>', {}),
  reprocessJob: (to) => to['retryFinishedJob']?.(jobWith({}), 'failed', {}),
  moveJobsToWait: (to) => to['retryFinishedJobs']?.('failed', 5, NOW),
  promote: (to) => to['promote']?.('<id>'),
  changeDelay: (to) => to['changeDelay']?.('<id>', 5),
  changePriority: (to) => to['changePriority']?.('<id>', 5, false),
  cleanJobsInSet: (to) => to['cleanJobsByState']?.('failed', NOW, 5),
  removeJob: (to) => to['remove']?.('<id>', true),
  removeUnprocessedChildren: (to) => to['removeUnprocessedChildren']?.('<id>'),
  removeChildDependency: (to) => to['removeChildDependency']?.('<id>', '<parent>'),
  drain: (to) => to['drain']?.(true),
  obliterate: (to) => to['obliterate']?.({ count: 5, force: true }),
  pause: (to) => to['pause']?.(true),
  updateData: (to) => to['updateData']?.({ id: '<id>' }, '<data>'),
  updateProgress: (to) => to['updateProgress']?.('<id>', 5),
  addLog: (to) => to['addLog']?.('<id>', '<line>', 5),
  extendLock: (to) => to['extendLock']?.('<id>', '<token>', 5),
  extendLocks: (to) => to['extendLocks']?.(['<id>'], ['<token>'], 5),
}

/** The replies that BullMQ interprets as success. */
const ANSWERS: Readonly<Record<string, unknown>> = { reprocessJob: 1, getMetrics: [] }

const clients = new WeakMap<object, object>()

function client(backend: object): unknown {
  return clients.get(backend)
}

/**
 * Returns the keys and arguments of each call in CALLS as text: a key as its type (`:wait`), a packed value as its content, and
 * what the caller gave as a placeholder. If a call fails or sends another script, the text says so instead.
 */
export async function sentArguments(module: BackendModule, unpack: Unpack): Promise<Record<string, readonly string[]>> {
  const sent: Record<string, readonly string[]> = {}
  for (const [label, call] of Object.entries(CALLS)) sent[label] = await record(module, unpack, label, call)
  return sent
}

async function record(
  { RedisQueueBackend, QueueKeys }: BackendModule,
  unpack: Unpack,
  label: string,
  call: (backend: Backend) => unknown,
): Promise<readonly string[]> {
  const [script = ''] = label.split(' ')
  let sent: readonly string[] | undefined
  const commands = {
    runCommand: async (command: string, args: readonly unknown[]) => {
      const [name = ''] = command.split(':')
      if (name === script) sent ??= args.map((arg) => describe(arg, unpack))
      return ANSWERS[name] ?? 0
    },
  }
  const keys = new QueueKeys('q')
  const options = { prefix: 'q', name: '<worker>', lockDuration: 5, maxStalledCount: 5, stalledInterval: 5 }
  const connection = { client: Promise.resolve(commands) }
  const toKey = (type: string): string => keys.toKey('q', type)
  // The last argument tells the backend to leave the connection's events alone.
  const backend = new RedisQueueBackend(connection, 'q', keys.getKeys('q'), toKey, options, undefined, false)
  clients.set(backend, commands)
  try {
    await atTime(NOW, () => call(backend))
  } catch (error) {
    return [`fails: ${error instanceof Error ? error.message : String(error)}`]
  }
  return sent ?? [`does not send ${script}`]
}

/** Sets the clock only until `run` has sent its script, which takes a few turns of the microtask queue. */
async function atTime(now: number, run: () => unknown): Promise<void> {
  const { now: real } = Date
  Date.now = () => now
  try {
    await run()
  } finally {
    Date.now = real
  }
}

function describe(value: unknown, unpack: Unpack): string {
  if (value instanceof Uint8Array) return `packed ${describeUnpacked(unpack(value))}`
  return PLACEHOLDERS.get(value) ?? (typeof value === 'string' ? value.replace(/^q:q:/, ':') : String(value))
}

function describeUnpacked(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(describeUnpacked).join(', ')}]`
  if (typeof value !== 'object' || value === null) return PLACEHOLDERS.get(value) ?? String(value).replace(/^q:q:/, ':')
  return `{${Object.entries(value)
    .map(([name, each]) => `${name}: ${describeUnpacked(each)}`)
    .join(', ')}}`
}

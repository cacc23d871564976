// Defines which JSON values are responses of a Bullpen API. A proxy, a login page or another server may also respond with a status
// that means success. The calls that enqueue, look up and cancel tasks check every field, and the others check the fields that
// distinguish their response from any other JSON. A newer API may send further fields, statuses and codes.
import type {
  Accepted,
  BulkResponse,
  BulkResult,
  Cancellation,
  Cancelled,
  CancelPreview,
  CommandPage,
  CommandView,
  DeadTaskPreview,
  DeadTaskRequest,
  DeadTaskRequestPage,
  Deleted,
  Diagnosis,
  Dropped,
  Finding,
  FingerprintCounts,
  FleetView,
  LimitsView,
  Orphan,
  OrphanPage,
  OrphansDeleted,
  PoolPage,
  PoolView,
  QueuePage,
  QueueStats,
  Retried,
  SlotPage,
  SlotView,
  TaskPage,
  TaskView,
} from '@bullpen/contract'
import {
  anything,
  bool,
  type Check,
  listOf,
  number,
  oneOf,
  optional,
  recordOf,
  shape,
  someOf,
  text,
  time,
  whole,
  word,
} from './shape.ts'

type BulkAccepted = Extract<BulkResult, { readonly id: unknown }>
type BulkRejected = Extract<BulkResult, { readonly error: unknown }>

const links = shape<Accepted['links']>({ self: text, cancel: text })
const status = word<TaskView['status']>()
const action = word<Accepted['action']>()
const error = shape<NonNullable<TaskView['error']>>({ code: text, message: text })

const accepted = shape<Accepted>({
  id: text,
  action,
  status: optional(status),
  expectedStartAt: optional(text),
  links,
})
const dropped = shape<Dropped>({ action: oneOf(['dropped']) })

export const isEnqueueResponse: Check<Accepted | Dropped> = (value): value is Accepted | Dropped =>
  accepted(value) || dropped(value)

const bulkAccepted = shape<BulkAccepted>({
  id: text,
  action,
  status: optional(status),
  expectedStartAt: optional(text),
  replayed: optional(oneOf([true])),
})
const code = word<BulkRejected['error']['code']>()
const bulkRejected = shape<BulkRejected>({
  error: someOf<BulkRejected['error']>({
    code,
    title: text,
    status: whole,
    detail: optional(text),
    taskId: optional(text),
    outcome: optional(word()),
    errors: optional(listOf(someOf<NonNullable<BulkRejected['error']['errors']>[number]>({ message: text }))),
    retryAfter: optional(whole),
  }),
})
const bulkResult: Check<BulkResult> = (value): value is BulkResult =>
  bulkAccepted(value) || bulkRejected(value) || dropped(value)
const bulk = shape<BulkResponse>({ failed: whole, results: listOf(bulkResult) })

/** Returns the check for a response that must contain one result for each of `tasks` tasks. */
export function isBulkResponseFor(tasks: number): Check<BulkResponse> {
  return (value): value is BulkResponse => bulk(value) && value.results.length === tasks
}

const hasKind = someOf<{ readonly kind: string; readonly text: string }>({ kind: text, text })
const isWait = (value: unknown): value is NonNullable<TaskView['waitsFor']> => hasKind(value)

export const isTask = shape<TaskView>({
  id: text,
  task: text,
  version: whole,
  queue: text,
  status,
  attemptsMade: whole,
  maxAttempts: whole,
  priority: whole,
  fencingToken: whole,
  // An API without the codec of the workers cannot show an encoded input.
  input: optional(anything),
  output: optional(anything),
  error: optional(error),
  progress: optional(shape<NonNullable<TaskView['progress']>>({ fraction: number, note: optional(text) })),
  steps: optional(listOf(text)),
  meta: recordOf(text),
  tags: listOf(text),
  correlationId: optional(text),
  traceContext: optional(
    shape<NonNullable<TaskView['traceContext']>>({ traceparent: text, tracestate: optional(text) }),
  ),
  concurrencyKey: optional(text),
  // Each kind has fields of its own, and a newer API may send further kinds.
  waitsFor: optional(isWait),
  enqueuedAt: time,
  dueAt: optional(time),
  startedAt: optional(time),
  endedAt: optional(time),
  attempts: listOf(
    shape<TaskView['attempts'][number]>({
      attempt: whole,
      fencingToken: whole,
      counted: bool,
      outcome: word(),
      state: word(),
      error: optional(error),
      by: optional(text),
      worker: text,
      slot: optional(whole),
      startedAt: time,
      endedAt: time,
    }),
  ),
  fingerprint: optional(text),
  followUpOf: optional(text),
  followUps: optional(
    listOf(shape<NonNullable<TaskView['followUps']>[number]>({ on: word(), task: text, queue: text })),
  ),
  group: optional(shape<NonNullable<TaskView['group']>>({ id: text, member: whole })),
  compensations: optional(listOf(shape<NonNullable<TaskView['compensations']>[number]>({ task: text, key: text }))),
  compensatedAt: optional(time),
  retryOf: optional(text),
  retries: optional(
    listOf(shape<NonNullable<TaskView['retries']>[number]>({ at: time, by: text, copy: optional(text) })),
  ),
  links,
})

export const isRetried = shape<Retried>({ id: text, status, retryOf: optional(text), links })
export const isFingerprintCounts = shape<FingerprintCounts>({
  fingerprints: listOf(
    shape<FingerprintCounts['fingerprints'][number]>({
      queue: text,
      fingerprint: text,
      state: text,
      code: text,
      message: text,
      count: whole,
      oldestAt: time,
      newestAt: time,
      newestId: text,
    }),
  ),
})
export const isDeadPreview = someOf<DeadTaskPreview>({ queue: text, matching: whole, exact: bool })
export const isDeadRequest = someOf<DeadTaskRequest>({
  id: text,
  action: word(),
  queue: text,
  status: word(),
  matching: whole,
  changed: whole,
  requestedAt: time,
  doneAt: optional(time),
  stoppedBy: optional(text),
})
export const isDeadRequestPage = shape<DeadTaskRequestPage>({ requests: listOf(isDeadRequest) })
export const isDeleted = shape<Deleted>({ id: text })

export const isTaskPage = shape<TaskPage>({ tasks: listOf(isTask), next: optional(text) })

export const isCancelled = shape<Cancelled>({ id: text, outcome: word(), status, links })

const filter = { queue: text, task: optional(text), tag: optional(text), enqueuedUntil: time }

export const isCancellation = shape<Cancellation>({
  ...filter,
  id: text,
  by: text,
  status: word(),
  ended: whole,
  requestedAt: time,
  doneAt: optional(time),
  links: shape<Cancellation['links']>({ self: text }),
})

export const isCancelPreview = shape<CancelPreview>({ ...filter, matching: whole, exact: bool })

export const isFleet = shape<FleetView>({
  now: time,
  logLevel: optional(
    shape<NonNullable<FleetView['logLevel']>>({ level: word(), until: time, by: text, command: text }),
  ),
  queues: listOf(someOf<FleetView['queues'][number]>({ queue: text, paused: bool })),
  workers: listOf(someOf<FleetView['workers'][number]>({ worker: text })),
})

export const isOrphanPage = shape<OrphanPage>({
  orphans: listOf(
    someOf<Orphan>({
      key: text,
      entry: optional(text),
      reason: word(),
      queue: optional(text),
      kind: optional(text),
      owner: optional(text),
      keys: optional(whole),
      certain: bool,
    }),
  ),
  examined: whole,
  next: optional(text),
})
const orphanRefs = listOf(shape<OrphansDeleted['deleted'][number]>({ key: text, entry: optional(text) }))
export const isOrphansDeleted = shape<OrphansDeleted>({ deleted: orphanRefs, kept: orphanRefs })

export const isDiagnosis = shape<Diagnosis>({
  now: time,
  findings: listOf(
    someOf<Finding>({
      check: word(),
      severity: word(),
      problem: text,
      reason: text,
      advice: text,
      queue: optional(text),
    }),
  ),
  passed: listOf(word()),
  skipped: listOf(word()),
})

export const isQueuePage = shape<QueuePage>({
  now: time,
  queues: listOf(someOf<QueueStats>({ queue: text, paused: bool, bytes: whole })),
})

export const isLimits = shape<LimitsView>({
  queue: text,
  now: time,
  paused: bool,
  takesTurns: bool,
  limits: someOf<LimitsView['limits']>({}),
  breakers: optional(listOf(someOf<NonNullable<LimitsView['breakers']>[number]>({ service: text, state: word() }))),
  keys: shape<LimitsView['keys']>({
    waitingKeys: whole,
    waitingTasks: whole,
    items: listOf(
      someOf<LimitsView['keys']['items'][number]>({
        key: text,
        waiting: whole,
        active: whole,
        blockedBy: listOf(word()),
      }),
    ),
    exact: bool,
    next: optional(text),
  }),
})

export const isPoolPage = shape<PoolPage>({
  pools: listOf(someOf<PoolView>({ worker: text, queue: text, state: word() })),
})

export const isSlotPage = shape<SlotPage>({
  slots: listOf(someOf<SlotView>({ worker: text, queue: text, slot: whole, state: word() })),
})

export const isCommand = shape<CommandView>({
  id: text,
  spec: someOf<CommandView['spec']>({ queue: optional(text), worker: optional(text) }),
  by: text,
  at: time,
  outcome: word(),
  responses: listOf(
    shape<CommandView['responses'][number]>({
      worker: text,
      outcome: word(),
      detail: optional(text),
      at: optional(time),
    }),
  ),
})

export const isCommandPage = shape<CommandPage>({ commands: listOf(isCommand) })

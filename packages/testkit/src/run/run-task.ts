/**
 * Runs one task without Redis, from enqueueing through all attempts to its end, with the engine that a worker uses. The memory
 * broker and the pool share one fake clock. The run ends when the task has ended, or when no timer is left that could change
 * anything. The handler cannot be ended by force: after a simulated crash or lock loss it continues, and its result is ignored.
 */
import {
  type AttemptRecord,
  BullpenError,
  type Duration,
  type Enqueued,
  type Handler,
  type InputOf,
  isFinal,
  milliseconds,
  type Progress,
  type Resources,
  type TaskDefinition,
  type TaskId,
  type TaskRecord,
} from '@bullpen/contract'
import {
  bodyErrors,
  createTaskId,
  decodeLines,
  envelopeSchema,
  fieldErrorText,
  groupId,
  ID_RANDOM_BYTES,
  isStored,
  type StoredFollowUp,
  type StoredTemplate,
  storedTemplateSchema,
  taskId,
} from '@bullpen/contract/internal'
import type { NewTask } from '@bullpen/engine'
import {
  DEFAULT_TIMEOUTS,
  followUpLines,
  type LocalCancel,
  newTask,
  type Pool,
  parseIdentity,
  type RunTask,
  releasedBy,
  type StoredSteps,
} from '@bullpen/engine/internal'
import { type FakeClock, fakeClock } from '../fake-clock.ts'
import { memoryBroker } from '../memory/memory-broker.ts'
import { asJson } from '../memory/store/stored-task.ts'
import { recordingLog } from '../recording-log.ts'
import { testPool } from '../test-pool.ts'
import { runUntilIdle } from './advance-clock.ts'
import type { RunTaskOptions } from './run-options.ts'
import { runnableTask } from './runnable-task.ts'
import { type TaskRun, taskRun } from './task-run.ts'
import { createWorkers, type WorkerReports, type Workers } from './workers.ts'

/** Resources are required if the handler needs any. */
type Given<R extends Resources> = object extends R
  ? [options?: RunTaskOptions<R>]
  : [options: RunTaskOptions<R> & { readonly resources: R }]

/**
 * How long a handler that no timer would end may run, in real ms. This is less than the 5 s that test runners usually allow for a
 * test.
 */
const PATIENCE_MS = 4_000
/** The worker's own default. */
const DRAIN_TIMEOUT = '20s'
const END_AT = { fake: '30d', real: '1m' } as const satisfies Record<string, Duration>

/**
 * Directs a run from the inside. `simulate` uses a director to interrupt attempts at the calls that their handlers make. Without a
 * director, a run is interrupted only at the times that its options name.
 */
export interface RunDirector {
  /** Called before the first worker is added. */
  begin(workers: Workers, loseLock: () => void): void
  /** Called when the task has ended. Handlers of earlier attempts may still be running. */
  onEnded(): void
  /** Returns whether a handler is running that does not wait for the director. */
  isRunning(): boolean
  /** Returns whether every handler has ended that can still end. */
  isOver(): boolean
}

/**
 * Runs one task as a worker would: input and output are checked and stored as JSON, and timeouts, retries and backoffs apply. The
 * handler runs inline even if the definition sets `isolation`.
 *
 * @throws BullpenError `invalid_input` or `invalid_request` if the API would reject the input or the options, `invalid_handler` if the
 * handler belongs to another task, or `group_not_found` or `task_not_found` if `group` or `followUpOf` is not an id.
 * @throws Error if the handler does not return and no timeout ends it.
 */
export function runTask<D extends TaskDefinition, R extends Resources = object>(
  definition: D,
  handler: Handler<D, R> | Handler<D, R>['handle'],
  input: InputOf<D>,
  ...[given]: Given<R>
): Promise<TaskRun<D>> {
  const options: RunTaskOptions<R> = given ?? {}
  const real = options.clock === 'real'
  const clock = options.clock === undefined || options.clock === 'real' ? fakeClock() : options.clock
  return runOn({ clock, real, hint: options.clock === undefined }, definition, handler, input, options)
}

/** The clock of a run, and how the run uses it. */
export interface RunClock {
  readonly clock: FakeClock
  /** Whether time is real while a handler runs. */
  readonly real: boolean
  /** Whether to explain, in the message of an attempt that timed out, that the clock does not advance while code is running. */
  readonly hint: boolean
}

/** Works like {@link runTask}, on a given clock. */
export async function runOn<D extends TaskDefinition, R extends Resources>(
  { clock, real, hint }: RunClock,
  definition: D,
  handler: Handler<D, R> | Handler<D, R>['handle'],
  input: InputOf<D>,
  options: RunTaskOptions<R>,
  director?: RunDirector,
): Promise<TaskRun<D>> {
  const { registry, handled } = runnableTask(definition, handler, options)
  const { logs, logFor } = recordingLog()
  const startedAt = clock.monotonic()
  const broker = memoryBroker({ clock })
  // The children have their own broker, so that no pool starts them.
  const childBroker = memoryBroker({ clock })
  const progress: Progress[] = []
  const children: TaskId[] = []
  let addedLines = ''
  const registered = new Map<string, TaskRun['compensations'][number]>()
  const registeredFollowUps = new Map<string, StoredFollowUp>()
  const task = newTaskFor(definition, input, options, clock.now())
  const { queue } = task
  const concurrency = options.slots ?? 1

  const enqueueChild = async (child: NewTask): Promise<Enqueued> => {
    const enqueued = await childBroker.enqueue(child)
    if (isStored(enqueued.action)) children.push(child.id)
    return enqueued
  }
  const recordProgress = (store: (report: Progress) => Promise<void>) => (report: Progress) => {
    progress.push(asJson(report))
    return store(report)
  }
  /** Registrations are recorded and not stored, so that no pool starts their tasks. */
  const recordRegistered = (steps: StoredSteps): StoredSteps => ({
    ...steps,
    async register(kind, identity, text) {
      const template = storedTemplateSchema.parse(JSON.parse(text))
      if (kind !== 'compensation') registeredFollowUps.set(`${kind} ${identity}`, { on: kind, template })
      else registered.set(identity, { ...parseIdentity(identity), input: inputOf(template) })
      return 'stored'
    },
  })
  const openPool = (worker: string, reports: WorkerReports): Pool => {
    const openConsumer = broker.consumer({ queue, concurrency, worker })
    const { resources = {}, random, context } = options
    const recording =
      (run: RunTask): RunTask =>
      (fetched, commit, release) => {
        reports.started(fetched.fencingToken)
        return run(
          { ...fetched, progress: recordProgress(fetched.progress), steps: recordRegistered(fetched.steps) },
          ({ followUps = '', ...result }) => {
            // Follow-ups are recorded and not stored, so that no pool starts them.
            addedLines = followUps
            return commit(hint ? { ...result, record: withClockHint(result.record) } : result)
          },
          release,
        )
      }
    const settings = { clock, queue, concurrency, worker, resources, logFor, sink: reports.event }
    return testPool({ enqueue: enqueueChild }, registry, (run, host) => openConsumer(recording(run), host), {
      ...settings,
      ...(random && { random }),
      ...(context && { context }),
    })
  }

  // Follow-ups are not stored, so that no pool starts them.
  await broker.enqueue({ ...task, followUps: undefined })
  const workers = createWorkers(broker, openPool)
  director?.begin(workers, () => broker.loseLock(task.id))
  await workers.add()
  let hasEnded = false
  void broker.waitUntilFinished(task.id, new AbortController().signal).then(() => {
    hasEnded = true
    director?.onEnded()
  })

  let cancel: LocalCancel | undefined
  const interventions = {
    cancelAt: () => {
      cancel = workers.newest().pool.cancel(task.id)
    },
    stopAt: () => {
      const { pool } = workers.newest()
      pool.stopSlot(busySlot(pool), 'hard')
    },
    drainAt: () => {
      const drainMs = milliseconds(options.drainTimeout ?? DRAIN_TIMEOUT, 'drainTimeout')
      const { graceMs } = { ...DEFAULT_TIMEOUTS, ...options.timeouts }
      void workers.newest().pool.drain({ drainMs, graceMs: graceMs === 'none' ? drainMs : graceMs })
    },
    lockLostAt: () => broker.loseLock(task.id),
    crashAt: () => {
      workers.newest().kill()
      void workers.add()
    },
  }
  for (const [setting, intervene] of Object.entries(interventions)) {
    const at = options[setting as keyof typeof interventions]
    if (at !== undefined) clock.after(milliseconds(at, setting), intervene)
  }

  const until = startedAt + milliseconds(options.endAt ?? (real ? END_AT.real : END_AT.fake), 'endAt')
  const idle = {
    clock,
    real,
    until,
    patienceMs: real && director === undefined ? Number.POSITIVE_INFINITY : PATIENCE_MS,
  }
  try {
    const isRunning = director?.isRunning ?? (() => workers.newest().pool.busy() > 0)
    await runUntilIdle({ ...idle, isRunning, isOver: () => hasEnded })
    const elapsedMs = clock.monotonic() - startedAt
    const record = await found(broker.find(task.id))
    // A stuck handler may still return, which the run records. With a real clock, the run waits for it only if a director asks.
    await runUntilIdle({
      ...idle,
      isRunning: () => real && director?.isRunning() === true,
      isOver: director?.isOver ?? (() => real || workers.newest().pool.stuckHandlers() === 0),
    })
    const childRecords = await Promise.all(children.map((id) => found(childBroker.find(id))))
    const { events } = workers
    const compensations = record.status === 'completed' ? [] : [...registered.values()].toReversed()
    const { status } = record
    const defined = decodeLines(followUpLines(task.followUps))
    const followUps = [
      ...(isFinal(status) ? releasedBy([...defined, ...registeredFollowUps.values()], status) : []),
      ...decodeLines(addedLines),
    ]
    return taskRun({
      ...{ record, events, handled, logs, progress, compensations, cancel, elapsedMs },
      followUps: followUps.map(({ template }) => ({ task: template.task, input: inputOf(template) })),
      children: childRecords,
    })
  } finally {
    await broker.close()
    await childBroker.close()
  }
}

type Caller = Pick<RunTaskOptions, 'maxAttempts' | 'call' | 'correlationId' | 'traceContext' | 'group' | 'followUpOf'>

function newTaskFor(definition: TaskDefinition, input: unknown, options: Caller, now: number): NewTask {
  checkInput(definition, input)
  const task = newTask(definition, input, options.call ?? {}, {
    id: createTaskId(definition.queue, now, new Uint8Array(ID_RANDOM_BYTES)),
    enqueuedAt: now,
    correlationId: options.correlationId,
    traceContext: options.traceContext,
  })
  const { maxAttempts = task.maxAttempts, group, followUpOf } = options
  return {
    ...task,
    maxAttempts,
    group: group && { id: groupId(group.id), member: group.member },
    // The id of a group has the form of a task's id.
    followUpOf: followUpOf === undefined ? undefined : taskId(followUpOf),
  }
}

/** Checks the input before anything is stored, as the API does. */
function checkInput({ name, input: schema }: TaskDefinition, input: unknown): void {
  const parsed = schema.safeParse(asJson(input))
  if (parsed.success) return
  const errors = bodyErrors(parsed.error, ['input'])
  const faults = errors.map(fieldErrorText).join('; ')
  throw new BullpenError('invalid_input', `the input does not match the schema of ${name}: ${faults}`, { errors })
}

const CLOCK_HINT =
  "on the fake clock; if the handler waits for a timer, a file or a socket, which that clock does not control, pass clock: 'real'"

/**
 * Adds a hint to the message of an attempt that timed out. The default clock jumps over every wait that it does not control, so
 * an attempt with such a wait times out at once.
 */
function withClockHint(record: AttemptRecord): AttemptRecord {
  if (record.reason !== 'run_timeout' && record.reason !== 'heartbeat_timeout') return record
  return { ...record, message: `${record.message ?? record.reason} ${CLOCK_HINT}` }
}

function inputOf({ data }: StoredTemplate): unknown {
  return envelopeSchema.parse(JSON.parse(data)).input
}

function busySlot(pool: Pool): number {
  return pool.slots().find(({ task }) => task !== undefined)?.slot ?? 1
}

async function found(record: Promise<TaskRecord | undefined>): Promise<TaskRecord> {
  const stored = await record
  if (stored === undefined) throw new Error('the memory broker has lost a task')
  return stored
}

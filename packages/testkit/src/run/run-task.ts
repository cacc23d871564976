// Runs one task as a worker would, from its enqueueing over all attempts to its end, without Redis.
import {
  type Duration,
  type Handler,
  type InputOf,
  milliseconds,
  type Progress,
  type Resources,
  type TaskDefinition,
  type TaskEvent,
  type TaskId,
  type TaskRecord,
} from '@bullpen/contract'
import { createTaskId, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import type { NewTask } from '@bullpen/engine'
import { DEFAULT_TIMEOUTS, type LocalCancel, newTask, type Pool } from '@bullpen/engine/internal'
import { fakeClock } from '../fake-clock.ts'
import { memoryBroker } from '../memory/memory-broker.ts'
import { asJson } from '../memory/stored-task.ts'
import { recordingLog } from '../recording-log.ts'
import { testPool } from '../test-pool.ts'
import type { RunTaskOptions } from './run-options.ts'
import { runUntilIdle } from './run-until-idle.ts'
import { runnableTask } from './runnable-task.ts'
import { type TaskRun, taskRun } from './task-run.ts'

/** Resources may be left out where the handler needs none. */
type Given<R extends Resources> = object extends R
  ? [options?: RunTaskOptions<R>]
  : [options: RunTaskOptions<R> & { readonly resources: R }]

/** In real ms: below the 5 s that test runners give to a test. */
const PATIENCE_MS = 4_000
/** As the worker's own default. */
const DRAIN_TIMEOUT = '20s'
const LIMIT = { fake: '30d', real: '1m' } as const satisfies Record<string, Duration>

/**
 * The whole run of one task, by the engine that a worker uses: reading and checking the input, limits, retries, and what
 * is stored of it. An isolated task runs inline.
 *
 * @throws BullpenError for what nobody could enqueue or handle; Error for a handler that nothing ends.
 */
export async function runTask<D extends TaskDefinition, R extends Resources = object>(
  definition: D,
  handler: Handler<D, R> | Handler<D, R>['handle'],
  input: InputOf<D>,
  ...[given]: Given<R>
): Promise<TaskRun<D>> {
  const options: RunTaskOptions<R> = given ?? {}
  const real = options.clock === 'real'
  const clock = options.clock === undefined || options.clock === 'real' ? fakeClock() : options.clock
  const { registry, handled } = runnableTask(definition, handler, options)
  const { logs, logFor } = recordingLog()
  const began = clock.monotonic()
  const broker = memoryBroker({ clock })
  // Not where the task is: nobody is to take them.
  const nursery = memoryBroker({ clock })
  const events: TaskEvent[] = []
  const progress: Progress[] = []
  const children: TaskId[] = []
  const task = newTaskFor(definition, input, options, clock.now())
  const { queue } = task
  const concurrency = options.workers ?? 1

  const enqueue = async (child: NewTask): Promise<void> => {
    await nursery.enqueue(child)
    if (!children.includes(child.id)) children.push(child.id)
  }
  const open = (process: string): Pool => {
    const feed = broker.feed({ queue, concurrency, process })
    const { resources = {}, random, context } = options
    // What a dead process says is heard by nobody.
    const sink = (event: TaskEvent): void => {
      if (opened === pool) events.push(event)
    }
    const settings = { clock, queue, concurrency, process, resources, logFor, sink }
    const pool: Pool = testPool(
      { enqueue },
      registry,
      (work, fed) => feed((taken, ...rest) => work({ ...taken, progress: noting(taken.progress) }, ...rest), fed),
      { ...settings, ...(random && { random }), ...(context && { context }) },
    )
    return pool
  }
  const noting = (store: (report: Progress) => Promise<void>) => (report: Progress) => {
    progress.push(asJson(report))
    return store(report)
  }

  await broker.enqueue(task)
  let opened = open('memory:1')
  await opened.start()
  let final = false
  void broker.waitUntilFinished(task.id, new AbortController().signal).then(() => {
    final = true
  })

  let cancel: LocalCancel | undefined
  const at = (setting: keyof typeof outside): void => {
    const when = options[setting]
    if (when !== undefined) clock.after(milliseconds(when, setting), outside[setting])
  }
  const outside = {
    cancelAt: () => {
      cancel = opened.cancel(task.id)
    },
    stopAt: () => opened.stopSlot(busyWorker(opened), 'hard'),
    drainAt: () => {
      const drainMs = milliseconds(options.drainTimeout ?? DRAIN_TIMEOUT, 'drainTimeout')
      const { graceMs } = { ...DEFAULT_TIMEOUTS, ...options.limits }
      void opened.drain({ drainMs, graceMs: graceMs === 'none' ? drainMs : graceMs })
    },
    lockLostAt: () => broker.loseLock(task.id),
    crashAt: () => {
      broker.kill('memory:1')
      opened = open('memory:2')
      void opened.start()
    },
  }
  for (const setting of ['cancelAt', 'stopAt', 'drainAt', 'lockLostAt', 'crashAt'] as const) at(setting)

  const until = began + milliseconds(options.limit ?? (real ? LIMIT.real : LIMIT.fake), 'limit')
  try {
    const isRunning = (): boolean => opened.busy() > 0
    await runUntilIdle({ clock, real, until, patienceMs: PATIENCE_MS, isRunning, isOver: () => final })
    const elapsedMs = clock.monotonic() - began
    const record = await found(broker.find(task.id))
    // A handler that came to no end by then may do so later; in real time, nobody waits for it.
    const isOver = (): boolean => real || opened.stuckHandlers() === 0
    await runUntilIdle({ clock, real, until, patienceMs: PATIENCE_MS, isRunning: () => false, isOver })
    const born = await Promise.all(children.map((id) => found(nursery.find(id))))
    return taskRun({ record, events, handled, logs, progress, children: born, cancel, elapsedMs })
  } finally {
    await broker.close()
    await nursery.close()
  }
}

type Caller = Pick<RunTaskOptions, 'attempts' | 'call' | 'correlationId'>

function newTaskFor(definition: TaskDefinition, input: unknown, options: Caller, now: number): NewTask {
  const task = newTask(definition, input, options.call ?? {}, {
    id: createTaskId(definition.queue, now, new Uint8Array(ID_RANDOM_BYTES)),
    enqueuedAt: now,
    correlationId: options.correlationId,
  })
  return options.attempts === undefined ? task : { ...task, maxAttempts: options.attempts }
}

function busyWorker(pool: Pool): number {
  return pool.slots().find(({ task }) => task !== undefined)?.slot ?? 1
}

async function found(record: Promise<TaskRecord | undefined>): Promise<TaskRecord> {
  const there = await record
  if (there === undefined) throw new Error('the memory broker has lost a task')
  return there
}

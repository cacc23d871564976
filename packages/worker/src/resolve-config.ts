// Derives what a worker needs from the catalogue and the settings: the sizes of its pools, its isolator and its timeouts.
import { availableParallelism } from 'node:os'
import { getHeapStatistics } from 'node:v8'
import { settingsOfPool, type WorkerSettings } from '@bullpen/config'
import {
  BullpenError,
  type Catalogue,
  formatDuration,
  type Isolation,
  milliseconds,
  type TaskId,
} from '@bullpen/contract'
import { nearest, readTaskId } from '@bullpen/contract/internal'
import type { PoolStatus } from '@bullpen/engine'
import type { Isolator, QuarantineProcesses, QuarantineProcessPool, Timeouts } from '@bullpen/engine/internal'
import type { PreparingIsolator } from '@bullpen/sandbox/internal'

/**
 * Returns the concurrency of each queue that the settings name, or of every queue in the catalogue if the settings do not name
 * any. A concurrency of 0 stands for twice the number of CPU cores.
 */
export function poolSizes(
  catalogue: Catalogue,
  { pools, poolSettings = {} }: WorkerSettings,
): ReadonlyMap<string, number> {
  const wanted = pools ?? Object.fromEntries(catalogue.queues.map((queue) => [queue, 0]))
  assertKnown('pools (BULLPEN_WORKER_POOLS)', Object.keys(wanted), catalogue)
  // Several workers may share these settings, although each of them runs only some of the queues.
  assertKnown('poolSettings (BULLPEN_WORKER_POOL_SETTINGS)', Object.keys(poolSettings), catalogue)
  return new Map(Object.entries(wanted).map(([queue, size]) => [queue, size === 0 ? availableParallelism() * 2 : size]))
}

function assertKnown(setting: string, queues: readonly string[], catalogue: Catalogue): void {
  const unknown = queues.find((queue) => !catalogue.queues.includes(queue))
  if (unknown === undefined) return
  const near = nearest(unknown, catalogue.queues)
  const hint =
    near === undefined ? `the catalogue's queues are ${catalogue.queues.join(', ')}` : `did you mean '${near}'?`
  throw new BullpenError(
    'invalid_configuration',
    `invalid configuration: ${setting} names queue '${unknown}', which no task in the catalogue uses; ${hint}`,
  )
}

/**
 * Returns an isolator if a task in the catalogue needs one. The isolator may have as many isolates of each kind as tasks of that
 * kind can run at once, so that no task waits for an isolate. `slotsOf` returns the current number of slots of a queue, or 0 if
 * there is no pool for it.
 */
export function isolatorFor(
  { definitions }: Pick<Catalogue, 'definitions'>,
  slotsOf: (queue: string) => number,
  open: (max: (kind: Isolation) => number) => Isolator,
): Isolator | undefined {
  const max = (kind: Isolation): number => {
    const queues = new Set(definitions.filter(({ isolation }) => isolation === kind).map(({ queue }) => queue))
    const slots = [...queues].reduce((total, queue) => total + slotsOf(queue), 0)
    return Math.max(1, slots)
  }
  return definitions.every(({ isolation }) => isolation === 'inline') ? undefined : open(max)
}

/**
 * Returns what is needed to run quarantined tasks in child processes, or undefined if the settings allow no processes. A task whose
 * definition sets no memory limit may use as much memory in its child process as the worker's own heap may hold.
 */
export function quarantineProcesses(
  { quarantineProcesses: max }: Pick<WorkerSettings, 'quarantineProcesses'>,
  fits: QuarantineProcesses['fits'],
  open: (max: number) => PreparingIsolator,
): (QuarantineProcesses & { readonly pool: QuarantineProcessPool }) | undefined {
  if (max === 0) return undefined
  const memoryLimitBytes = getHeapStatistics().heap_size_limit
  const isolator = open(max)
  const pool = { idle: isolator.idleProcesses, prepare: () => isolator.prepareProcess(memoryLimitBytes) }
  return { isolator, fits, memoryLimitBytes, pool }
}

/** Returns the timeouts of long tasks whose definitions omit them, in the pool for a queue. */
export function defaultTimeouts(worker: WorkerSettings, queue: string): Timeouts {
  const settings = settingsOfPool(worker, queue)
  const ms = (limit: string): number | 'none' => (limit === 'none' ? limit : milliseconds(limit))
  return {
    timeoutMs: ms(settings.taskTimeout),
    heartbeatMs: ms(settings.heartbeatTimeout),
    queueMs: ms(settings.queueTimeout),
    totalMs: ms(settings.totalTimeout),
    graceMs: milliseconds(settings.grace),
  }
}

/** Returns how the pool for a queue drains, unless a request says otherwise. */
export function drainSettings(worker: WorkerSettings, queue: string): NonNullable<PoolStatus['drainSettings']> {
  const { drainMode: mode, drainTimeout, grace } = settingsOfPool(worker, queue)
  return { mode, timeoutMs: milliseconds(drainTimeout), graceMs: milliseconds(grace) }
}

/**
 * Returns the ids grouped by queue.
 *
 * @throws BullpenError `queue_not_found` if this worker has no pool for the queue of a task.
 */
export function byQueue(tasks: readonly TaskId[], sizes: ReadonlyMap<string, number>): ReadonlyMap<string, TaskId[]> {
  const found = new Map<string, TaskId[]>()
  for (const id of tasks) {
    const queue = readTaskId(id)?.queue ?? ''
    if (!sizes.has(queue)) {
      throw new BullpenError(
        'queue_not_found',
        `task ${id} belongs to queue '${queue}', for which this worker has no pool; it has pools for ${[...sizes.keys()].join(', ')}`,
      )
    }
    found.set(queue, [...(found.get(queue) ?? []), id])
  }
  return found
}

/** Returns a warning for each definition whose grace period is longer than its pool's, because a drain cuts it short. */
export function graceWarnings(
  { definitions }: Catalogue,
  sizes: ReadonlyMap<string, number>,
  graceOf: (queue: string) => number,
): readonly string[] {
  return definitions.flatMap(({ name, queue, graceMs: own }) => {
    const graceMs = graceOf(queue)
    if (!sizes.has(queue) || own === undefined || (own !== 'none' && own <= graceMs)) return []
    const asked = own === 'none' ? 'unlimited' : formatDuration(own)
    return [
      `grace period of ${name} is ${asked}, but a drain shortens it to the worker's grace period of ${formatDuration(graceMs)} (BULLPEN_WORKER_GRACE)`,
    ]
  })
}

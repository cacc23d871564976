// Derives from the catalogue and the settings what a worker needs: the sizes of its pools, isolates, timeouts.
import { availableParallelism } from 'node:os'
import type { WorkerSettings } from '@bullpen/config'
import {
  BullpenError,
  type Catalogue,
  formatDuration,
  type Isolation,
  milliseconds,
  type TaskId,
} from '@bullpen/contract'
import { nearest, readTaskId } from '@bullpen/contract/internal'
import type { Isolator, Timeouts } from '@bullpen/engine/internal'

/** Concurrency by queue: of every queue of the catalogue, unless the settings name some. 0 is twice the number of CPU cores. */
export function poolSizes(catalogue: Catalogue, { pools }: WorkerSettings): ReadonlyMap<string, number> {
  const wanted = pools ?? Object.fromEntries(catalogue.queues.map((queue) => [queue, 0]))
  const unknown = Object.keys(wanted).find((queue) => !catalogue.queues.includes(queue))
  if (unknown !== undefined) {
    const near = nearest(unknown, catalogue.queues)
    const hint = near === undefined ? `its queues: ${catalogue.queues.join(', ')}` : `did you mean '${near}'?`
    throw new BullpenError(
      'invalid_configuration',
      `invalid configuration: pools (BULLPEN_WORKER_POOLS) names queue '${unknown}', which no task of the catalogue uses; ${hint}`,
    )
  }
  return new Map(Object.entries(wanted).map(([queue, size]) => [queue, size === 0 ? availableParallelism() * 2 : size]))
}

/**
 * An isolator if a task of the catalogue needs one. It may have as many isolates of each kind as tasks of that kind can run at
 * once, so that no task waits for one. `slotsOf`: the present number of slots of a queue; 0 when there is no pool.
 */
export function isolatorFor(
  { definitions }: Catalogue,
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

export function defaultTimeouts(settings: WorkerSettings): Timeouts {
  const ms = (limit: string): number | 'none' => (limit === 'none' ? limit : milliseconds(limit))
  return {
    timeoutMs: ms(settings.taskTimeout),
    heartbeatMs: ms(settings.heartbeatTimeout),
    queueMs: ms(settings.queueTimeout),
    totalMs: ms(settings.totalTimeout),
    graceMs: milliseconds(settings.grace),
  }
}

/** The ids by queue. @throws BullpenError `queue_not_found` for a task whose queue this worker has no pool for. */
export function byQueue(tasks: readonly TaskId[], sizes: ReadonlyMap<string, number>): ReadonlyMap<string, TaskId[]> {
  const found = new Map<string, TaskId[]>()
  for (const id of tasks) {
    const queue = readTaskId(id)?.queue ?? ''
    if (!sizes.has(queue)) {
      throw new BullpenError(
        'queue_not_found',
        `task ${id} belongs to queue '${queue}', for which this worker has no pool; its queues: ${[...sizes.keys()].join(', ')}`,
      )
    }
    found.set(queue, [...(found.get(queue) ?? []), id])
  }
  return found
}

/** A drain gives no task more than the worker's grace period. Returns a warning for each definition that asks for more. */
export function graceWarnings(
  { definitions }: Catalogue,
  sizes: ReadonlyMap<string, number>,
  graceMs: number,
): readonly string[] {
  return definitions.flatMap(({ name, queue, graceMs: own }) => {
    if (!sizes.has(queue) || own === undefined || (own !== 'none' && own <= graceMs)) return []
    const asked = own === 'none' ? 'unlimited' : formatDuration(own)
    return [
      `grace period of ${name} is ${asked}; a drain cuts it to ${formatDuration(graceMs)}, the worker's own (BULLPEN_WORKER_GRACE)`,
    ]
  })
}

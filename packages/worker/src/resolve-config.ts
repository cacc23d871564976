// What a worker process is to be, worked out from its catalogue and settings: pools, isolates, limits.

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

/** Every queue of the catalogue unless the settings name some; 0 is cores x 2 (row P11 of the seeds). */
export function poolSizes(catalogue: Catalogue, { pools }: WorkerSettings): ReadonlyMap<string, number> {
  const wanted = pools ?? Object.fromEntries(catalogue.queues.map((queue) => [queue, 0]))
  const unknown = Object.keys(wanted).find((queue) => !catalogue.queues.includes(queue))
  if (unknown !== undefined) {
    const near = nearest(unknown, catalogue.queues) ?? catalogue.queues.join(', ')
    throw new BullpenError(
      'invalid_configuration',
      `pools (BULLPEN_WORKER_POOLS) names the queue '${unknown}', which no task of the catalogue uses; did you mean ${near}?`,
    )
  }
  return new Map(Object.entries(wanted).map(([queue, size]) => [queue, size === 0 ? availableParallelism() * 2 : size]))
}

/**
 * Made only where a task asks for it. Of each kind, as many as its tasks can run at once: none of them waits for one.
 * `sizeOf`: of a queue's pool at the moment; 0 where there is none.
 */
export function isolatorFor(
  { definitions }: Catalogue,
  sizeOf: (queue: string) => number,
  open: (most: (kind: Isolation) => number) => Isolator,
): Isolator | undefined {
  const most = (kind: Isolation): number => {
    const queues = new Set(definitions.filter(({ isolation }) => isolation === kind).map(({ queue }) => queue))
    const sum = [...queues].reduce((total, queue) => total + sizeOf(queue), 0)
    return Math.max(1, sum)
  }
  return definitions.every(({ isolation }) => isolation === 'inline') ? undefined : open(most)
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

/** The ids of each queue. @throws BullpenError `queue_not_found` for one that this process has no pool for. */
export function byQueue(tasks: readonly TaskId[], sizes: ReadonlyMap<string, number>): ReadonlyMap<string, TaskId[]> {
  const found = new Map<string, TaskId[]>()
  for (const id of tasks) {
    const queue = readTaskId(id)?.queue ?? ''
    if (!sizes.has(queue)) {
      throw new BullpenError(
        'queue_not_found',
        `the task ${id} is of the queue '${queue}'; this process works ${[...sizes.keys()].join(', ')}`,
      )
    }
    found.set(queue, [...(found.get(queue) ?? []), id])
  }
  return found
}

/** At a drain nobody has more than the process's grace. Definitions that ask for more, in words for the log. */
export function graceWarnings(
  { definitions }: Catalogue,
  sizes: ReadonlyMap<string, number>,
  graceMs: number,
): readonly string[] {
  return definitions.flatMap(({ name, queue, graceMs: own }) => {
    if (!sizes.has(queue) || own === undefined || (own !== 'none' && own <= graceMs)) return []
    const asked = own === 'none' ? 'has no end' : `is ${formatDuration(own)}`
    return [
      `the grace of ${name} ${asked}; at a drain it is ${formatDuration(graceMs)}, the process's own (BULLPEN_WORKER_GRACE)`,
    ]
  })
}

// The queues and the task of the benchmark `sustain`, and what its processes tell each other.
import { type Catalogue, defineCatalogue, defineQueue, defineTask } from '@bullpen/contract'
import { z } from 'zod'
import type { Buckets } from '../measuring/latency-histogram.ts'

export const QUEUES = 50
/** The queues whose tasks start as soon as they are enqueued. The others have the backlog. */
export const FLOWING = 25

/** Completed tasks are removed after a minute, so that Redis's memory is constant from then on. */
const retention = { completed: { age: '1m' } } as const

const input = z.object({
  /** When the producer wanted to enqueue the task, in ms since 1970, with fractions. */
  at: z.number(),
  n: z.int(),
  text: z.string(),
})

/** About 100 bytes as JSON, together with the numbers. */
export const TEXT = 'a text that is as long as the input of a usual task is'

/** The definitions, by the number of their queue. */
export const TASKS = Array.from({ length: QUEUES }, (_, i) => {
  const common = {
    name: `sustain.task-${i}`,
    queue: defineQueue({ name: `sustain-${i}`, retention }),
    events: false,
    input,
    output: z.object({ n: z.int() }),
  } as const
  return i < FLOWING ? defineTask({ ...common, kind: 'short' }) : defineTask({ ...common, timeout: '10m' })
})

// The compiler cannot determine the number of tasks.
export const catalogue: Catalogue<(typeof TASKS)[number]> = Reflect.apply(defineCatalogue, undefined, TASKS)

/** The time in ms since 1970, with fractions, for processes on the same machine. */
export const nowMs = (): number => performance.timeOrigin + performance.now()

export interface ProducerOptions {
  readonly redisUrl: string
  readonly namespace: string
  /** Tasks per second over all queues. */
  readonly rate: number
}

export interface WorkerOptions {
  readonly redisUrl: string
  readonly namespace: string
  /** How many tasks of each queue with a backlog this worker may start per second. */
  readonly backlogRate: number
}

/** What a process has done since it was last asked. */
export interface Done {
  /** Tasks enqueued by the producer, or ended by a worker. */
  readonly tasks: number
  /** Calls of the producer that failed because Redis did not respond in time, or the task did not end in time. */
  readonly failed: number
  /** The CPU time that the process has used since it started, in µs. */
  readonly cpu: number
  /** From the moment at which a task should be enqueued until Redis has stored it. */
  readonly enqueue: Buckets
  /** From the same moment until the handler starts. Only the flowing queues are counted. */
  readonly wait: Buckets
  /** From the same moment until a caller that waits for the task has its result. Some tasks of the flowing queues are counted. */
  readonly end: Buckets
}

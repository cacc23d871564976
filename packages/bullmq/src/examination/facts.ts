// Defines what an examination of plain BullMQ knows about a server and its queues. Times are in ms since 1970 on the server's clock.
import type { ServerDescription } from '../redis/server/server-checks.ts'

/** The structures of a queue that hold jobs. */
export const PLACES = ['waiting', 'prioritized', 'active', 'delayed', 'waitingChildren', 'completed', 'failed'] as const

export type Place = (typeof PLACES)[number]

/** What is read of one job. */
export interface JobFacts {
  readonly place: Place
  /** Since when the job may start: its time of enqueueing plus its delay or, for a retried job, the start of its last attempt. */
  readonly readyAt: number
  readonly startedAt: number | undefined
  readonly finishedAt: number | undefined
  /** How many attempts the job may have. */
  readonly maxAttempts: number
  /** Whether the job's own options say when it is removed after it has ended as it is now. */
  readonly isRemoved: boolean
  /** Whether the job has a lock. Read for active jobs only. */
  readonly isLocked: boolean | undefined
  /** How large the job's data and its result are, in bytes. */
  readonly dataBytes: number
  readonly resultBytes: number
  /** How much memory the job takes. Undefined if the server does not permit MEMORY USAGE. */
  readonly memoryBytes: number | undefined
  readonly failedReason: string | undefined
}

export interface QueueFacts {
  readonly prefix: string
  readonly name: string
  readonly counts: Readonly<Record<Place, number>>
  readonly isPaused: boolean
  /** Whether the queue has the marker that wakes idle workers. */
  readonly hasMarker: boolean
  /** How many entries the queue's stream of events has, and about how many it may have. */
  readonly events: { readonly length: number; readonly max: number }
  /** How many delayed jobs should have started more than a minute ago, and when the first of all is due. */
  readonly overdue: { readonly jobs: number; readonly firstDueAt: number | undefined }
  /** When the next run of a job scheduler is due. Undefined if the queue has none. */
  readonly nextScheduledAt: number | undefined
  /** How many connections of workers the queue has. Undefined if the server does not permit CLIENT LIST. */
  readonly workers: number | undefined
  /** Some jobs of each place: the newest and the oldest. */
  readonly sample: readonly JobFacts[]
}

export interface BullmqServerFacts {
  /** The node of a cluster. A single server's node is ''. */
  readonly node: string
  readonly description: ServerDescription
  /** The times at which the server takes snapshots, as in its configuration. Undefined if CONFIG GET is not permitted. */
  readonly save: string | undefined
  readonly now: number
  readonly queues: readonly QueueFacts[]
  /** The names of queues whose keys are on several nodes of a cluster. Nothing else is read of them. */
  readonly scattered: readonly string[]
}

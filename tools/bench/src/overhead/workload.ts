// The tasks of the benchmark `overhead`, and what its processes tell each other.
import { defineCatalogue, defineTask } from '@bullpen/contract'
import { z } from 'zod'

const schemas = { input: z.object({ n: z.int() }), output: z.object({ n: z.int() }) }
const queue = 'bench'

/** The definitions by kind. Events are off, so that the costs are those of metrics, logs and traces alone. */
export const TASKS = {
  short: defineTask({ name: 'bench.short', queue, kind: 'short', ...schemas }),
  long: defineTask({ name: 'bench.long', queue, timeout: '1m', events: false, ...schemas }),
} as const
export type Kind = keyof typeof TASKS

export const catalogue = defineCatalogue(TASKS.short, TASKS.long)

export interface WorkerOptions {
  readonly redisUrl: string
  readonly namespace: string
  readonly kind: Kind
  readonly tasks: number
  readonly isTraced: boolean
}

/** CPU time per task, in µs. */
export interface Costs {
  readonly process: number
  readonly redis: number
}

/** What the worker's process sends: where its metrics are while it runs tasks, and its costs at the end. */
export type WorkerMessage = { readonly url: string } | { readonly costs: Costs }

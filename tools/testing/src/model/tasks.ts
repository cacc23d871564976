// The tasks of every program, and how one is made of its plan.
import { randomBytes } from 'node:crypto'
import { defineCatalogue, defineTask, type TaskDefinition } from '@bullpen/contract'
import { createTaskId, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import type { NewTask } from '@bullpen/engine'
import { newTask } from '@bullpen/engine/internal'
import { z } from 'zod'
import type { TaskPlan } from './program.ts'

export const QUEUE = 'model'

const common = {
  queue: QUEUE,
  input: z.object({ n: z.int() }),
  output: z.object({ n: z.int() }),
  retry: { backoff: { initialDelay: '2ms', maxDelay: '10ms', jitter: 0 } },
} as const
const short = defineTask({ name: 'model.short', kind: 'short', ...common })
const long = defineTask({ name: 'model.long', timeout: '1h', ...common })
/** Dead when its worker ends under it. */
export const fragile = defineTask({ name: 'model.fragile', timeout: '1h', onInterrupt: 'fail', ...common })
export const child = defineTask({ name: 'model.child', kind: 'short', ...common })
/** Runs until as many are there as there are workers. */
export const muster = defineTask({ name: 'model.muster', kind: 'short', ...common })
/** Runs until it is told to end. */
export const stay = defineTask({ name: 'model.stay', timeout: '1h', ...common })
export const catalogue = defineCatalogue(short, long, fragile, child, muster, stay)

export function plannedTask(plan: TaskPlan, now: number): NewTask {
  const { kind, delayMs, timeoutMs, heartbeatMs, queueMs, totalMs, maxAttempts } = plan
  const made = plainTask({ short, long, fragile }[kind], now, delayMs)
  if (kind === 'short') return { ...made, maxAttempts }
  const expiresAt = queueMs === undefined ? undefined : now + delayMs + queueMs
  return { ...made, timeoutMs, heartbeatMs, totalMs, queueMs, maxAttempts, expiresAt }
}

export function plainTask(definition: TaskDefinition, now: number, delayMs = 0): NewTask {
  const id = createTaskId(QUEUE, now, randomBytes(ID_RANDOM_BYTES))
  const origin = { id, enqueuedAt: now, correlationId: undefined }
  return newTask(definition, { n: 0 }, delayMs > 0 ? { delay: `${delayMs}ms` } : {}, origin)
}

// Defines the task definitions that all programs use, and creates the tasks that a program's plans describe.
import { randomBytes } from 'node:crypto'
import { defineCatalogue, defineTask, type TaskDefinition } from '@bullpen/contract'
import { createTaskId, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import type { NewTask } from '@bullpen/engine'
import { newTask } from '@bullpen/engine/internal'
import { z } from 'zod'
import { type TaskPlan, WEIGHTS } from './program.ts'

export const QUEUE = 'model'

const common = {
  queue: QUEUE,
  input: z.object({ n: z.int() }),
  output: z.object({ n: z.int() }),
  retry: { backoff: { initialDelay: '2ms', maxDelay: '10ms', jitter: 0 } },
} as const
const short = defineTask({ name: 'model.short', kind: 'short', ...common })
const long = defineTask({ name: 'model.long', timeout: '1h', ...common })
/** A task that is dead if its worker stops while it runs. */
export const fragile = defineTask({ name: 'model.fragile', timeout: '1h', onInterrupt: 'fail', ...common })
export const child = defineTask({ name: 'model.child', kind: 'short', ...common })
/** A task that runs until as many tasks of this definition run at once as there are slots. */
export const rendezvous = defineTask({ name: 'model.rendezvous', kind: 'short', ...common })
/** A task that runs until its attempt is signalled. */
export const endless = defineTask({ name: 'model.endless', timeout: '1h', ...common })
export const catalogue = defineCatalogue(short, long, fragile, child, rendezvous, endless)

export function plannedTask(plan: TaskPlan, now: number): NewTask {
  const { key, kind, delayMs, timeoutMs, heartbeatMs, queueMs, totalMs, maxAttempts } = plan
  const turn = key && { key, weight: WEIGHTS[key] }
  const task = { ...plainTask({ short, long, fragile }[kind], now, delayMs), concurrencyKey: key, turn }
  if (kind === 'short') return { ...task, maxAttempts }
  const expiresAt = queueMs === undefined ? undefined : now + delayMs + queueMs
  return { ...task, timeoutMs, heartbeatMs, totalMs, queueMs, maxAttempts, expiresAt }
}

export function plainTask(definition: TaskDefinition, now: number, delayMs = 0): NewTask {
  const id = createTaskId(QUEUE, now, randomBytes(ID_RANDOM_BYTES))
  const origin = { id, enqueuedAt: now, correlationId: undefined }
  return newTask(definition, { n: 0 }, delayMs > 0 ? { delay: `${delayMs}ms` } : {}, origin)
}
